// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_decision.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "k8s/quantity.h"
#include "provisioner/binding.h"
#include "provisioner/names.h"
#include "provisioner/node_lost.h"
#include "provisioner/volume_removal.h"
#include "provisioner/volume_rules.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

using operation::Operation;
using operation::Progress;
using operation::Recorded;
using State = Progress::State;

namespace {

for_volume::Wait wait(const VolumeScene& scene) {
  Duration least = kRecheck;
  for (const Recorded& removal : scene.removals) {
    if (removal.progress.changes_at && *removal.progress.changes_at > scene.now) {
      least = std::min(least, *removal.progress.changes_at - scene.now);
    }
  }
  return {.at_most = least};
}

/// Removals that are of another volume of this name, or that nobody wants.
std::optional<VolumeDecision> stop(const Recorded& removal, bool when_quiet) {
  if (removal.progress.state == State::kEnding) return std::nullopt;
  if (removal.progress.over()) return for_volume::Forget{removal.operation, when_quiet};
  return for_volume::Cancel{removal};
}

/// One that does not go is told.
VolumeDecision stuck_or_wait(const VolumeScene& scene) {
  for (const Recorded& removal : scene.removals) {
    if (scene.volume != nullptr && !removal.progress.message.empty()) {
      return for_volume::Follow{removal};
    }
  }
  return wait(scene);
}

std::optional<VolumeDecision> stop_all(const VolumeScene& scene, bool when_quiet) {
  for (const Recorded& removal : scene.removals) {
    if (auto decision = stop(removal, when_quiet)) return decision;
  }
  if (scene.removals.empty()) return std::nullopt;
  return stuck_or_wait(scene);
}

/// Our part is done, and somebody else's finalizer keeps the object for a while.
bool was_let_go(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  if (!volume.meta.deleting() || has_finalizer(volume)) return false;
  return scene.memory.released != TimePoint{} ||
         std::any_of(scene.removals.begin(), scene.removals.end(), [&](const Recorded& removal) {
           return removal.operation->owner_uid == volume.meta.uid &&
                  removal.progress.state == State::kSucceeded;
         });
}

/// Its claim is gone, and only its phase does not say so yet.
std::optional<VolumeDecision> release(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  if (!scene.binds || !scene.memory.abandoned || volume.claim_uid.empty() ||
      volume.reclaim_policy != "Delete" || !has_finalizer(volume)) {
    return std::nullopt;
  }
  if (volume.phase != "Bound" && volume.phase != "Available" && volume.phase != "Pending") {
    return std::nullopt;
  }
  // The binder says so itself.
  const TimePoint due =
      std::max(*scene.memory.abandoned + Binding::kBinderLimit, scene.memory.claim_asked_at);
  if (scene.now < due) return for_volume::Wait{.at_most = due - scene.now};
  return for_volume::MarkReleased{};
}

VolumeDecision keep(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  const bool wanted = volume.reclaim_policy == "Delete";
  const bool present = has_finalizer(volume);
  if (wanted && !present && !volume.meta.deleting() && volume.phase == "Bound") {
    return for_volume::AddFinalizer{};
  }
  if (!wanted && present) return for_volume::RemoveFinalizer{};
  if (auto decision = decide_node_lost(scene)) return *std::move(decision);
  if (wanted && !present && volume.meta.deleting()) {
    if (held(scene.memory.retry, scene.now, scene.seen())) return for_volume::Wait{};
    return for_volume::Refuse{
        "it was deleted while no finalizer of ours was on it, and none can be added any more: its "
        "directory " +
        volume.path + " stays when the volume goes; remove it by hand if nobody needs it"};
  }
  return for_volume::Wait{.forget = true};
}

Operation removal_of(const VolumeScene& scene, int attempt) {
  const k8s::PersistentVolume& volume = *scene.volume;
  Operation operation;
  operation.kind = operation::Kind::kRemove;
  operation.volume_name = volume.meta.name;
  operation.claim = volume.claim;
  operation.owner_uid = volume.meta.uid;
  if (!may_be_given_away(volume)) operation.claim_uid = volume.claim_uid;
  operation.attempt = attempt;
  operation.storage_class = volume.storage_class_name;
  operation.node = scene.node.name;
  operation.path = volume.path;
  if (const auto* disk = k8s::find(volume.meta.annotations, kVolumeDisk)) operation.disk = *disk;
  if (!volume.volume_mode.empty()) operation.volume_mode = volume.volume_mode;
  operation.base_path = base_path_of(operation.node, volume, *scene.config);
  operation.require_mount = scene.config->must_be_mounted(operation.node, operation.base_path);
  if (const auto size = k8s::Quantity::parse(volume.capacity); size.ok()) {
    operation.size_bytes = size->value();
  }
  return operation;
}

/// The latest removal of this very volume.
const Recorded* current(const VolumeScene& scene) {
  const Recorded* latest = nullptr;
  for (const Recorded& removal : scene.removals) {
    if (removal.operation->owner_uid != scene.volume->meta.uid) continue;
    if (latest == nullptr || removal.operation->attempt > latest->operation->attempt) {
      latest = &removal;
    }
  }
  return latest;
}

int next_attempt(const VolumeScene& scene) {
  int last = std::max(scene.memory.retry.number, scene.last_other);
  for (const Recorded& removal : scene.removals) {
    last = std::max(last, removal.operation->attempt);
  }
  return last + 1;
}

/// What else is on record for the volume comes to its end first.
std::optional<VolumeDecision> clear_away(const VolumeScene& scene,
                                         const std::vector<Recorded>& others) {
  for (const Recorded& other : others) {
    if (other.progress.state == State::kEnding) {
      if (other.progress.acts_no_more) continue;
      if (scene.volume != nullptr && !other.progress.message.empty()) {
        return for_volume::Follow{other};
      }
      return wait(scene);
    }
    if (other.progress.over()) return for_volume::Forget{other.operation, false};
    return for_volume::Cancel{other};
  }
  return std::nullopt;
}

/// Whether, and how, a removal may begin.
VolumeDecision begin(const VolumeScene& scene, const Recorded* failed) {
  const k8s::PersistentVolume& volume = *scene.volume;
  for (const std::string& seen : {scene.seen(), scene.settings()}) {
    if (const auto left = held(scene.memory.retry, scene.now, seen)) {
      return for_volume::Wait{.at_most = *left};
    }
  }
  if (volume.source == k8s::VolumeSource::kOther || volume.path.empty()) {
    return for_volume::Refuse{"the volume has neither hostPath.path nor local.path"};
  }
  if (scene.node.kind == VolumeNode::Kind::kUnclear) {
    return for_volume::Refuse{"it is not clear on which node the directory " + volume.path +
                              " is: " + scene.node.description +
                              "; say it with the volume's annotation " +
                              std::string(kVolumeSelectedNode)};
  }
  if (scene.node.kind == VolumeNode::Kind::kGone && scene.node.name.empty()) {
    // A label that somebody has edited looks just the same.
    return for_volume::Refuse{"no node is " + scene.node.description + ", where the directory " +
                              volume.path +
                              " is; if its node is gone for good, name it with the volume's "
                              "annotation " +
                              std::string(kVolumeSelectedNode)};
  }
  if (scene.node.kind == VolumeNode::Kind::kGone) {
    return for_volume::LetGo{"node " + scene.node.description +
                                 " does not exist any more: its directory " + volume.path +
                                 " cannot be removed, the volume is let go",
                             scene.node.name};
  }
  if (const auto removable = check_removable(volume, *scene.config); !removable.ok()) {
    return for_volume::Refuse{removable.error().message};
  }
  if (scene.overlapping != nullptr) {
    if (!scene.overlapping_takes_it_along) return for_volume::PathTaken{};
    return for_volume::LetGo{"directory " + volume.path + " goes with that of volume " +
                             scene.overlapping->meta.name + ", " + scene.overlapping->path +
                             ", which is to be removed too: this volume is let go"};
  }
  // What records its making would be taken for something to be taken back, once the volume is gone.
  if (auto decision = clear_away(scene, scene.makes)) return *std::move(decision);
  Operation operation = removal_of(scene, next_attempt(scene));
  if (failed != nullptr && failed->operation->path == operation.path) {
    operation.base_path = failed->operation->base_path;  // the configuration may have changed since
    operation.require_mount = scene.config->must_be_mounted(operation.node, operation.base_path);
  }
  return for_volume::Remove{std::move(operation)};
}

/// Its claim was let go since its node was lost: whoever has the node now, nothing is removed
/// there.
VolumeDecision leave(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  if (auto decision = stop_all(scene, false)) return *std::move(decision);
  if (scene.now < scene.memory.released) return wait(scene);
  if (auto decision = clear_away(scene, scene.makes)) return *std::move(decision);
  return for_volume::LetGo{
      .why = "its claim was let go since its node was deleted from the cluster: its directory " +
             volume.path + (scene.node.name.empty() ? "" : " on node " + scene.node.name) +
             " stays, the volume is let go",
      .node = {},
      .stays = true};
}

VolumeDecision remove(const VolumeScene& scene) {
  if (is_node_lost(*scene.volume)) return leave(scene);
  // Another volume has come to keep the directory: somebody took it back in time, perhaps.
  const bool is_kept = scene.overlapping != nullptr && !scene.overlapping_goes_too;
  for (const Recorded& one : scene.removals) {
    const bool acts = !one.progress.over() && one.progress.state != State::kEnding;
    if (is_kept && acts) return for_volume::Cancel{one};
  }
  const Recorded* const removal = current(scene);
  for (const Recorded& other : scene.removals) {
    if (&other == removal) continue;
    const bool is_earlier = other.operation->owner_uid == scene.volume->meta.uid;
    if (auto decision = stop(other, false)) return *std::move(decision);
    if (!is_earlier)
      return stuck_or_wait(scene);  // of another volume of this name: until it is gone
  }
  if (removal == nullptr) {
    if (scene.now < scene.memory.released) return wait(scene);
    const auto& missed = scene.memory.in_flight;
    if (missed != nullptr && missed->owner_uid == scene.volume->meta.uid &&
        missed->attempt > scene.memory.retry.number) {
      return for_volume::Failed{{missed, scene.lost}};
    }
    return begin(scene, nullptr);
  }
  if (removal->operation->path != scene.volume->path ||
      (scene.node.kind == VolumeNode::Kind::kNode && removal->operation->node != scene.node.name)) {
    if (auto decision = stop(*removal, false)) return *std::move(decision);
    return stuck_or_wait(scene);
  }
  if (removal->progress.outdated) return for_volume::Cancel{*removal};
  const bool is_counted = removal->operation->attempt <= scene.memory.retry.number;
  switch (removal->progress.state) {
    case State::kEnding:
    case State::kWaiting:
    case State::kRunning: return for_volume::Follow{*removal};
    case State::kSucceeded:
      if (scene.now < scene.memory.released) return wait(scene);
      return for_volume::Release{
          .was_absent = removal->progress.directory == operation::Directory::kAbsent,
          .was_tried_before = removal->operation->attempt > 1};
    case State::kFailed:
    case State::kLate: break;
  }
  if (!is_counted) return for_volume::Failed{*removal};
  if (removal->progress.state == State::kLate) return for_volume::Cancel{*removal};
  return begin(scene, removal);
}

}  // namespace

