// SPDX-License-Identifier: Apache-2.0
// What the claim's step does to take back what was made for nothing.

#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "provisioner/base_paths.h"
#include "provisioner/claim_clear_away.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using operation::Executor;
using operation::Operation;
using operation::Progress;
using operation::same_place;
using State = Progress::State;

namespace {

/// What an API call kept from being taken back is tried again after this.
constexpr std::chrono::seconds kTroubleWait{5};

}  // namespace

/// The API server has the last word, and the claim is asked for first: between the answer about the
/// volume and the removal there is nothing.
ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::TakeBack& decision) {
  const Operation& made = decision.make.operation();
  ClaimScene& scene = pass.scene;
  if (scene.memory.in_flight != nullptr && scene.memory.in_flight->id() == made.id()) {
    scene.memory.in_flight = nullptr;
  }
  remember(pass);
  // What cannot be taken back now must not keep the claim waiting on another node.
  const auto later = [&](Duration wait) -> Next {
    scene.memory = memories_.get(scene.volume_name);
    Retry& retry = scene.memory.take_back[place_key(made)];
    retry.hold_until = scene.now + wait;
    retry.seen = disk_there(scene, made).sight;
    remember(pass);
    return std::nullopt;
  };
  const bool goes_on_elsewhere = scene.claim != nullptr && scene.node_name != made.node;
  const auto failed = [&](const Error& error) -> Next {
    const Action action = reporter_.api_failed(take_back_subject(made), error);
    return goes_on_elsewhere && !error.is(ErrorCode::kCancelled) ? later(kTroubleWait)
                                                                 : Next(action);
  };
  if (!made.node.empty()) {
    const auto gone = node_is_gone(world_, made.node);
    if (!gone.ok()) return failed(gone.error());
    if (*gone) return leave(pass, made, "node " + made.node + " does not exist any more");
  }
  const auto wanted = is_still_wanted(decision.make);
  if (!wanted.ok()) return failed(wanted.error());
  const auto volume = read_volume(world_, made.volume_name);
  if (!volume.ok()) return failed(volume.error());
  if (*volume && shares_directory(**volume, made, world_.nodes)) {
    // Until the cache shows the volume nobody else gets the directory.
    if (world_.volumes.get({"", made.volume_name}) == nullptr) {
      scene.memory.published = scene.now;
      (void)world_.ledger.take(made);
    }
    return perform(pass, for_claim::FinishTakeBack{{decision.make.begun.operation}});
  }
  if (*wanted == Wanted::kHasVolume && !*volume) {
    return leave(pass, made,
                 "it was the one of volume " + made.volume_name +
                     ", which is gone while the claim is bound to it");
  }
  if (*wanted != Wanted::kNo && !*volume && !decision.make.begun.given_up) {
    return wait_for_the_cache();
  }
  const Operation undo = undo_of(decision);
  if (const auto holder = world_.ledger.take(undo)) {
    return leave(pass, made, "it overlaps " + holder->path + " of volume " + holder->volume_name);
  }
  const auto admission = world_.executor.admit(undo);
  if (!admission) {
    world_.ledger.release(undo);
    return later(kRecheck);
  }
  // From here on it may be on record, whatever the answer is.
  for (Begun& begun : scene.memory.begun) {
    if (same_place(*begun.operation, undo)) begun.given_up = true;
  }
  remember(pass);
  const log::Scope fields({{"node", made.node}, {"path", made.path}});
  log::info("taking back the directory of a volume that will not come to be{}",
            undo.only_if_empty ? ", if it is empty" : "");
  world_.figures.progressed(operation::Kind::kTakeBack, undo, Step::kQueued);
  const auto started = world_.executor.start(undo);
  if (started.ok() || !Reporter::heals_by_itself(started.error())) world_.ledger.release(undo);
  if (!started.ok()) return failed(started.error());
  scene.memory.take_back[place_key(undo)].begun = undo.attempt;
  if (*started == Executor::Start::kRecorded) {
    scene.memory.taking_back[place_key(undo)] = std::make_shared<const Operation>(undo);
  }
  remember(pass);
  world_.figures.progressed(operation::Kind::kTakeBack, undo, Step::kStart);
  return Action::await_change(kRecheck);
}

