// SPDX-License-Identifier: Apache-2.0
#include "provisioner/plan.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "k8s/names.h"
#include "k8s/quantity.h"
#include "provisioner/base_paths.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/path_safety.h"
#include "provisioner/patterns.h"

namespace lpp::provisioner {

namespace {

using k8s::find;

constexpr std::string_view kVolumeNamePrefix = "pvc-";
constexpr std::size_t kMaxLabelValue = 63;

/// Whom the controller manager has asked; nullptr = nobody yet.
const std::string* asked_provisioner(const k8s::PersistentVolumeClaim& claim) {
  const std::string* name = find(claim.meta.annotations, kStorageProvisioner);
  return name != nullptr ? name : find(claim.meta.annotations, kBetaStorageProvisioner);
}

bool has_selected_node(const k8s::PersistentVolumeClaim& claim) {
  const std::string* node = find(claim.meta.annotations, kSelectedNode);
  return node != nullptr && !node->empty();
}

Refusal refuse(std::string message) { return Refusal{.message = std::move(message)}; }

std::optional<Refusal> check_request(const k8s::PersistentVolumeClaim& claim, bool shared) {
  if (!claim.volume_mode.empty() && claim.volume_mode != "Filesystem") {
    return refuse("volumeMode " + claim.volume_mode +
                  " is not supported: local-path volumes are directories, use Filesystem");
  }
  if (!claim.data_source.empty()) {
    return refuse("dataSource " + claim.data_source +
                  " is not supported: local-path volumes start empty");
  }
  if (!shared && claim.has_selector) {
    return refuse("claim.Spec.Selector is not supported: remove spec.selector from the claim");
  }
  if (claim.access_modes.empty()) return refuse("spec.accessModes is empty");
  if (shared) return std::nullopt;
  for (const std::string& mode : claim.access_modes) {
    if (mode != "ReadWriteOnce" && mode != "ReadWriteOncePod") {
      return refuse("access mode " + mode +
                    " is not supported: a node's own path only supports ReadWriteOnce and "
                    "ReadWriteOncePod");
    }
  }
  return std::nullopt;
}

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

std::string volume_name_of(std::string_view claim_uid) {
  return std::string(kVolumeNamePrefix) + std::string(claim_uid);
}

std::string selected_node(const k8s::PersistentVolumeClaim& claim) {
  const std::string* node = find(claim.meta.annotations, kSelectedNode);
  if (node == nullptr) node = find(claim.meta.annotations, kAlphaSelectedNode);
  return node == nullptr ? std::string() : *node;
}

bool asks_for(const k8s::PersistentVolumeClaim& claim, const ServedNames& names) {
  const std::string* name = asked_provisioner(claim);
  return name != nullptr && names.has(*name);
}

bool may_ask_for(const k8s::PersistentVolumeClaim& claim, const ServedNames& names) {
  const std::string* name = asked_provisioner(claim);
  return name == nullptr ? has_selected_node(claim) : names.has(*name);
}

bool should_provision(const k8s::PersistentVolumeClaim& claim,
                      const k8s::StorageClass* storage_class, const ServedNames& names) {
  const std::string* asked = asked_provisioner(claim);
  if (!claim.volume_name.empty() || (asked != nullptr && !names.has(*asked))) return false;
  // Asked for with a class that is not there is an error to report, not a reason to be silent.
  if (storage_class == nullptr) return asked != nullptr;
  if (!names.has(storage_class->provisioner)) return false;
  // Two names are served: a class of one does not answer for a claim that asks the other.
  if (asked != nullptr && *asked != storage_class->provisioner) return false;
  return storage_class->waits_for_first_consumer() ? has_selected_node(claim) : asked != nullptr;
}

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

std::variant<operation::Operation, Refusal> make_operation(const k8s::PersistentVolumeClaim& claim,
                                                           const k8s::StorageClass& storage_class,
                                                           const k8s::Node* node,
                                                           const config::Config& config,
                                                           const BasePaths& known) {
  auto shape = make_shape(claim, storage_class, node, config);
  if (auto* refusal = std::get_if<Refusal>(&shape)) return std::move(*refusal);
  operation::Operation operation;
  operation.shape = std::get<operation::Shape>(std::move(shape));
  auto limits = limits_of(storage_class);
  if (auto* refusal = std::get_if<Refusal>(&limits)) return std::move(*refusal);
  operation.limits = std::get<operation::Limits>(std::move(limits));
  operation.volume_name = volume_name_of(claim.meta.uid);
  operation.claim = claim.meta.key();
  operation.owner_uid = claim.meta.uid;
  operation.storage_class = claim.class_name();
  // On a shared filesystem the node is only the place where the work is done.
  if (node != nullptr) operation.node = node->meta.name;

  const auto size = k8s::Quantity::parse(claim.storage_request);
  if (!size.ok()) return refuse("spec.resources.requests.storage: " + size.error().message);
  if (size->value() <= 0 || size->saturated()) {
    return refuse("spec.resources.requests.storage \"" + claim.storage_request +
                  "\" is not a size that a volume can have");
  }
  operation.size_bytes = size->value();

  auto rendered = render_patterns(claim, storage_class, operation.volume_name);
  if (auto* refusal = std::get_if<Refusal>(&rendered)) return std::move(*refusal);
  auto& names = std::get<Rendered>(rendered);
  operation.user = std::move(names.user);
  operation.group = std::move(names.group);
  operation.perm = std::move(names.perm);

  const config::PathConfig* paths = config.paths_for_class(operation.storage_class);
  if (paths == nullptr) {
    return refuse("the configuration has no paths for StorageClass \"" + operation.storage_class +
                  "\"");
  }
  if (paths->shared()) {
    operation.base_path = paths->shared_file_system_path;
    operation.shared = true;
  } else {
    const auto base = choose_base_path(paths->paths_for(operation.node), storage_class,
                                       operation.node, operation.volume_name, known);
    if (const auto* refusal = std::get_if<Refusal>(&base)) return *refusal;
    operation.base_path = std::get<std::string>(base);
    operation.require_mount = paths->must_be_mounted(operation.node, operation.base_path);
  }
  operation.path = operation.base_path + "/" + names.folder;
  if (auto safe = check_volume_path(operation.path); !safe.ok()) {
    return refuse(safe.error().message);
  }
  return operation;
}

}  // namespace lpp::provisioner
