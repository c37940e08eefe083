// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "unit/provisioner/decision_scene.h"

/// The claim "a" of a ClaimRow and the volume that was made for it, on the way to being bound.
namespace lpp::testing {

inline constexpr const char* kClaimsVolume = "pvc-uid-a";

inline VolumeBuilder claims_volume(const std::string& phase) {
  return volume(kClaimsVolume)
      .uid("uid-v")
      .host_path(kClaimPath)
      .claim("default", "a")
      .resource_version("5")
      .phase(phase);
}

/// It names its volume; its phase does not say so yet.
inline ClaimBuilder half_bound_claim() {
  return claim("a")
      .node("n1")
      .volume(kClaimsVolume)
      .phase("Pending")
      .annotation(std::string(provisioner::kBindCompleted), "yes");
}

/// It has a selected node, and the control plane has not asked for its volume.
inline ClaimBuilder unasked_claim() { return claim("a").no_provisioner().node("n1"); }

}  // namespace lpp::testing
