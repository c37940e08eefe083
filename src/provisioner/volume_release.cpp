// SPDX-License-Identifier: Apache-2.0
// A volume whose claim has gone: its phase before the directory is removed, its object afterwards.

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/names.h"
#include "provisioner/volume_reconciler.h"
#include "provisioner/volume_removal.h"

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

/// The directory is gone (or out of reach for good): the object goes, if it is not on its way yet,
/// then our finalizer; the removal's record last, when the volume is seen to be gone, because it
/// says that the work was done.
VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Release& decision) {
  for (const auto& removal : pass.scene.removals) {
    if (removal.progress.over()) note_told(world_, *removal.operation, removal.progress);
  }
  if (decision.was_absent) {
    const auto told =
        tell(pass, kDirectoryMissing,
             "directory " + pass.scene.volume->path +
                 (pass.scene.node.name.empty() ? "" : " on node " + pass.scene.node.name) +
                 " was not there when it was to be removed: if its disk was not mounted, the data "
                 "is still on it" +
                 (decision.was_tried_before ? "; or an earlier attempt has removed it" : ""));
    if (!told.ok()) return reporter_.api_failed(subject(pass), told.error());
  }
  return let_object_go(pass, Guard::kUid);
}

/// With Guard::kVersion the directory is still there, and the policy may have been changed back:
/// nothing goes but in the version that was decided from.
Action VolumeReconciler::let_object_go(Pass& pass, Guard guard) {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  // The cache may show neither that we have deleted it nor the finalizer that holds it since.
  const bool condemned = guard == Guard::kUid && pass.scene.memory.condemned == volume.meta.uid;
  if (!volume.meta.deleting() && !condemned) {
    const auto deleted = delete_object(volume, guard);
    if (!deleted.ok() && deleted.error().is(ErrorCode::kConflict)) {
      return Action::await_change(kSoon);
    }
    if (!deleted.ok() && !deleted.error().is(ErrorCode::kNotFound)) {
      return reporter_.api_failed(subject(pass), deleted.error());
    }
    // Its version is another one now: the cache will show it.
    if (guard == Guard::kVersion && has_finalizer(volume)) return Action::await_change(kSoon);
  }
  if (has_finalizer(volume) || condemned) {
    const auto patched = patch_finalizer(volume, Finalizer::kRemove, k8s::Answer::kIdentity, guard);
    if (!patched.ok() && patched.error().is(ErrorCode::kConflict)) {
      return Action::await_change(kSoon);
    }
    if (!patched.ok() && !patched.error().is(ErrorCode::kNotFound)) {
      return reporter_.api_failed(subject(pass), patched.error());
    }
  }
  // Somebody else's finalizer may keep it: then this is repeated, but it is no other deletion.
  if (pass.scene.memory.released != TimePoint{}) {
    world_.figures.forget(operation::Kind::kRemove, volume.meta.name);
  } else {
    world_.figures.succeeded(operation::Kind::kRemove, volume.meta.name, volume.storage_class_name);
  }
  const log::Scope fields({{"path", volume.path}});
  log::info("volume deleted");
  Memory released;
  released.released = pass.scene.now + kRecheck;
  memories_.set(volume.meta.name, released);
  return Action::await_change(kRecheck);
}

/// A strategic merge touches our entry of the list only, whatever else has changed meanwhile; the
/// UID makes the server refuse if the name stands for another volume by now.
Result<nlohmann::json> VolumeReconciler::patch_finalizer(const k8s::PersistentVolume& volume,
                                                         Finalizer change, k8s::Answer answer,
                                                         Guard guard) {
  nlohmann::json patch{{"metadata", {{"uid", volume.meta.uid}}}};
  if (guard == Guard::kVersion) {
    patch["metadata"]["resourceVersion"] = volume.meta.resource_version;
  }
  const char* const list =
      change == Finalizer::kAdd ? "finalizers" : "$deleteFromPrimitiveList/finalizers";
  patch["metadata"][list] = nlohmann::json::array({kFinalizer});
  auto patched = world_.client.patch(k8s::kPersistentVolumes, volume.meta.key(),
                                     k8s::PatchType::kStrategicMerge, patch, {}, answer);
  if (!patched.ok()) return patched.error().wrap("patch the volume's finalizers");
  return patched;
}

Result<void> VolumeReconciler::delete_object(const k8s::PersistentVolume& seen, Guard guard) {
  const auto deleted = world_.client.remove(
      k8s::kPersistentVolumes, seen.meta.key(),
      {.uid = seen.meta.uid,
       .resource_version = guard == Guard::kVersion ? seen.meta.resource_version : ""});
  if (!deleted.ok()) return deleted.error().wrap("delete volume");
  return {};
}

}  // namespace lpp::provisioner
