// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/names.h"
#include "provisioner/volume_reconciler.h"
#include "provisioner/volume_removal.h"

// Whether a directory is to be removed, by the API server's word.

namespace lpp::provisioner {

/// The cache may be behind: the volume may be gone and its path another one's by now, bound again,
/// or to be kept. Data is not removed on such a word. The one way in is to delete the object in
/// exactly the version that was decided from, under our finalizer: from then on nobody can bind it,
/// and it stays until the directory is gone.
Result<bool> VolumeReconciler::condemn(const k8s::PersistentVolume& seen, Memory& memory) {
  if (!seen.meta.deleting()) {
    k8s::PersistentVolume held = seen;
    if (!has_finalizer(seen)) {
      const auto patched = patch_finalizer(seen, Finalizer::kAdd, k8s::Answer::kObject);
      if (!patched.ok())
        return k8s::is_stale(patched.error()) ? Result<bool>(false) : patched.error();
      LPP_ASSIGN_OR_RETURN(held, k8s::decode<k8s::PersistentVolume>(*patched), "patched volume");
      if (held.path != seen.path || !wants_delete(held, world_.claims)) return false;
    }
    if (may_be_given_away(held)) {
      auto gone = claim_is_gone(held);
      if (!gone.ok() || !*gone) return gone;
    }
    const TimePoint asked = world_.clock.now();
    const auto deleted = delete_object(held, Guard::kVersion);
    if (deleted.ok()) {
      memory.condemned_at = asked;
      return true;
    }
    if (k8s::is_stale(deleted.error())) return false;
    return deleted.error();
  }
  LPP_ASSIGN_OR_RETURN(auto volume, read_condemned(seen, memory), "volume");
  // "Released" is the control plane's own word for the claim that the volume was made for; else the
  // claim is asked for, which may take its time.
  if (!volume || (volume->phase == "Released" && !may_be_given_away(*volume))) {
    return volume.has_value();
  }
  auto gone = claim_is_gone(*volume);
  if (!gone.ok() || !*gone) return gone;
  LPP_ASSIGN_OR_RETURN(volume, read_condemned(seen, memory), "volume");
  return volume.has_value();
}

Result<std::optional<k8s::PersistentVolume>> VolumeReconciler::read_condemned(
    const k8s::PersistentVolume& seen, Memory& memory) {
  const TimePoint asked = world_.clock.now();
  LPP_ASSIGN_OR_RETURN(auto volume, read_volume(world_, seen.meta.name), "read");
  if (!volume || volume->meta.uid != seen.meta.uid || volume->path != seen.path ||
      !is_wanted(*volume, memory)) {
    return std::optional<k8s::PersistentVolume>();
  }
  memory.condemned_at = asked;
  return volume;
}

Result<bool> VolumeReconciler::claim_is_gone(const k8s::PersistentVolume& volume) {
  if (volume.claim.name.empty()) return true;
  const auto claim = read_claim(world_, volume.claim);
  if (!claim.ok()) return claim.error();
  if (!*claim || (*claim)->meta.uid != volume.claim_uid) return true;
  if (volume.phase == "Released") return !counts_on(&**claim, volume);
  return (*claim)->volume_name != volume.meta.name;
}

/// What begins unasked is to be called off in time, also where the cache is behind.
Result<bool> VolumeReconciler::is_condemned_still(Pass& pass) {
  Memory& memory = pass.scene.memory;
  if (world_.clock.now() - memory.condemned_at < kWordIsGood) return true;
  LPP_ASSIGN_OR_RETURN(const auto volume, read_condemned(*pass.scene.volume, memory), "volume");
  remember(pass);
  return volume.has_value();
}

/// It begins anew, and may come too late again, where a node, a network or the API server is too
/// slow for it.
void VolumeReconciler::came_too_late(Pass& pass, const operation::Operation& operation) {
  constexpr int kMostAtOnce = 4;
  Memory& memory = pass.scene.memory;
  if (++memory.outdated > kMostAtOnce) {
    memory.retry = memories_.failed(memory.retry, operation.attempt, pass.scene.settings());
    reporter_.tell(subject(pass),
                   "its removal was ordered several times, and each time it was too late to begin, "
                   "since whether it is wanted has to be asked right before: node " +
                       operation.node + " or the API server is too slow for that, or too busy");
  }
  remember(pass);
}

}  // namespace lpp::provisioner
