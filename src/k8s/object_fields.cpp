// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <span>

#include "k8s/objects.h"

namespace lpp::k8s {

namespace {

// What the decoders of objects.cpp look at, by its names in JSON and its numbers in the files
// generated.proto of k8s.io/api and k8s.io/apimachinery. Objects arrive with these fields only.

using enum FieldType;

constexpr std::array kOwnerFields =
    std::to_array<ReadField>({{"kind", 1}, {"name", 3}, {"uid", 4}, {"apiVersion", 5}});
constexpr std::array kEveryMetaFields = std::to_array<ReadField>({{"name", 1},
                                                                  {"generateName", 2},
                                                                  {"namespace", 3},
                                                                  {"uid", 5},
                                                                  {"resourceVersion", 6},
                                                                  {"generation", 7, kInteger},
                                                                  {"creationTimestamp", 8, kTime},
                                                                  {"deletionTimestamp", 9, kTime},
                                                                  {"finalizers", 14, kTexts}});
constexpr std::size_t kEvery = kEveryMetaFields.size();

template <std::size_t N>
constexpr std::array<ReadField, kEvery + N> meta_with(const std::array<ReadField, N>& more) {
  std::array<ReadField, kEvery + N> all{};
  std::copy(kEveryMetaFields.begin(), kEveryMetaFields.end(), all.begin());
  std::copy(more.begin(), more.end(), all.begin() + kEvery);
  return all;
}

constexpr ReadField annotations(std::uint32_t most = 0,
                                std::span<const std::string_view> keys = {}) {
  return {.name = "annotations", .number = 12, .type = kTextMap, .most = most, .keys = keys};
}
constexpr ReadField labels(std::uint32_t most, std::span<const std::string_view> keys = {}) {
  return {.name = "labels", .number = 11, .type = kTextMap, .most = most, .keys = keys};
}
constexpr ReadField owners(std::uint32_t most) {
  return {.name = "ownerReferences",
          .number = 13,
          .type = kObjects,
          .inside = kOwnerFields,
          .most = most};
}

// The API server bounds annotations (256 KiB), and the parameters of a StorageClass, but not
// labels, owners and finalizers: one object may have 1.5 MiB of them, and anybody who may create
// claims any number of such objects. What is read of each is bounded where it is not needed, and
// where it is, with enough room for what people write.
constexpr std::uint32_t kUsual = 16U << 10U;
constexpr std::uint32_t kMost = 2U << 20U;  // 256 KiB of the smallest annotations fit
constexpr std::uint32_t kMostOfNode = 8U << 10U;

constexpr std::array kMetaFields =
    meta_with(std::to_array<ReadField>({labels(kUsual), annotations(), owners(kUsual)}));

constexpr auto claim_meta(std::uint32_t most, std::span<const std::string_view> keys) {
  auto fields =
      meta_with(std::to_array<ReadField>({labels(most), annotations(most, keys), owners(most)}));
  for (ReadField& field : fields) {
    if (field.type == kTexts) field.most = most;
  }
  return fields;
}
constexpr std::array kClaimMetaFields = claim_meta(kUsual, kClaimAnnotations);
constexpr std::array kWholeClaimMetaFields = claim_meta(kMost, {});

// By these volumes are tied to nodes.
constexpr auto kNodeLabels = std::to_array<std::string_view>(
    {"kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"});
constexpr std::array kNodeMetaFields = meta_with(std::to_array<ReadField>(
    {labels(kMostOfNode, kNodeLabels), annotations(kUsual), owners(kUsual)}));

constexpr std::array kPhaseField = std::to_array<ReadField>({{"phase", 1}});

constexpr std::uint32_t kMostOfSpec = 4U << 10U;
constexpr std::array kResourceFields = std::to_array<ReadField>({{"requests", 2, kQuantityMap}});
constexpr std::array kDataSourceFields = std::to_array<ReadField>({{"kind", 2}, {"name", 3}});
constexpr std::array kClaimSpecFields =
    std::to_array<ReadField>({{"accessModes", 1, kTexts, {}, 0, kMostOfSpec},
                              {"resources", 2, kObject, kResourceFields, 0, kMostOfSpec},
                              {"volumeName", 3},
                              {"selector", 4, kObject},
                              {"storageClassName", 5},
                              {"volumeMode", 6},
                              {"dataSource", 7, kObject, kDataSourceFields, 0, kMostOfSpec},
                              {"dataSourceRef", 8, kObject, kDataSourceFields, 0, kMostOfSpec}});
constexpr std::array kClaimConditionFields = std::to_array<ReadField>({{"type", 1}, {"status", 2}});
constexpr std::array kClaimStatusFields =
    std::to_array<ReadField>({{"phase", 1},
                              {"capacity", 3, kQuantityMap},
                              {"conditions", 4, kObjects, kClaimConditionFields},
                              {"allocatedResources", 5, kQuantityMap},
                              {"allocatedResourceStatuses", 7, kTextMap}});
constexpr std::array kClaimFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kClaimMetaFields},
                              {"spec", 2, kObject, kClaimSpecFields},
                              {"status", 3, kObject, kClaimStatusFields}});
