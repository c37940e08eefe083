// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path_index.h"
#include "base/result.h"
#include "k8s/projection.h"
#include "k8s/resource.h"
#include "k8s/value_tree.h"

/// The objects we read, with only the fields we use: what is not here is dropped on arrival.
/// Plain values; immutable once in a Store. Objects we write are built as JSON where they are made.
namespace lpp::k8s {

using StringMap = std::map<std::string, std::string, std::less<>>;

/// Value of a label or annotation, or nullptr.
const std::string* find(const StringMap& map, std::string_view key);

struct OwnerReference {
  std::string api_version{};
  std::string kind{};
  std::string name{};
  std::string uid{};
};

struct ObjectMeta {
  std::string name{};
  std::string ns{};
  std::string uid{};
  std::string resource_version{};
  std::string generate_name{};
  int generation = 0;
  std::string creation_timestamp{};
  std::string deletion_timestamp{};  // "" = not being deleted
  StringMap labels{};
  StringMap annotations{};
  std::vector<std::string> finalizers{};
  std::vector<OwnerReference> owner_references{};
  bool incomplete = false;  // some of it, or of spec, was not read: see fields_of()

  ObjectKey key() const { return {ns, name}; }
  bool deleting() const { return !deletion_timestamp.empty(); }
};

struct ClaimCondition {
  std::string type{};
  std::string status{};
};

struct PersistentVolumeClaim {
  static constexpr const Resource& kResource = kPersistentVolumeClaims;
  ObjectMeta meta{};
  std::optional<std::string> storage_class_name{};  // spec field; see class_name()
  std::string volume_name{};
  std::string volume_mode{};      // "" = Filesystem
  std::string storage_request{};  // quantity text of requests.storage
  std::vector<std::string> access_modes{};
  bool has_selector = false;
  std::string data_source{};  // "Kind/name" of dataSource or dataSourceRef
  std::string phase{};
  std::string capacity{};       // quantity text of status.capacity.storage
  std::string allocated{};      // of status.allocatedResources.storage: what it grows to, or grew
  std::string resize_status{};  // status.allocatedResourceStatuses.storage
  std::vector<ClaimCondition> conditions{};

  /// Of its data source; "" = it has none.
  std::string source_kind() const;
  /// Beta annotation, else spec.storageClassName, else "" (rule A3.5).
  std::string class_name() const;
};

struct NodeSelectorRequirement {
  std::string key{};
  std::string op{};
  std::vector<std::string> values{};
};

/// One term: all of its requirements must hold; the terms of an affinity are alternatives.
struct NodeSelectorTerm {
  std::vector<NodeSelectorRequirement> match_expressions{};
  std::vector<NodeSelectorRequirement> match_fields{};
};

enum class VolumeSource { kOther, kHostPath, kLocal };

struct PersistentVolume {
  static constexpr const Resource& kResource = kPersistentVolumes;
  using Index = PathIndex<PersistentVolume>;  // of a Store
  ObjectMeta meta{};
  ObjectKey claim{};  // spec.claimRef
  std::string claim_uid{};
  std::string storage_class_name{};
  std::string reclaim_policy{};
  std::string volume_mode{};  // "" = Filesystem
  std::string capacity{};     // quantity text of capacity.storage
  std::vector<std::string> access_modes{};
  std::string phase{};
  VolumeSource source = VolumeSource::kOther;
  std::string path{};                             // of hostPath or local, see tidy_path()
  std::vector<NodeSelectorTerm> node_affinity{};  // spec.nodeAffinity.required
};

struct StorageClass {
  static constexpr const Resource& kResource = kStorageClasses;
  ObjectMeta meta{};
  std::string provisioner{};
  std::string reclaim_policy{};       // "" = Delete
  std::string volume_binding_mode{};  // "" = Immediate
  StringMap parameters{};
  std::vector<std::string> mount_options{};

  bool waits_for_first_consumer() const { return volume_binding_mode == "WaitForFirstConsumer"; }
};

/// Listed and watched as PartialObjectMetadata.
struct Node {
  static constexpr const Resource& kResource = kNodes;
  ObjectMeta meta{};
};

struct ContainerStatus {
  std::string name{};
  std::string waiting_reason{};  // "" = not waiting
  std::string waiting_message{};
  bool terminated = false;
  int exit_code = 0;
  std::string terminated_reason{};
  std::string terminated_message{};  // the termination message
};

struct PodCondition {
  std::string type{};
  std::string status{};
  std::string reason{};
  std::string message{};
};

struct Pod {
  static constexpr const Resource& kResource = kPods;
  ObjectMeta meta{};
  std::string node_name{};
  std::string phase{};
  std::string reason{};  // e.g. Evicted, DeadlineExceeded, NodeAffinity
  std::string message{};
  std::vector<ContainerStatus> containers{};  // init containers first
  std::vector<PodCondition> conditions{};
};

struct ConfigMap {
  static constexpr const Resource& kResource = kConfigMaps;
  ObjectMeta meta{};
  StringMap data{};
};

inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

/// The annotations of claims by which volumes are asked for: read however many others there are.
inline constexpr auto kClaimAnnotations = std::to_array<std::string_view>(
    {"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
     "pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node",
     "volume.alpha.kubernetes.io/selected-node", "volumeType", kBetaStorageClass});

/// The fields that decode<T>() looks at. Of what strangers may make as large as they like only a
/// usual amount is read: 16 KiB of a claim's labels, annotations, owners and finalizers each, 8 KiB
/// of a node's labels. What is beyond makes the object `incomplete`; the annotations above, and the
/// labels that tie volumes to nodes, are there nevertheless.
template <typename T>
Projection fields_of();

template <>
Projection fields_of<PersistentVolumeClaim>();
template <>
Projection fields_of<PersistentVolume>();
template <>
Projection fields_of<StorageClass>();
template <>
Projection fields_of<Node>();
template <>
Projection fields_of<Pod>();
template <>
Projection fields_of<ConfigMap>();
/// With up to 2 MiB of each, as it lies in memory: for the one claim that needs it.
Projection whole_claim_fields();

/// Decodes an object of kind T; unknown fields are ignored, a wrong type is kInvalid with its
/// place.
template <typename T>
Result<T> decode(Value object);

template <>
Result<PersistentVolumeClaim> decode(Value object);
template <>
Result<PersistentVolume> decode(Value object);
template <>
Result<StorageClass> decode(Value object);
template <>
Result<Node> decode(Value object);
template <>
Result<Pod> decode(Value object);
template <>
Result<ConfigMap> decode(Value object);

template <typename T>
Result<T> decode(const nlohmann::json& object) {
  ValueTree tree;
  return decode<T>(tree.assign(object));
}

}  // namespace lpp::k8s