std::string VolumeScene::seen() const {
  return (volume ? volume->meta.resource_version : std::string()) + "/" + settings();
}

std::string VolumeScene::settings() const {
  return fmt::format("{}/{}/{}/{}/{}/{}", volume ? volume->meta.uid : "",
                     volume ? volume->path : "", node.name, node.description,
                     config ? config->generation : 0, sight);
}

VolumeDecision decide(const VolumeScene& scene) {
  for (const Recorded& one : scene.elsewhere) {
    if (auto decision = stop(one, false)) return *std::move(decision);
  }
  // The claim that it was to grow for is gone, or bound to another volume.
  if (auto decision = clear_away(scene, scene.resizes)) return *std::move(decision);
  if (scene.volume == nullptr) {
    if (auto decision = stop_all(scene, true)) return *std::move(decision);
    return for_volume::Wait{.forget = true};
  }
  if (!scene.is_wanted) {
    if (was_let_go(scene)) return wait(scene);
    // Recorded, and not wanted any more: policy changed, bound again, or not ours.
    if (auto decision = stop_all(scene, false)) return *std::move(decision);
    if (!is_ours(*scene.volume, scene.names)) return for_volume::Wait{.forget = true};
    if (auto decision = release(scene)) return *std::move(decision);
    return keep(scene);
  }
  return remove(scene);
}

}  // namespace lpp::provisioner