Operation ClaimReconciler::undo_of(const for_claim::TakeBack& decision) const {
  const Operation& made = decision.make.operation();
  Operation undo = made;
  undo.kind = operation::Kind::kTakeBack;
  undo.attempt = decision.attempt;
  undo.disk = disk_of(decision.make);
  undo.shape.reset();
  undo.user.clear();
  undo.group.clear();
  undo.perm.clear();
  // What has its name on another disk is somebody else's. Helper pods do not tell on which they
  // made it.
  const bool is_told = decision.make.progress && !decision.make.progress->disk.empty();
  const bool may_be_elsewhere =
      !is_told && (undo.disk != made.disk || made.disk.find(' ') != std::string::npos);
  undo.only_if_empty = !may_tear_down(decision.make) || may_be_elsewhere;
  return undo;
}

/// Where it was made, or else where it was to be, for an attempt before may have made it there: on
/// any of the disks that volumes still name. One that was given up never comes back.
std::string ClaimReconciler::disk_of(const Make& make) const {
  if (make.progress && !make.progress->disk.empty()) return make.progress->disk;
  const Operation& made = make.operation();
  if (made.disk.empty()) return {};
  const auto named =
      disks_named(world_.volumes.list(), world_.nodes, made.node, made.base_path, {});
  auto disks = split(made.disk, ' ');
  std::erase_if(disks, [&](std::string_view disk) {
    return std::find(named.begin(), named.end(), disk) == named.end();
  });
  return fmt::format("{}", fmt::join(disks, " "));
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Forget& decision) {
  const auto id = decision.operation->id();
  not_missed(pass, id);
  // Else somebody could have had the directory meanwhile.
  const bool on_record = std::any_of(
      pass.scene.makes.begin(), pass.scene.makes.end(),
      [&](const Make& make) { return keeps_others_out(make) && make.operation().id() == id; });
  auto& in_flight = pass.scene.memory.in_flight;
  if (in_flight != nullptr && decision.heir == nullptr && in_flight->id() == id) {
    in_flight = nullptr;
  }
  bool made = false;
  bool never_published = true;
  for (Begun& begun : pass.scene.memory.begun) {
    if (begun.operation->id() != id) continue;
    begun.done = true;
    made = on_record && begun.made && begun.never_published;
    never_published = begun.never_published;
  }
  for (Begun& begun : pass.scene.memory.begun) {
    if (decision.heir != nullptr && begun.operation->id() == decision.heir->id()) {
      begun.made = begun.made || made;
      begun.never_published = begun.never_published && never_published;
    }
  }
  remember(pass);
  const auto when = decision.when_quiet ? Executor::When::kWhenQuiet : Executor::When::kNow;
  const auto forgotten = world_.executor.forget(id, when);
  if (forgotten.ok()) return std::nullopt;
  return reporter_.api_failed(
      pass.scene.claim != nullptr ? subject(pass) : take_back_subject(*decision.operation),
      forgotten.error());
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Withdraw& decision) {
  const auto wanted = is_still_wanted(decision.make);
  if (!wanted.ok()) {
    return reporter_.api_failed(take_back_subject(decision.make.operation()), wanted.error());
  }
  if (*wanted == Wanted::kYes && !decision.make.begun.given_up) {
    remember(pass);
    return wait_for_the_cache();
  }
  return perform(pass, for_claim::Cancel{decision.make.begun.operation});
}

Action ClaimReconciler::wait_for_the_cache() {
  log::debug(
      "nothing is done: the API server knows something of the claim that the cache does not");
  return Action::await_change(kRecheck);
}

