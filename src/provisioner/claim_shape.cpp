// SPDX-License-Identifier: Apache-2.0
#include "provisioner/claim_shape.h"

#include <cstddef>

#include "base/strings.h"
#include "k8s/names.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"

namespace lpp::provisioner {

namespace {

using k8s::find;

constexpr std::size_t kMaxLabelValue = 63;

/// A volume with a limit is local unless somebody says otherwise: the kubelet tells how full those
/// are.
std::variant<k8s::VolumeSource, Refusal> volume_source(const k8s::PersistentVolumeClaim& claim,
                                                       const k8s::StorageClass& storage_class,
                                                       const operation::Limits& limits) {
  const std::string* wanted = find(claim.meta.annotations, kVolumeTypeAnnotation);
  if (wanted == nullptr) wanted = find(storage_class.parameters, kVolumeTypeParameter);
  if (wanted == nullptr)
    wanted = find(storage_class.meta.annotations, kDefaultVolumeTypeAnnotation);
  if (wanted == nullptr) {
    return limits.hard ? k8s::VolumeSource::kLocal : k8s::VolumeSource::kHostPath;
  }
  const std::string type = to_lower(*wanted);
  if (type == "hostpath") return k8s::VolumeSource::kHostPath;
  if (type == "local") return k8s::VolumeSource::kLocal;
  return refuse("\"" + *wanted +
                "\" is not a recognised volume type: use \"hostPath\" or \"local\"");
}

}  // namespace

std::string affinity_value_of(const k8s::Node& node, const std::string& key) {
  const std::string* value = find(node.meta.labels, key);
  return value == nullptr ? node.meta.name : *value;
}

std::optional<Refusal> tie_to(const k8s::Node& node, operation::Shape& shape) {
  shape.affinity_value = affinity_value_of(node, shape.affinity_key);
  if (shape.affinity_value.size() <= kMaxLabelValue) return std::nullopt;
  return Refusal{.message = "node " + node.meta.name + " has no label " + shape.affinity_key +
                            " and its name is too long to stand for it (63 bytes)",
                 .node_is_the_reason = true};
}

std::variant<operation::Shape, Refusal> make_shape(const k8s::PersistentVolumeClaim& claim,
                                                   const k8s::StorageClass& storage_class,
                                                   const k8s::Node* node,
                                                   const config::Config& config) {
  const std::string class_name = claim.class_name();
  const config::PathConfig* paths = config.paths_for_class(class_name);
  if (paths == nullptr) {
    return refuse("the configuration has no paths for StorageClass \"" + class_name +
                  "\": add it to storageClassConfigs in config.json, or add a nodePathMap");
  }
  if (auto refusal = check_request(claim, paths->shared())) return *std::move(refusal);
  const auto limits = limits_of(storage_class);
  if (const auto* refusal = std::get_if<Refusal>(&limits)) return *refusal;
  if (paths->shared() && std::get<operation::Limits>(limits).any()) {
    return refuse("StorageClass \"" + class_name +
                  "\" has quota, reserve or overcommit, which need paths of the nodes' own: this "
                  "one has a sharedFileSystemPath");
  }
  const auto on_node_lost = on_node_lost_of(storage_class);
  if (const auto* refusal = std::get_if<Refusal>(&on_node_lost)) return *refusal;
  if (paths->shared() && std::get<OnNodeLost>(on_node_lost).release) {
    return refuse("StorageClass \"" + class_name +
                  "\" has onNodeLost: release, which needs paths of the nodes' own: this one has a "
                  "sharedFileSystemPath");
  }
  const auto source = volume_source(claim, storage_class, std::get<operation::Limits>(limits));
  if (const auto* refusal = std::get_if<Refusal>(&source)) return *refusal;

  operation::Shape shape;
  shape.source = std::get<k8s::VolumeSource>(source);
  shape.mount_options = storage_class.mount_options;
  if (!storage_class.reclaim_policy.empty()) shape.reclaim_policy = storage_class.reclaim_policy;
  if (shape.source == k8s::VolumeSource::kHostPath && !shape.mount_options.empty()) {
    return refuse("StorageClass \"" + class_name +
                  "\" has mountOptions, which hostPath volumes do not support: remove them, or "
                  "use volume type local");
  }
  if (paths->shared()) {
    if (shape.source == k8s::VolumeSource::kLocal) {
      return refuse(
          "volume type local needs a node, and a shared filesystem has none: use hostPath");
    }
    shape.has_affinity = false;
    return shape;
  }
  if (node == nullptr) {
    return refuse("no node was selected: StorageClass \"" + class_name +
                  "\" needs volumeBindingMode: WaitForFirstConsumer");
  }
  const std::string* key = find(storage_class.parameters, kNodeAffinityKeyParameter);
  shape.affinity_key = key == nullptr || key->empty() ? std::string(kHostnameLabel) : *key;
  if (!k8s::is_qualified_name(shape.affinity_key)) {
    return refuse("nodeAffinityKey \"" + shape.affinity_key + "\" of StorageClass \"" + class_name +
                  "\" cannot be the key of a label");
  }
  if (auto refusal = tie_to(*node, shape)) return *std::move(refusal);
  return shape;
}

}  // namespace lpp::provisioner
