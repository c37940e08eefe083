// SPDX-License-Identifier: Apache-2.0
#include "node/held_limits.h"

namespace lpp::node {

std::vector<std::string> limits_not_held(const BaseUsage& usage) {
  std::vector<std::string> ids;
  for (const auto& [volume, use, taken_out] : usage.volumes) {
    if (!volume.limits.any() || volume.state != State::kPresent) continue;
    const bool holds = use && (use->limits.bytes != 0 || volume.limits.bytes == 0);
    if (!holds || taken_out) ids.push_back(volume.id);
  }
  return ids;
}

std::vector<std::string> limits_taken_off(const BaseUsage& usage) {
  std::vector<std::string> ids;
  for (const VolumeUsage& entry : usage.volumes) {
    if (entry.taken_out) ids.push_back(entry.volume.id);
  }
  return ids;
}

}  // namespace lpp::node