Result<ClaimReconciler::Wanted> ClaimReconciler::is_still_wanted(const Make& made) {
  const Operation& make = made.operation();
  const auto found = read_claim(world_, make.claim);
  if (!found.ok()) return found.error();
  const auto& claim = *found;
  if (!claim || claim->meta.uid != make.owner_uid) return Wanted::kNo;
  if (claim->volume_name == make.volume_name) return Wanted::kHasVolume;
  if (made.falls_short()) return Wanted::kNo;
  if (made.has_failed() && claim->meta.deleting()) return Wanted::kNo;  // it is not tried again
  const auto storage_class = world_.classes.get({"", claim->class_name()});
  if (!asks_for_limits(storage_class.get(), make.limits)) return Wanted::kNo;
  const bool asks_here = should_provision(*claim, storage_class.get(), world_.names) &&
                         selected_node(*claim) == make.node;
  return asks_here ? Wanted::kYes : Wanted::kNo;
}

void ClaimReconciler::note_missed(ClaimScene& scene) const {
  for (const TakingBack& one : scene.taking_back) {
    // One that is on its way out is not missed when it has gone, unless it was known before.
    if (one.progress.state == State::kEnding) continue;
    scene.memory.taking_back[place_key(*one.operation)] = one.operation;
  }
  for (const auto& [place, known] : scene.memory.taking_back) {
    const bool is_there = std::any_of(
        scene.taking_back.begin(), scene.taking_back.end(),
        [&, id = known->id()](const TakingBack& one) { return one.operation->id() == id; });
    if (!is_there) scene.lost_taking_back.push_back({known, world_.executor.lost(*known)});
  }
}

/// What takes back and is taken off the record by us is not missed when it has gone.
void ClaimReconciler::not_missed(Pass& pass, const operation::Id& id) {
  std::erase_if(pass.scene.memory.taking_back,
                [&](const auto& entry) { return entry.second->id() == id; });
}

void ClaimReconciler::set_done(Pass& pass, const Operation& place) {
  for (Begun& begun : pass.scene.memory.begun) {
    if (same_place(*begun.operation, place)) begun.done = true;
  }
}

ClaimReconciler::Next ClaimReconciler::leave(Pass& pass, const Operation& make,
                                             const std::string& why) {
  const log::Scope fields({{"node", make.node}, {"path", make.path}});
  Subject subject = take_back_subject(make);
  subject.event_reason = kDirectoryKept;
  subject.prefix = "directory " + make.path +
                   (make.node.empty() ? std::string() : " on node " + make.node) +
                   ", perhaps made for this claim, is left as it is: ";
  const auto told = reporter_.tell_for_good(subject, why);
  if (!told.ok()) return reporter_.api_failed(take_back_subject(make), told.error());
  return perform(pass, for_claim::FinishTakeBack{{std::make_shared<const Operation>(make)}});
}

/// Nobody knows any more whether the directory was there before.
Result<void> ClaimReconciler::tell_of_stopped(const Operation& teardown) {
  Subject subject = take_back_subject(teardown);
  subject.event_reason = kDirectoryKept;
  subject.prefix = "directory " + teardown.path + " on node " + teardown.node + " ";
  return reporter_.tell_for_good(
      subject,
      "is not torn down as an earlier version has begun to: it is not certain that it was made for "
      "this claim. It goes only if it is empty; else remove it by hand if nobody needs it");
}

