// SPDX-License-Identifier: Apache-2.0
#include "provisioner/plan.h"

#include <algorithm>

#include "provisioner/base_paths.h"
#include "provisioner/claim_shape.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/path_safety.h"
#include "provisioner/patterns.h"

namespace lpp::provisioner {

namespace {

using k8s::find;

constexpr std::string_view kVolumeNamePrefix = "pvc-";

/// Whom the controller manager has asked; nullptr = nobody yet.
const std::string* asked_provisioner(const k8s::PersistentVolumeClaim& claim) {
  const std::string* name = find(claim.meta.annotations, kStorageProvisioner);
  return name != nullptr ? name : find(claim.meta.annotations, kBetaStorageProvisioner);
}

bool has_selected_node(const k8s::PersistentVolumeClaim& claim) {
  const std::string* node = find(claim.meta.annotations, kSelectedNode);
  return node != nullptr && !node->empty();
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

std::variant<operation::Operation, Refusal> make_operation(const k8s::PersistentVolumeClaim& claim,
                                                           const k8s::StorageClass& storage_class,
                                                           const k8s::Node* node,
                                                           const config::Config& config,
                                                           const BasePaths& known) {
  // What it refuses is refused for all below: a class without paths, or with limits that are none.
  auto shape = make_shape(claim, storage_class, node, config);
  if (auto* refusal = std::get_if<Refusal>(&shape)) return std::move(*refusal);
  operation::Operation operation;
  operation.shape = std::get<operation::Shape>(std::move(shape));
  operation.limits = std::get<operation::Limits>(limits_of(storage_class));
  operation.volume_name = volume_name_of(claim.meta.uid);
  operation.claim = claim.meta.key();
  operation.owner_uid = claim.meta.uid;
  operation.storage_class = claim.class_name();
  // On a shared filesystem the node is only the place where the work is done.
  if (node != nullptr) operation.node = node->meta.name;

  const auto size = size_of(claim);
  if (const auto* refusal = std::get_if<Refusal>(&size)) return *refusal;
  operation.size_bytes = std::get<std::int64_t>(size);

  auto rendered = render_patterns(claim, storage_class, operation.volume_name);
  if (auto* refusal = std::get_if<Refusal>(&rendered)) return std::move(*refusal);
  auto& names = std::get<Rendered>(rendered);
  operation.user = std::move(names.user);
  operation.group = std::move(names.group);
  operation.perm = std::move(names.perm);

  const config::PathConfig& paths = *config.paths_for_class(operation.storage_class);
  if (paths.shared()) {
    operation.base_path = paths.shared_file_system_path;
    operation.shared = true;
  } else {
    const auto base = choose_base_path(paths.paths_for(operation.node), storage_class,
                                       operation.node, operation.volume_name, known);
    if (const auto* refusal = std::get_if<Refusal>(&base)) return *refusal;
    operation.base_path = std::get<std::string>(base);
    operation.require_mount = paths.must_be_mounted(operation.node, operation.base_path);
  }
  operation.path = operation.base_path + "/" + names.folder;
  if (auto safe = check_volume_path(operation.path); !safe.ok()) {
    return Refusal{.message = safe.error().message};
  }
  return operation;
}

}  // namespace lpp::provisioner
