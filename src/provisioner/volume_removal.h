// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/config.h"
#include "k8s/objects.h"
#include "k8s/store.h"

/// When a volume's directory is to be removed, and whether it may be. What becomes of it, step by
/// step: volume_decision.h.
namespace lpp::provisioner {

/// Whether the volume's directory is to be removed now: reclaim policy Delete, and Released; or
/// being deleted under our finalizer while no claim is bound to it (rule A8.3).
bool wants_delete(const k8s::PersistentVolume& volume,
                  const k8s::Store<k8s::PersistentVolumeClaim>& claims);

/// Whether its claimRef may have come to name another claim since it was released, for it is not
/// the claim that the volume was made for.
bool may_be_given_away(const k8s::PersistentVolume& volume);

/// Whether the claim (or none) is the one of claimRef, and is bound to the volume or may be.
bool counts_on(const k8s::PersistentVolumeClaim* claim, const k8s::PersistentVolume& volume);

/// kInvalid with the reason when the volume's directory may not be removed, see check_place().
Result<void> check_removable(const k8s::PersistentVolume& volume, const config::Config& config);

}  // namespace lpp::provisioner