/// Nothing tells it any more once the record is forgotten.
Result<void> ClaimReconciler::tell_what_is_left(const Pass& pass, const TakingBack& done) {
  if (done.progress.state != State::kSucceeded) return {};
  const Operation& place = *done.operation;
  Subject subject = take_back_subject(place);
  subject.prefix = "directory " + place.path + " on node " + place.node + " ";
  if (done.progress.directory == operation::Directory::kAbsent) {
    const auto& begun = pass.scene.memory.begun;
    const bool was_made = std::any_of(begun.begin(), begun.end(), [&](const Begun& one) {
      return one.made && same_place(*one.operation, place);
    });
    if (!was_made) return {};
    subject.event_reason = kDirectoryMissing;
    return reporter_.tell_for_good(
        subject,
        "was made for this claim, and was not there when it was to be taken back: if its disk was "
        "not mounted, it is still on it" +
            std::string(place.attempt > 1 ? "; or an earlier attempt has removed it" : ""));
  }
  if (done.progress.directory == operation::Directory::kRemoved) return {};
  if (!place.only_if_empty && done.progress.directory != operation::Directory::kKept) return {};
  subject.event_reason = kDirectoryKept;
  const std::string& why = done.progress.message;
  return reporter_.tell_for_good(
      subject, "is left as it is: " +
                   (why.empty() ? "it is not empty" : "it may not be empty (" + why + ")") +
                   ", and it is not certain that " +
                   (place.only_if_empty ? "it was made for this claim" : "nobody has used it") +
                   "; remove it by hand if nobody needs it");
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass,
                                               const for_claim::FinishTakeBack& decision) {
  const Operation& place = *decision.done.operation;
  const auto told = tell_what_is_left(pass, decision.done);
  if (!told.ok()) return reporter_.api_failed(take_back_subject(place), told.error());
  // The make first: as long as anything is on record, it is known what was taken back.
  set_done(pass, place);
  pass.scene.memory.take_back.erase(place_key(place));
  pass.scene.memory.taking_back.erase(place_key(place));
  remember(pass);
  for (const Make& make : pass.scene.makes) {
    if (!make.progress || !make.progress->over()) continue;
    if (!same_place(make.operation(), place)) continue;
    const auto forgotten = world_.executor.forget(make.operation().id(), Executor::When::kNow);
    if (!forgotten.ok()) {
      return reporter_.api_failed(take_back_subject(place), forgotten.error());
    }
  }
  for (const TakingBack& one : pass.scene.taking_back) {
    if (!one.progress.over() || !same_place(*one.operation, place)) continue;
    const auto forgotten = world_.executor.forget(one.operation->id(), Executor::When::kNow);
    if (!forgotten.ok()) {
      return reporter_.api_failed(take_back_subject(place), forgotten.error());
    }
  }
  world_.figures.succeeded(operation::Kind::kTakeBack, pass.scene.volume_name, {});
  return std::nullopt;
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass,
                                               const for_claim::TakeBackFailed& decision) {
  const Operation& operation = *decision.failed.operation;
  const Progress& progress = decision.failed.progress;
  Retry& retry = pass.scene.memory.take_back[place_key(operation)];
  retry = memories_.failed(retry, operation.attempt, disk_there(pass.scene, operation).sight);
  not_missed(pass, operation.id());
  remember(pass);
  memories_.unsay(pass.scene.volume_name, kProvisioningCleanupFailed);
  world_.figures.progressed(operation::Kind::kTakeBack, operation, Step::kWaiting,
                            progress.message);
  reporter_.failed(take_back_subject(operation), progress.reason, progress.message);
  return std::nullopt;
}

/// Nothing can be done but to tell it; the claim itself is not kept waiting.
ClaimReconciler::Next ClaimReconciler::perform(Pass& pass,
                                               const for_claim::TakeBackStuck& decision) {
  reporter_.tell(take_back_subject(*decision.operation), decision.progress.message);
  for (auto& make : pass.scene.makes) {
    if (make.progress && make.begun.operation->id() == decision.operation->id()) {
      make.progress->message.clear();
    }
  }
  for (auto& one : pass.scene.taking_back) {
    if (one.operation->id() == decision.operation->id()) one.progress.message.clear();
  }
  for (auto& one : pass.scene.removals) {
    if (one.operation->id() == decision.operation->id()) one.progress.message.clear();
  }
  return carry_out(pass, decide(pass.scene));
}

Subject ClaimReconciler::take_back_subject(const Operation& operation) const {
  return {.failure = {.kind = operation::Kind::kTakeBack,
                      .volume = operation.volume_name,
                      .claim = operation.claim,
                      .node = operation.node,
                      .storage_class = operation.storage_class},
          .about = k8s::reference_to(
              "PersistentVolumeClaim",
              {.name = operation.claim.name, .ns = operation.claim.ns, .uid = operation.owner_uid}),
          .event_reason = kProvisioningCleanupFailed,
          .prefix =
              "Error cleaning provisioned volume for claim " + operation.claim.to_string() + ": "};
}

}  // namespace lpp::provisioner
