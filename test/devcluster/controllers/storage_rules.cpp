#include "devcluster/controllers/storage_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "devcluster/controllers/storage_names.h"
#include "devcluster/runtime/json_access.h"
#include "devcluster/runtime/selectors.h"

namespace lpp::devcluster {

using namespace fields;
using nlohmann::json;

std::string_view class_of(const json& claim) {
  if (has_annotation(claim, kBetaStorageClass)) return annotation(claim, kBetaStorageClass);
  return text_at(claim, {"spec", "storageClassName"});
}

bool waits_for_consumer(const json& storage_class) {
  return text_at(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
}

long double quantity_value(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const long double number = std::strtold(copy.c_str(), &end);
  const std::string_view suffix(end);
  if (suffix.empty() || end == copy.c_str()) return end == copy.c_str() ? 0 : number;
  constexpr std::string_view kLarge = "KMGTPE";
  constexpr std::string_view kSmall = "mun";
  const char unit = suffix[0] == 'k' ? 'K' : suffix[0];
  if (const auto power = kLarge.find(unit); power != std::string_view::npos) {
    const long double base = suffix.ends_with('i') ? 1024 : 1000;
    return number * std::pow(base, static_cast<long double>(power + 1));
  }
  if (const auto power = kSmall.find(unit); power != std::string_view::npos) {
    return number / std::pow(1000.0L, static_cast<long double>(power + 1));
  }
  return 0;
}

bool refers_to(const json& volume, const json& claim) {
  const json& ref = object_at(volume, {"spec", "claimRef"});
  if (text_at(ref, {"name"}) != name_of(claim)) return false;
  if (text_at(ref, {"namespace"}) != namespace_of(claim)) return false;
  const std::string_view uid = text_at(ref, {"uid"});
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

std::vector<std::string> claims_of(const json& pod) {
  std::vector<std::string> names;
  for (const json& volume : array_at(pod, {"spec", "volumes"})) {
    const std::string_view name = text_at(volume, {"persistentVolumeClaim", "claimName"});
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

bool has_ended(const json& pod) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace lpp::devcluster
