// SPDX-License-Identifier: Apache-2.0
// What ties a claim to its volume: which of it is written by us, and how.

#include "provisioner/claim_binding.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/binding.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"

namespace lpp::provisioner {

using nlohmann::json;

namespace {

/// The cache shows by then what was written; a conflict is with a version that is not there yet.
constexpr std::chrono::seconds kBoundSoon{2};
constexpr std::chrono::seconds kConflictWait{1};
/// More conflicts than these mean that somebody else is at work on the claim.
constexpr int kMostTries = 3;

bool is_filesystem(const std::string& mode) { return mode.empty() || mode == "Filesystem"; }

bool is_one_of(std::string_view phase, std::initializer_list<std::string_view> phases) {
  return std::find(phases.begin(), phases.end(), phase) != phases.end();
}

/// What is missing, if it is for us to write. The claim and the volume are there and know each
/// other's UID, as difference() says.
std::optional<for_claim::Bind> missing(const ClaimScene& scene) {
  const k8s::PersistentVolumeClaim& claim = *scene.claim;
  const k8s::PersistentVolume& volume = *scene.volume;
  if (claim.meta.deleting() || volume.meta.deleting()) return std::nullopt;
  if (claim.meta.resource_version.empty() || volume.meta.resource_version.empty()) {
    return std::nullopt;
  }
  if (scene.storage_class == nullptr || !scene.names.has(scene.storage_class->provisioner) ||
      volume.storage_class_name != claim.class_name()) {
    return std::nullopt;
  }
  if (!is_one_of(volume.phase, {"", "Pending", "Available", "Bound"})) return std::nullopt;
  if (volume.capacity.empty() || volume.access_modes.empty()) return std::nullopt;
  for_claim::Bind bind{.volume_status = volume.phase != "Bound" &&
                                        scene.memory.binding.bound_volume_uid != volume.meta.uid};
  if (claim.volume_name.empty()) {
    if (!should_provision(claim, scene.storage_class.get(), scene.names) ||
        k8s::find(claim.meta.annotations, kBindCompleted) != nullptr ||
        !is_filesystem(claim.volume_mode) || !is_filesystem(volume.volume_mode)) {
      return std::nullopt;
    }
    bind.claim = true;
    return bind;
  }
  // Named by somebody who has not finished, as we or the binder may have been cut short.
  if (claim.volume_name != volume.meta.name || claim.phase == "Bound" ||
      k8s::find(claim.meta.annotations, kBindCompleted) == nullptr) {
    return std::nullopt;
  }
  return bind;
}

json guarded(const k8s::ObjectMeta& seen, const std::string& version) {
  return {{"metadata", {{"uid", seen.uid}, {"resourceVersion", version}}}};
}

std::string version_in(const json& object) {
  const auto meta = object.find("metadata");
  return meta == object.end() || !meta->is_object() ? "" : meta->value("resourceVersion", "");
}

/// What was written a moment ago, or conflicted with what the cache does not show yet.
bool is_held(const ClaimScene& scene) {
  const Memory::Binding& last = scene.memory.binding;
  const auto is_seen = [&](const std::string& version) {
    return version == scene.claim->meta.resource_version ||
           version == scene.volume->meta.resource_version;
  };
  return scene.now < last.hold_until &&
         (last.outdated.empty() ||
          std::any_of(last.outdated.begin(), last.outdated.end(), is_seen));
}

}  // namespace

void note_waits(ClaimScene& scene) {
  const auto note = [&](std::optional<TimePoint>& since, bool is_so) {
    since = is_so ? since.value_or(scene.now) : std::optional<TimePoint>();
  };
  const k8s::PersistentVolumeClaim* claim = scene.claim.get();
  // The cache may not show the volume yet.
  const bool is_there = scene.volume != nullptr || scene.memory.published;
  note(scene.memory.lost, claim != nullptr && claim->phase == "Lost");
  note(scene.memory.unasked, claim != nullptr && claim->volume_name.empty() && is_there &&
                                 !asks_for(*claim, scene.names));
}

std::optional<ClaimDecision> decide_binding(const ClaimScene& scene) {
  const Memory::Binding& last = scene.memory.binding;
  const auto what = missing(scene);
  if (!what) return std::nullopt;
  if (!last.failure.empty() && !last.left) {
    return for_claim::LeaveUnbound{last.failure, last.message};
  }
  if (!scene.binds) return std::nullopt;
  if (last.left) return for_claim::Wait{};  // remembered until the claim is bound, or gone
  if (is_held(scene)) return for_claim::Wait{.at_most = last.hold_until - scene.now};
  TimePoint due{};
  // The binder says so of a claim that it knows without knowing its volume yet. It sees it soon.
  if (scene.memory.lost) due = *scene.memory.lost + kBoundSoon;
  // The controller manager may be about to write its annotation on the claim. Where the claim has
  // changed meanwhile that fails, and an Event says that provisioning has failed.
  if (scene.memory.unasked) due = std::max(due, *scene.memory.unasked + Binding::kBinderLimit);
  if (scene.now < due) return for_claim::Wait{.at_most = due - scene.now};
  return *what;
}

/// In the order in which the binder can go on from any of them: a volume that says it is bound
/// binds nobody, a claim that says so needs the volume.
Result<void> ClaimReconciler::write_binding(ClaimScene& scene, const for_claim::Bind& decision) {
  Memory::Binding& last = scene.memory.binding;
  const k8s::PersistentVolumeClaim& claim = *scene.claim;
  const k8s::PersistentVolume& volume = *scene.volume;
  if (decision.volume_status) {
    last.outdated = {volume.meta.resource_version};
    json patch = guarded(volume.meta, volume.meta.resource_version);
    patch["status"] = {{"phase", "Bound"}};
    const auto patched =
        world_.client.patch(k8s::kPersistentVolumes, volume.meta.key(), k8s::PatchType::kMerge,
                            patch, "status", k8s::Answer::kIdentity);
    if (!patched.ok()) return patched.error().wrap("write the volume's status");
    last.bound_volume_uid = volume.meta.uid;
  }
  last.outdated = {claim.meta.resource_version};
  std::string version = claim.meta.resource_version;
  if (decision.claim) {
    json patch = guarded(claim.meta, version);
    patch["metadata"]["annotations"] = {{kBindCompleted, "yes"}, {kBoundByController, "yes"}};
    patch["spec"] = {{"volumeName", volume.meta.name}};
    const auto patched =
        world_.client.patch(k8s::kPersistentVolumeClaims, claim.meta.key(), k8s::PatchType::kMerge,
                            patch, {}, k8s::Answer::kIdentity);
    if (!patched.ok()) return patched.error().wrap("bind the claim");
    version = version_in(*patched);
    if (version.empty())
      return Error{.code = ErrorCode::kInternal,
                   .message = "the API server's answer names no version of the claim"};
    last.outdated.push_back(version);
  }
  json patch = guarded(claim.meta, version);
  patch["status"] = {{"phase", "Bound"},
                     {"accessModes", volume.access_modes},
                     {"capacity", {{"storage", volume.capacity}}}};
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumeClaims, claim.meta.key(), k8s::PatchType::kMerge,
                          patch, "status", k8s::Answer::kIdentity);
  if (!patched.ok()) return patched.error().wrap("write the claim's status");
  last.outdated.clear();
  return {};
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Bind& decision) {
  Memory::Binding& last = pass.scene.memory.binding;
  ++last.tries;
  last.hold_until = pass.scene.now + kBoundSoon;
  const auto written = write_binding(pass.scene, decision);
  if (written.ok()) {
    log::debug("claim bound");
    world_.figures.bound(kBound);
    remember(pass);
    return Action::await_change(kBoundSoon);
  }
  const Error& error = written.error();
  if (error.is(ErrorCode::kCancelled)) return Action::done();
  last.message = error.message;
  if (Binding::lacks_right(error)) {
    world_.binding.refused(error);
    last.failure = kBindingForbidden;
  } else if (!k8s::is_stale(error)) {
    last.failure = kBindingFailed;
  } else if (last.tries >= kMostTries) {
    last.failure = kBindingConflict;
  } else {
    // Somebody has changed it meanwhile: what it is now decides, once the cache shows it.
    last.hold_until = pass.scene.now + kConflictWait;
    remember(pass);
    return Action::await_change(kConflictWait);
  }
  remember(pass);
  return std::nullopt;
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass,
                                               const for_claim::LeaveUnbound& decision) {
  pass.scene.memory.binding.left = true;
  remember(pass);
  world_.figures.bound(decision.reason);
  // What is forbidden is told once for all of them.
  if (decision.reason != kBindingForbidden) {
    log::warn("the claim is left to the control plane to bind: {}", decision.message);
  }
  return std::nullopt;
}

/// Right after its creation, without a wait for the cache to show the volume. What must wait for
/// something else is left to the step that follows when the cache does.
void ClaimReconciler::bind_at_once(Pass& pass, k8s::PersistentVolume created) {
  ClaimScene& scene = pass.scene;
  scene.now = world_.clock.now();
  scene.volume = std::make_shared<const k8s::PersistentVolume>(std::move(created));
  scene.binds = world_.binding.is_ours();
  note_waits(scene);
  for (int i = 0; i < 2; ++i) {  // it may be written, and then be left
    const auto decision = decide_binding(scene);
    if (!decision) return;
    if (const auto* const bind = std::get_if<for_claim::Bind>(&*decision)) {
      if (perform(pass, *bind)) return;
    } else if (const auto* const left = std::get_if<for_claim::LeaveUnbound>(&*decision)) {
      perform(pass, *left);
      return;
    } else {
      remember(pass);  // since when it waits
      return;
    }
  }
}

}  // namespace lpp::provisioner
