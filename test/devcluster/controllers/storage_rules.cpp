// SPDX-License-Identifier: Apache-2.0
#include "devcluster/controllers/storage_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "devcluster/controllers/storage_names.h"
#include "devcluster/json_names.h"
#include "devcluster/runtime/selectors.h"

namespace lpp::devcluster {

using nlohmann::json;

std::string class_of(const json& claim) {
  if (has_annotation(claim, kBetaStorageClass)) return annotation(claim, kBetaStorageClass);
  return text_at(claim, {"spec", "storageClassName"});
}

bool waits_for_consumer(const json& storage_class) {
  return text_at(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
}

bool refers_to(const json& volume, const json& claim) {
  const json& ref = object_at(volume, {"spec", "claimRef"});
  if (text_at(ref, {"name"}) != name_of(claim)) return false;
  if (text_at(ref, {"namespace"}) != namespace_of(claim)) return false;
  const std::string uid = text_at(ref, {"uid"});
  return uid.empty() || uid == uid_of(claim);
}

bool volume_fits(const json& volume, const json& claim) {
  if (is_deleting(volume) || find_at(volume, {"spec", "claimRef"}) != nullptr) return false;
  if (text_at(volume, {"spec", "storageClassName"}) != class_of(claim)) return false;
  if (text_at(volume, {"spec", "volumeMode"}, "Filesystem") !=
      text_at(claim, {"spec", "volumeMode"}, "Filesystem")) {
    return false;
  }
  if (quantity_value(text_at(volume, {"spec", "capacity", "storage"})) <
      quantity_value(text_at(claim, {"spec", "resources", "requests", "storage"}))) {
    return false;
  }
  const json& offered = array_at(volume, {"spec", "accessModes"});
  const json& wanted = array_at(claim, {"spec", "accessModes"});
  const bool modes = std::all_of(wanted.begin(), wanted.end(), [&](const json& mode) {
    return std::find(offered.begin(), offered.end(), mode) != offered.end();
  });
  return modes && label_selector_matches(object_at(claim, {"spec", "selector"}), volume);
}

bool has_enough_room(const json& claim, const json& node, const json* driver,
                     const std::vector<std::shared_ptr<const json>>& capacities) {
  if (driver == nullptr || !flag_at(*driver, {"spec", "storageCapacity"})) return true;
  const auto size = quantity_value(text_at(claim, {"spec", "resources", "requests", "storage"}));
  return std::any_of(capacities.begin(), capacities.end(), [&](const auto& capacity) {
    std::string limit = text_at(*capacity, {"maximumVolumeSize"});
    if (limit.empty()) limit = text_at(*capacity, {"capacity"});
    // No selector is no node, an empty one every node.
    const json* topology = find_at(*capacity, {"nodeTopology"});
    return text_at(*capacity, {"storageClassName"}) == class_of(claim) && !limit.empty() &&
           quantity_value(limit) >= size && topology != nullptr &&
           label_selector_matches(*topology, node);
  });
}

std::vector<std::string> claims_of(const json& pod) {
  std::vector<std::string> names;
  for (const json& volume : array_at(pod, {"spec", "volumes"})) {
    const std::string name = text_at(volume, {"persistentVolumeClaim", "claimName"});
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

bool has_ended(const json& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace lpp::devcluster