constexpr std::array kWholeClaimFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kWholeClaimMetaFields},
                              {"spec", 2, kObject, kClaimSpecFields},
                              {"status", 3, kObject, kClaimStatusFields}});

constexpr std::array kPathField = std::to_array<ReadField>({{"path", 1}});
constexpr std::array kClaimRefFields =
    std::to_array<ReadField>({{"namespace", 2}, {"name", 3}, {"uid", 4}});
constexpr std::array kRequirementFields =
    std::to_array<ReadField>({{"key", 1}, {"operator", 2}, {"values", 3, kTexts}});
constexpr std::array kTermFields =
    std::to_array<ReadField>({{"matchExpressions", 1, kObjects, kRequirementFields},
                              {"matchFields", 2, kObjects, kRequirementFields}});
constexpr std::array kSelectorFields =
    std::to_array<ReadField>({{"nodeSelectorTerms", 1, kObjects, kTermFields}});
constexpr std::array kAffinityFields =
    std::to_array<ReadField>({{"required", 1, kObject, kSelectorFields}});
constexpr std::uint32_t kVolumeSource = 2;  // what hostPath and local are kept in
constexpr std::array kVolumeSpecFields =
    std::to_array<ReadField>({{"capacity", 1, kQuantityMap},
                              {"hostPath", 3, kObject, kPathField, kVolumeSource},
                              {"local", 20, kObject, kPathField, kVolumeSource},
                              {"accessModes", 3, kTexts},
                              {"claimRef", 4, kObject, kClaimRefFields},
                              {"persistentVolumeReclaimPolicy", 5},
                              {"storageClassName", 6},
                              {"volumeMode", 8},
                              {"nodeAffinity", 9, kObject, kAffinityFields}});
constexpr std::array kVolumeFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"spec", 2, kObject, kVolumeSpecFields},
                              {"status", 3, kObject, kPhaseField}});

constexpr std::array kStorageClassFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"provisioner", 2},
                              {"parameters", 3, kTextMap},
                              {"reclaimPolicy", 4},
                              {"mountOptions", 5, kTexts},
                              {"volumeBindingMode", 7}});

constexpr std::array kNodeFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kNodeMetaFields}});

constexpr std::array kPodSpecFields = std::to_array<ReadField>({{"nodeName", 10}});
constexpr std::array kWaitingFields = std::to_array<ReadField>({{"reason", 1}, {"message", 2}});
constexpr std::array kTerminatedFields =
    std::to_array<ReadField>({{"exitCode", 1, kInteger}, {"reason", 3}, {"message", 4}});
constexpr std::array kStateFields = std::to_array<ReadField>(
    {{"waiting", 1, kObject, kWaitingFields}, {"terminated", 3, kObject, kTerminatedFields}});
constexpr std::array kContainerStatusFields =
    std::to_array<ReadField>({{"name", 1}, {"state", 2, kObject, kStateFields}});
constexpr std::array kConditionFields =
    std::to_array<ReadField>({{"type", 1}, {"status", 2}, {"reason", 5}, {"message", 6}});
constexpr std::array kPodStatusFields =
    std::to_array<ReadField>({{"phase", 1},
                              {"conditions", 2, kObjects, kConditionFields},
                              {"message", 3},
                              {"reason", 4},
                              {"containerStatuses", 8, kObjects, kContainerStatusFields},
                              {"initContainerStatuses", 10, kObjects, kContainerStatusFields}});
constexpr std::array kPodFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields},
                              {"spec", 2, kObject, kPodSpecFields},
                              {"status", 3, kObject, kPodStatusFields}});

constexpr std::array kConfigMapFields =
    std::to_array<ReadField>({{"metadata", 1, kObject, kMetaFields}, {"data", 2, kTextMap}});

}  // namespace

template <>
Projection fields_of<PersistentVolumeClaim>() {
  return kClaimFields;
}
template <>
Projection fields_of<PersistentVolume>() {
  return kVolumeFields;
}
template <>
Projection fields_of<StorageClass>() {
  return kStorageClassFields;
}
template <>
Projection fields_of<Node>() {
  return kNodeFields;
}
template <>
Projection fields_of<Pod>() {
  return kPodFields;
}
template <>
Projection fields_of<ConfigMap>() {
  return kConfigMapFields;
}

Projection whole_claim_fields() { return kWholeClaimFields; }

}  // namespace lpp::k8s
