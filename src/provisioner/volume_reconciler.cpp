// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_reconciler.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"
#include "provisioner/names.h"
#include "provisioner/volume_node.h"
#include "provisioner/volume_removal.h"

namespace lpp::provisioner {

using operation::Executor;
using operation::Operation;
using operation::Progress;

namespace {

/// Of a volume that is to be removed and another one of ours on its node, whether the other one's
/// removal takes the directory along: it is to be removed too, and lies around this one, or is in
/// the same place and has the later name.
bool takes_along(const k8s::PersistentVolume& other, bool goes_too,
                 const k8s::PersistentVolume& volume) {
  if (!goes_too) return false;
  if (volume.path == other.path) return other.meta.name > volume.meta.name;
  return strictly_below(volume.path, other.path);
}

}  // namespace

Action VolumeReconciler::step(const std::string& name, std::optional<TimePoint> waiting_since) {
  Pass pass{.waiting_since = waiting_since};
  for (int i = 0; i < kMostDecisions; ++i) {
    pass.scene = look(name);
    const std::string claim_name =
        pass.scene.volume == nullptr ? std::string() : pass.scene.volume->claim.to_string();
    const log::Scope fields(
        {{"volume", name}, {"claim", claim_name}, {"node", pass.scene.node.name}});
    const auto decision = decide(pass.scene);
    const auto next = std::visit([&](const auto& what) { return perform(pass, what); }, decision);
    if (next) return *next;
  }
  log::error("volume {}: no end of decisions", name);
  return Action::retry();
}

VolumeScene VolumeReconciler::look(const std::string& name) {
  VolumeScene scene;
  scene.now = world_.clock.now();
  scene.names = world_.names;
  scene.name = name;
  const auto recorded = world_.executor.recorded(name);
  scene.volume = world_.volumes.get({"", name});
  for (const auto& one : recorded) {
    const auto kind = one.operation->kind;
    const bool is_of_volume = kind == operation::Kind::kRemove || kind == operation::Kind::kResize;
    if (is_of_volume && scene.volume != nullptr && !one.operation->node.empty() &&
        !may_be_on(*scene.volume, one.operation->node, world_.nodes)) {
      scene.last_other = std::max(scene.last_other, one.operation->attempt);
      scene.elsewhere.push_back(one);
      continue;
    }
    switch (kind) {
      case operation::Kind::kRemove: scene.removals.push_back(one); break;
      case operation::Kind::kMake: scene.makes.push_back(one); break;
      case operation::Kind::kTakeBack:
        scene.last_other = std::max(scene.last_other, one.operation->attempt);
        break;
      case operation::Kind::kResize:
        // Of a claim that is bound to it that claim's step takes care.
        if (scene.volume == nullptr || scene.volume->phase != "Bound" ||
            scene.volume->claim_uid != one.operation->owner_uid) {
          scene.resizes.push_back(one);
        }
        break;
    }
  }
  scene.config = world_.config.current();
  scene.memory = memories_.get(name);
  if (scene.memory.in_flight != nullptr) {
    scene.lost = world_.executor.lost(*scene.memory.in_flight);
  }
  if (scene.volume == nullptr || !is_ours(*scene.volume, world_.names)) return scene;
  // What was made elsewhere for the same claim is that claim's affair.
  std::erase_if(scene.makes, [&](const operation::Recorded& make) {
    return !shares_directory(*scene.volume, *make.operation, world_.nodes);
  });
  scene.is_wanted = is_wanted(*scene.volume, scene.memory);
  if (!scene.is_wanted) {
    note_claim(scene);
    note_node(scene);
    return scene;
  }
  scene.node = removal_node_of(*scene.volume, world_.nodes, *scene.config);
  Operation place;
  place.volume_name = name;
  place.node = scene.node.name;
  place.path = scene.volume->path;
  place.base_path = base_path_of(place.node, *scene.volume, *scene.config);
  scene.sight = world_.executor.sight(place.node, place.base_path);
  // One that keeps its directory counts before those that are to be removed too.
  for (const auto& other :
       overlapping_volumes(world_.volumes, world_.nodes, place, world_.names, name)) {
    const VolumeNode there = removal_node_of(*other, world_.nodes, *scene.config);
    const bool goes_too = is_ours(*other, world_.names) && there.kind == scene.node.kind &&
                          there.name == scene.node.name && wants_delete(*other, world_.claims);
    const bool takes_it_along = takes_along(*other, goes_too, *scene.volume);
    const bool counts_more = !goes_too || (scene.overlapping_goes_too && !takes_it_along);
    if (scene.overlapping == nullptr || counts_more) {
      scene.overlapping = other;
      scene.overlapping_goes_too = goes_too;
      scene.overlapping_takes_it_along = takes_it_along;
    }
  }
  return scene;
}

/// Since when the cache has no claim for the volume; it may only be behind.
void VolumeReconciler::note_claim(VolumeScene& scene) {
  scene.binds = world_.binding.is_ours();
  const auto claim = world_.claims.get(scene.volume->claim);
  const bool is_there = claim != nullptr && claim->meta.uid == scene.volume->claim_uid;
  if (is_there == !scene.memory.abandoned) return;
  if (is_there) {
    scene.memory.abandoned.reset();
    scene.memory.claim_asked_at = {};
  } else {
    scene.memory.abandoned = scene.now;
  }
  memories_.set(scene.name, scene.memory);
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Wait& decision) {
  if (decision.forget) {
    memories_.erase(pass.scene.name);
    world_.figures.forget(operation::Kind::kRemove, pass.scene.name);
  }
  return decision.at_most ? Action::await_change(*decision.at_most) : Action::done();
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass,
                                                 const for_volume::AddFinalizer& /*decision*/) {
  memories_.erase(pass.scene.name);
  const auto patched = patch_finalizer(*pass.scene.volume, Finalizer::kAdd);
  if (!patched.ok() && k8s::is_stale(patched.error())) return Action::await_change(kSoon);
  if (!patched.ok()) return reporter_.api_failed(subject(pass), patched.error());
  log::debug("finalizer added");
  return Action::done();
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass,
                                                 const for_volume::RemoveFinalizer& /*decision*/) {
  memories_.erase(pass.scene.name);
  world_.figures.forget(operation::Kind::kRemove, pass.scene.name);
  const auto patched = patch_finalizer(*pass.scene.volume, Finalizer::kRemove,
                                       k8s::Answer::kIdentity, Guard::kVersion);
  // The policy may have been changed back: then it is what the directory's removal hangs on.
  if (!patched.ok() && k8s::is_stale(patched.error())) return Action::await_change(kSoon);
  if (!patched.ok()) return reporter_.api_failed(subject(pass), patched.error());
  log::debug("finalizer removed");
  return Action::done();
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Cancel& decision) {
  const Operation& operation = *decision.removal.operation;
  const log::Scope fields({{"path", operation.path}});
  const bool removes = operation.kind == operation::Kind::kRemove;
  const bool is_elsewhere =
      std::any_of(pass.scene.elsewhere.begin(), pass.scene.elsewhere.end(),
                  [&](const auto& one) { return one.operation == decision.removal.operation; });
  const bool anew =
      removes && !is_elsewhere && decision.removal.progress.outdated && pass.scene.is_wanted;
  if (removes) {
    log::info("removal of the directory is cancelled{}",
              anew ? ": whether it is wanted is asked anew" : "");
  }
  if (anew) came_too_late(pass, operation);
  not_missed(pass, operation);
  const auto cancelled = world_.executor.cancel(operation.id());
  if (cancelled.ok()) return std::nullopt;
  if (pass.scene.volume == nullptr) return Action::retry();
  return reporter_.api_failed(subject(pass), cancelled.error());
}

/// What is taken off the record by us is not missed when it has gone.
void VolumeReconciler::not_missed(Pass& pass, const Operation& operation) {
  Memory& memory = pass.scene.memory;
  if (memory.in_flight == nullptr || memory.in_flight->id() != operation.id()) return;
  memory.in_flight = nullptr;
  remember(pass);
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Forget& decision) {
  not_missed(pass, *decision.operation);
  const auto forgotten = world_.executor.forget(
      decision.operation->id(),
      decision.when_quiet ? Executor::When::kWhenQuiet : Executor::When::kNow);
  if (forgotten.ok()) return std::nullopt;
  if (pass.scene.volume == nullptr) {
    return forgotten.error().is(ErrorCode::kCancelled) ? Action::done() : Action::retry();
  }
  return reporter_.api_failed(subject(pass), forgotten.error());
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Remove& decision) {
  const Operation& operation = decision.operation;
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  if (const auto holder = world_.ledger.take(operation)) {
    reporter_.failed(subject(pass), "PathTaken",
                     "refusing to remove path " + operation.path + ": it overlaps " + holder->path +
                         " of volume " + holder->volume_name);
    return Action::await_change(kRecheck);
  }
  world_.figures.progressed(operation::Kind::kRemove, operation, Step::kQueued, {},
                            pass.waiting_since);
  const auto admission = world_.executor.admit(operation);
  if (!admission) {
    world_.ledger.release(operation);
    return reporter_.turned_away(subject(pass), operation.node, pass.scene.config->cmd_timeout,
                                 pass.scene.memory);
  }
  pass.scene.memory.turned_away.reset();
  const auto condemned = condemn(volume, pass.scene.memory);
  if (!condemned.ok() || !*condemned) {
    world_.ledger.release(operation);
    if (!condemned.ok()) return reporter_.api_failed(subject(pass), condemned.error());
    return Action::await_change(kRecheck);
  }
  pass.scene.memory.condemned = volume.meta.uid;
  remember(pass);
  if (world_.clock.now() - pass.scene.memory.condemned_at > kWordIsGood) {
    world_.ledger.release(operation);
    came_too_late(pass, operation);
    return Action::await_change(kSoon);
  }
  const auto started = world_.executor.start(operation);
  world_.ledger.release(operation);
  if (!started.ok()) return reporter_.api_failed(subject(pass), started.error());
  world_.figures.progressed(operation::Kind::kRemove, operation, Step::kStart);
  pass.scene.memory.troubles = 0;
  pass.scene.memory.retry.begun = operation.attempt;
  if (*started == Executor::Start::kRecorded) {
    pass.scene.memory.in_flight = std::make_shared<const Operation>(operation);
  }
  remember(pass);
  return Action::await_change(*started == Executor::Start::kRecorded ? kRecheck : kSoon);
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Follow& decision) {
  const Progress& progress = decision.removal.progress;
  const bool removes = decision.removal.operation->kind == operation::Kind::kRemove;
  if (removes && progress.state != Progress::State::kEnding) {
    pass.scene.memory.in_flight = decision.removal.operation;
    remember(pass);
  }
  world_.figures.progressed(operation::Kind::kRemove, *decision.removal.operation,
                            step_of(progress), progress.message);
  if (!progress.message.empty()) reporter_.tell(subject(pass), progress.message);
  Duration most = kRecheck;
  if (removes && progress.begins_unasked && pass.scene.volume != nullptr) {
    const auto condemned = is_condemned_still(pass);
    if (!condemned.ok()) return reporter_.api_failed(subject(pass), condemned.error());
    if (!*condemned) return perform(pass, for_volume::Cancel{decision.removal});
    most = std::max<Duration>(pass.scene.memory.condemned_at + kWordIsGood - world_.clock.now(),
                              Duration::zero());
  }
  if (!progress.changes_at) return Action::await_change(most);
  const Duration left = *progress.changes_at - pass.scene.now;
  return Action::await_change(std::clamp(left, Duration::zero(), most));
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Failed& decision) {
  Retry& retry = pass.scene.memory.retry;
  retry = memories_.failed(retry, decision.removal.operation->attempt, pass.scene.settings());
  pass.scene.memory.in_flight = nullptr;
  pass.scene.memory.outdated = 0;
  remember(pass);
  memories_.unsay(pass.scene.name, kVolumeFailedDelete);
  reporter_.failed(subject(pass), decision.removal.progress.reason,
                   decision.removal.progress.message);
  return std::nullopt;
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::LetGo& decision) {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  if (decision.stays) {
    const auto told = tell(pass, kDirectoryKept, decision.why);
    if (!told.ok()) return reporter_.api_failed(subject(pass), told.error());
    return let_object_go(pass, Guard::kVersion);
  }
  if (!decision.node.empty()) {
    const auto gone = node_is_gone(world_, decision.node);
    if (!gone.ok()) return reporter_.api_failed(subject(pass), gone.error());
    if (!*gone) return Action::await_change(kSoon);  // the cache will show it
  }
  if (const auto& other = pass.scene.overlapping;
      pass.scene.node.kind != VolumeNode::Kind::kGone && other != nullptr) {
    // Not by the cache's word alone.
    const auto there = read_volume(world_, other->meta.name);
    if (!there.ok()) return reporter_.api_failed(subject(pass), there.error());
    if (!*there || (*there)->meta.uid != other->meta.uid || (*there)->path != other->path ||
        !takes_along(**there, wants_delete(**there, world_.claims), volume)) {
      return Action::await_change(kSoon);
    }
  }
  const bool node_is_gone = pass.scene.node.kind == VolumeNode::Kind::kGone;
  const auto told = tell(pass, node_is_gone ? kVolumeNodeGone : kDirectoryKept, decision.why);
  if (!told.ok()) return reporter_.api_failed(subject(pass), told.error());
  return let_object_go(pass, Guard::kVersion);
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass,
                                                 const for_volume::PathTaken& /*decision*/) {
  const k8s::PersistentVolume& other = *pass.scene.overlapping;
  reporter_.failed(subject(pass), "PathTaken",
                   "refusing to remove path " + pass.scene.volume->path +
                       ": it overlaps the directory " + other.path + " of volume " +
                       other.meta.name);
  return Action::await_change(kRecheck);
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::Refuse& decision) {
  pass.scene.memory.retry.hold_until = pass.scene.now + Memories::kResync;
  pass.scene.memory.retry.seen = pass.scene.seen();
  remember(pass);
  reporter_.failed(subject(pass), "Refused", decision.message);
  return Action::await_change(Memories::kResync);
}

/// Nothing tells it any more once the volume has gone.
Result<void> VolumeReconciler::tell(const Pass& pass, std::string_view event_reason,
                                    const std::string& message) {
  Subject subject = this->subject(pass);
  subject.event_reason = event_reason;
  subject.prefix.clear();
  return reporter_.tell_for_good(subject, message);
}

Subject VolumeReconciler::subject(const Pass& pass) const {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  return {.failure = {.kind = operation::Kind::kRemove,
                      .volume = volume.meta.name,
                      .claim = volume.claim,
                      .node = pass.scene.node.name,
                      .storage_class = volume.storage_class_name},
          .about = reference_to(volume),
          .event_reason = kVolumeFailedDelete,
          .prefix = "failed to delete volume " + volume.meta.name + ": "};
}

}  // namespace lpp::provisioner
