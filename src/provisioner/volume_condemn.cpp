// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/names.h"
#include "provisioner/volume_reconciler.h"

// Whether a directory is to be removed, by the API server's word.

namespace lpp::provisioner {

namespace {

bool contains(const std::vector<std::string>& versions, const std::string& version) {
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

}  // namespace

/// The cache may be behind: the volume may be gone and its path another one's by now, bound again,
/// or to be kept; or another volume may have come to keep the directory. Data is not removed on
/// such a word. So the volume is written in exactly the version that was decided from, and its
/// removal begins only when the cache shows that: what is written to volumes arrives in its order,
/// and the cache then has whatever was written to any volume before. That a watch is connected, or
/// was heard lately, would say less.
std::optional<VolumeReconciler::Next> VolumeReconciler::is_not_to_begin(Pass& pass) {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  Memory& memory = pass.scene.memory;
  const TimePoint now = world_.clock.now();
  const bool waits = memory.condemned == volume.meta.uid && memory.condemned_in;
  if (waits && !contains(*memory.condemned_in, volume.meta.resource_version)) {
    memory.condemned_in.reset();
    remember(pass);
    return std::nullopt;
  }
  // Longer than that: a cluster that was restored from a backup may have lost what we wrote.
  constexpr auto kMayBeLost = 4 * kRecheck;
  if (waits && now < memory.condemned_at + kMayBeLost) return await_cache(pass);
  const auto condemned = condemn(volume, memory);
  if (!condemned.ok()) return reporter_.api_failed(subject(pass), condemned.error());
  if (!*condemned) return waits ? await_cache(pass) : Next(Action::await_change(kRecheck));
  memory.condemned = volume.meta.uid;
  remember(pass);
  const auto latest = world_.volumes.get(volume.meta.key());
  if (latest != nullptr && !contains(*memory.condemned_in, latest->meta.resource_version)) {
    return Next();  // looks again
  }
  return await_cache(pass);
}

VolumeReconciler::Next VolumeReconciler::await_cache(Pass& pass) {
  if (world_.clock.now() >= pass.scene.memory.condemned_at + kRecheck) {
    reporter_.tell(
        subject(pass),
        "waits, for it is not known whether another volume has come to keep directory " +
            pass.scene.volume->path +
            ": what the API server tells of changes of volumes comes late, or not at all");
  }
  return Action::await_change(kRecheck);
}

/// Once its object is deleted, under our finalizer, nobody can bind it, and it stays until the
/// directory is gone.
Result<bool> VolumeReconciler::condemn(const k8s::PersistentVolume& seen, Memory& memory) {
  k8s::PersistentVolume held = seen;
  if (!seen.meta.deleting() && !has_finalizer(seen)) {
    const auto patched =
        patch_finalizer(seen, Finalizer::kAdd, k8s::Answer::kObject, Guard::kVersion);
    if (!patched.ok())
      return k8s::is_stale(patched.error()) ? Result<bool>(false) : patched.error();
    LPP_ASSIGN_OR_RETURN(held, k8s::decode<k8s::PersistentVolume>(*patched), "patched volume");
    if (held.path != seen.path || !wants_delete(held, world_.claims)) return false;
  }
  // "Released" is the control plane's own word for the claim that the volume was made for; else the
  // claim is asked for.
  if (may_be_given_away(held) || (seen.meta.deleting() && held.phase != "Released")) {
    auto gone = claim_is_gone(held);
    if (!gone.ok() || !*gone) return gone;
  }
  const TimePoint asked = world_.clock.now();
  const auto written =
      seen.meta.deleting() ? note_removal(held) : delete_object(held, Guard::kVersion);
  if (!written.ok()) {
    return k8s::is_stale(written.error()) ? Result<bool>(false) : written.error();
  }
  memory.condemned_at = asked;
  memory.condemned_in = {seen.meta.resource_version, held.meta.resource_version};
  return true;
}

Result<void> VolumeReconciler::note_removal(const k8s::PersistentVolume& seen) {
  const nlohmann::json patch{
      {"metadata",
       {{"uid", seen.meta.uid},
        {"resourceVersion", seen.meta.resource_version},
        {"annotations", {{kRemovalAskedAt, format_rfc3339_micro(world_.clock.wall_now())}}}}}};
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumes, seen.meta.key(), k8s::PatchType::kMerge, patch,
                          {}, k8s::Answer::kIdentity);
  if (!patched.ok()) return patched.error().wrap("note on the volume that its removal is due");
  return {};
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
