// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_manifest.h"

#include <nlohmann/json.hpp>

#include "provisioner/names.h"

namespace lpp::provisioner {

using nlohmann::json;

nlohmann::json make_volume(const operation::Operation& operation,
                           const k8s::PersistentVolumeClaim& claim,
                           std::string_view provisioner_name) {
  const operation::Shape shape = operation.shape.value_or(operation::Shape{});
  json spec{
      {"accessModes", claim.access_modes},
      {"capacity", {{"storage", claim.storage_request}}},
      {"claimRef",
       {{"apiVersion", "v1"},
        {"kind", "PersistentVolumeClaim"},
        {"namespace", claim.meta.ns},
        {"name", claim.meta.name},
        {"uid", claim.meta.uid},
        {"resourceVersion", claim.meta.resource_version}}},
      {"persistentVolumeReclaimPolicy", shape.reclaim_policy},
      {"storageClassName", claim.class_name()},
      {"volumeMode", "Filesystem"},
  };
  if (shape.source == k8s::VolumeSource::kLocal) {
    spec["local"] = {{"path", operation.path}};
  } else {
    spec["hostPath"] = {{"path", operation.path}, {"type", "DirectoryOrCreate"}};
  }
  if (!shape.mount_options.empty()) spec["mountOptions"] = shape.mount_options;
  if (shape.has_affinity) {
    const json expression{{"key", shape.affinity_key},
                          {"operator", "In"},
                          {"values", json::array({shape.affinity_value})}};
    spec["nodeAffinity"]["required"]["nodeSelectorTerms"] =
        json::array({{{"matchExpressions", json::array({expression})}}});
  }
  json metadata{
      {"name", operation.volume_name},
      {"annotations",
       {{kProvisionedBy, shape.provisioner.empty() ? provisioner_name : shape.provisioner},
        {kVolumeSelectedNode, operation.node}}},
  };
  if (operation.limits.hard) metadata["annotations"][std::string(kVolumeQuota)] = kQuotaHard;
  if (!operation.disk.empty()) {
    metadata["annotations"][std::string(kVolumeDisk)] = operation.disk;
    metadata["annotations"][std::string(kVolumeBasePath)] = operation.base_path;
  }
  // Only a volume that we will delete needs us to see its end.
  if (shape.reclaim_policy == "Delete") {
    metadata["finalizers"] = json::array({kFinalizer});
  }
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

std::optional<k8s::PersistentVolume> created_volume(nlohmann::json manifest,
                                                    const nlohmann::json& answer) {
  const auto meta = answer.find("metadata");
  if (meta == answer.end() || !meta->is_object()) return std::nullopt;
  manifest["metadata"]["uid"] = meta->value("uid", "");
  manifest["metadata"]["resourceVersion"] = meta->value("resourceVersion", "");
  auto volume = k8s::decode<k8s::PersistentVolume>(manifest);
  if (!volume.ok()) return std::nullopt;
  return *std::move(volume);
}

std::string difference(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim,
                       const ServedNames& names) {
  if (volume.claim_uid != claim.meta.uid || volume.claim != claim.meta.key()) {
    return "it is for claim " + volume.claim.to_string() + " with UID " + volume.claim_uid;
  }
  const std::string* made_by = k8s::find(volume.meta.annotations, kProvisionedBy);
  if (made_by == nullptr || !names.has(*made_by)) {
    return "it was not provisioned by " + to_string(names);
  }
  return {};
}

}  // namespace lpp::provisioner
