// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/scene.h"

namespace lpp::testing {

inline constexpr const char* kReleasedName = "pvc-uid-a";
inline constexpr const char* kReleasedPath = "/data/pvc-uid-a_default_a";
inline constexpr const char* kConflictBody = R"({"kind":"Status","reason":"Conflict","code":409})";
inline constexpr const char* kOurFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";

/// Made by a version that knew no finalizer.
inline VolumeBuilder not_held() {
  return volume(kReleasedName)
      .claim("default", "a")
      .released()
      .host_path(kReleasedPath)
      .node("n1")
      .annotation("local.path.provisioner/selected-node", "n1")
      .finalizer("kubernetes.io/pv-protection");
}

inline VolumeBuilder released() { return not_held().finalizer(kOurFinalizer); }

/// The steps of that volume.
struct VolumeBed : Scene {
  provisioner::Action step() { return reconciler.step(kReleasedName); }
  provisioner::VolumeReconciler reconciler{world, memories};
};

}  // namespace lpp::testing
