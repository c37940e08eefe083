// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_removal.h"

#include "provisioner/plan.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

bool wants_delete(const k8s::PersistentVolume& volume,
                  const k8s::Store<k8s::PersistentVolumeClaim>& claims) {
  if (volume.reclaim_policy != "Delete") return false;
  // One whose claimRef somebody emptied is free for the next claim, or kept for one, whatever its
  // phase still says; so is one that was given to another claim.
  const bool is_released =
      volume.phase == "Released" &&
      !(may_be_given_away(volume) && counts_on(claims.get(volume.claim).get(), volume));
  if (!volume.meta.deleting()) return is_released && !volume.claim_uid.empty();
  if (!has_finalizer(volume)) return false;
  if (is_released) return true;
  if (volume.phase == "Released") return false;
  if (volume.phase == "Bound") return false;
  // Deleted before it was ever bound, or after its claim was lost: only if no claim counts on it.
  const auto claim = claims.get(volume.claim);
  return claim == nullptr || claim->meta.uid != volume.claim_uid ||
         claim->volume_name != volume.meta.name;
}

bool may_be_given_away(const k8s::PersistentVolume& volume) {
  return volume.meta.name != volume_name_of(volume.claim_uid);
}

bool counts_on(const k8s::PersistentVolumeClaim* claim, const k8s::PersistentVolume& volume) {
  return claim != nullptr && claim->meta.uid == volume.claim_uid &&
         (claim->volume_name.empty() || claim->volume_name == volume.meta.name);
}

Result<void> check_removable(const k8s::PersistentVolume& volume, const config::Config& config) {
  return check_place(volume, config, "remove");
}

}  // namespace lpp::provisioner
