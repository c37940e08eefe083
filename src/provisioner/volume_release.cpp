// SPDX-License-Identifier: Apache-2.0
// What a volume's phase says when its claim has gone.

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/volume_reconciler.h"

namespace lpp::provisioner {

/// A binder that has not heard yet that the claim is gone calls its volume Bound once more, even
/// when it is being deleted. A UID does not come back: that changes nothing.
bool VolumeReconciler::is_wanted(const k8s::PersistentVolume& volume, const Memory& memory) const {
  if (wants_delete(volume, world_.claims)) return true;
  return volume.phase == "Bound" && volume.meta.deleting() && has_finalizer(volume) &&
         volume.reclaim_policy == "Delete" && !volume.claim_uid.empty() &&
         memory.claim_gone == volume.claim_uid;
}

/// Not by the cache's word: a claim that it does not show may be there. What is released is removed
/// like any other released volume, so nothing but this one write is done here.
VolumeReconciler::Next VolumeReconciler::perform(Pass& pass,
                                                 const for_volume::MarkReleased& /*decision*/) {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  Memory& memory = pass.scene.memory;
  const auto wait = [&](Duration time) {
    memory.claim_asked_at = pass.scene.now + time;
    remember(pass);
    return Action::await_change(time);
  };
  const auto claim = read_claim(world_, volume.claim);
  if (!claim.ok()) return wait(kRecheck);  // the binder goes on without us
  // The cache of claims may only be behind.
  if (*claim && (*claim)->meta.uid == volume.claim_uid) return wait(kRecheck);
  memory.claim_gone = volume.claim_uid;
  const nlohmann::json patch{
      {"metadata", {{"uid", volume.meta.uid}, {"resourceVersion", volume.meta.resource_version}}},
      {"status", {{"phase", "Released"}}}};
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumes, volume.meta.key(), k8s::PatchType::kMerge, patch,
                          "status", k8s::Answer::kIdentity);
  if (patched.ok()) {
    log::debug("volume released, its claim is gone");
  } else if (Binding::lacks_right(patched.error())) {
    world_.binding.refused(patched.error());
  }
  // Somebody has written it meanwhile, perhaps we: the cache shows it in any case.
  if (!patched.ok() && patched.error().is(ErrorCode::kConflict)) return wait(kSoon);
  return wait(kRecheck);
}

}  // namespace lpp::provisioner
