// SPDX-License-Identifier: Apache-2.0
// The part of a claim's decision that comes first: what was begun and is not wanted.

#include "provisioner/claim_clear_away.h"

#include <algorithm>

#include "base/paths.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

using operation::Operation;
using operation::Progress;
using operation::same_place;
using State = Progress::State;

namespace {

bool has_its_volume(const ClaimScene& scene) {
  return scene.volume != nullptr && scene.claim != nullptr &&
         difference(*scene.volume, *scene.claim, scene.names).empty();
}

bool is_taken_back(const ClaimScene& scene, const Operation& make) {
  return std::any_of(scene.taking_back.begin(), scene.taking_back.end(),
                     [&](const TakingBack& one) { return same_place(*one.operation, make); });
}

bool can_act(const Make& make) {
  return make.progress && !make.progress->over() && make.progress->state != State::kEnding;
}

}  // namespace

bool is_asked_for(const ClaimScene& scene) {
  return scene.claim != nullptr &&
         should_provision(*scene.claim, scene.storage_class.get(), scene.names);
}

bool is_counted(const ClaimScene& scene, const Make& make) {
  return make.operation().attempt <= scene.memory.retry.number;
}

bool affect_each_other(const Operation& a, const Operation& b) {
  const bool any_node = a.node.empty() || b.node.empty() || (a.shared && b.shared);
  return (any_node || a.node == b.node) && overlaps(a.path, b.path);
}

const DiskThere& disk_there(const ClaimScene& scene, const Operation& place) {
  static const DiskThere unseen;
  const auto it = scene.disks.find(place_key(place));
  return it == scene.disks.end() ? unseen : it->second;
}

bool is_wanted(const ClaimScene& scene, const Make& make) {
  if (make.shown) return true;
  // What has been given up is taken back first, whatever has happened since.
  if (make.begun.given_up || is_taken_back(scene, make.operation())) return false;
  if (scene.claim == nullptr) return false;
  // Another's, or one of unknown origin: nothing is touched.
  if (scene.volume != nullptr) return !has_its_volume(scene);
  if (!is_asked_for(scene) || make.operation().node != scene.node_name) return false;
  if (make.falls_short() && is_counted(scene, make)) return false;
  if (!asks_for_limits(scene.storage_class.get(), make.operation().limits)) return false;
  // What has failed is not tried again for a claim on its way out.
  return !(make.has_failed() && is_counted(scene, make) && scene.claim->meta.deleting());
}

bool waits_for_word(const Make& make) { return can_act(make) && make.progress->outdated; }

namespace {

/// Another make that has the same directory, as of a later attempt or on a shared filesystem, and
/// that is wanted.
const Make* heir_of(const ClaimScene& scene, const Make& make) {
  const bool mine_is_wanted = is_wanted(scene, make);
  for (const Make& other : scene.makes) {
    if (&other == &make || other.begun.done || !other.progress) continue;
    const bool later = other.operation().attempt > make.operation().attempt;
    if ((later || !mine_is_wanted) && is_wanted(scene, other) &&
        same_place(other.operation(), make.operation())) {
      return &other;
    }
  }
  return nullptr;
}

/// Whether a make, or an attempt to take one back, may still be at work in the same place.
bool is_busy_there(const ClaimScene& scene, const Operation& place) {
  const auto acts = [&](const Operation& operation, const Progress& progress) {
    return !progress.over() && !progress.acts_no_more && affect_each_other(operation, place);
  };
  return std::any_of(scene.makes.begin(), scene.makes.end(),
                     [&](const Make& make) {
                       return make.progress && acts(make.operation(), *make.progress);
                     }) ||
         std::any_of(scene.taking_back.begin(), scene.taking_back.end(),
                     [&](const TakingBack& one) { return acts(*one.operation, one.progress); });
}

/// A later attempt to take the same directory back.
bool has_later(const ClaimScene& scene, const TakingBack& one) {
  return std::any_of(scene.taking_back.begin(), scene.taking_back.end(),
                     [&](const TakingBack& other) {
                       return other.operation->attempt > one.operation->attempt &&
                              same_place(*other.operation, *one.operation);
                     });
}

int next_take_back(const ClaimScene& scene) {
  int last = 0;
  // They share the numbers of what removes, wherever that is.
  for (const auto& removal : scene.removals) last = std::max(last, removal.operation->attempt);
  for (const auto& [place, retry] : scene.memory.take_back) last = std::max(last, retry.number);
  for (const TakingBack& one : scene.taking_back) last = std::max(last, one.operation->attempt);
  return last + 1;
}

const Retry* take_back_retry(const ClaimScene& scene, const Operation& place) {
  const auto it = scene.memory.take_back.find(place_key(place));
  return it == scene.memory.take_back.end() ? nullptr : &it->second;
}

bool take_back_is_held(const ClaimScene& scene, const Operation& place) {
  const Retry* const retry = take_back_retry(scene, place);
  const auto& [sight, why_unfit] = disk_there(scene, place);
  if (!why_unfit.empty()) return true;  // it is on a disk that is not there
  return retry != nullptr && held(*retry, scene.now, sight).has_value();
}

/// Versions that knew no better recorded teardowns of directories that may have been there before.
bool may_go_on(const ClaimScene& scene, const Operation& take_back) {
  if (take_back.only_if_empty) return true;
  return std::any_of(scene.makes.begin(), scene.makes.end(), [&](const Make& make) {
    return make.begun.made && same_place(make.operation(), take_back);
  });
}

/// The make is not known any more, so that nothing else tells of the directory.
bool is_last_record(const ClaimScene& scene, const Operation& take_back) {
  return std::none_of(scene.makes.begin(), scene.makes.end(),
                      [&](const Make& make) { return same_place(make.operation(), take_back); });
}

/// What takes a directory back: followed to its end, except where a volume is by now.
std::optional<ClaimDecision> follow_take_back(const ClaimScene& scene, const TakingBack& one) {
  if (one.progress.over() && has_later(scene, one)) return for_claim::Forget{one.operation};
  const Retry* const retry = take_back_retry(scene, *one.operation);
  const bool counted = retry != nullptr && one.operation->attempt <= retry->number;
  switch (one.progress.state) {
    case State::kWaiting:
    case State::kRunning:
      if (one.in_use) return for_claim::Cancel{one.operation};
      if (one.progress.outdated || !may_go_on(scene, *one.operation)) {
        return for_claim::Cancel{one.operation, is_last_record(scene, *one.operation)};
      }
      break;
    case State::kEnding: break;
    case State::kSucceeded: return for_claim::FinishTakeBack{one};
    case State::kLate:
      if (!counted) return for_claim::TakeBackFailed{one};
      return for_claim::Cancel{one.operation, !one.in_use && is_last_record(scene, *one.operation)};
    case State::kFailed:
      if (one.in_use) return for_claim::FinishTakeBack{one};
      if (!counted) return for_claim::TakeBackFailed{one};
      if (take_back_is_held(scene, *one.operation)) return std::nullopt;
      if (is_busy_there(scene, *one.operation)) return std::nullopt;
      for (const Make& make : scene.makes) {
        if (same_place(make.operation(), *one.operation)) {
          return for_claim::TakeBack{make, next_take_back(scene)};
        }
      }
      // The record of the make is gone: the one of its taking back is all there is.
      return for_claim::TakeBack{{.begun = {.operation = one.operation, .given_up = true}},
                                 next_take_back(scene)};
  }
  if (!one.progress.message.empty()) return for_claim::TakeBackStuck{one.operation, one.progress};
  return std::nullopt;
}

/// A make that nobody waits for.
std::optional<ClaimDecision> retire(const ClaimScene& scene, const Make& make) {
  if (is_taken_back(scene, make.operation())) {  // follow_take_back() sees to it, once this is over
    const bool late = make.progress && make.progress->state == State::kLate;
    return late ? std::optional<ClaimDecision>(for_claim::Cancel{make.begun.operation})
                : std::nullopt;
  }
  if (can_act(make)) {
    // One that is being done is let end, for then it is known what it did.
    if (make.progress->state == State::kRunning && !make.progress->outdated) return std::nullopt;
    return for_claim::Withdraw{make};
  }
  if (make.progress && make.progress->state == State::kEnding) {
    if (make.progress->message.empty()) return std::nullopt;
    return for_claim::TakeBackStuck{make.begun.operation, *make.progress};
  }
  // On a shared filesystem a make from another node will have the directory soon.
  if (make.operation().shared && !make.begun.given_up && is_asked_for(scene) &&
      heir_of(scene, make) == nullptr && scene.volume == nullptr) {
    return std::nullopt;
  }
  if (const Make* const heir = heir_of(scene, make)) {
    return for_claim::Forget{make.begun.operation, false, heir->begun.operation};
  }
  if (make.has_done_nothing()) return for_claim::Forget{make.begun.operation};
  if (is_busy_there(scene, make.operation())) return std::nullopt;
  if (take_back_is_held(scene, make.operation())) return std::nullopt;
  return for_claim::TakeBack{make, next_take_back(scene)};
}

}  // namespace

std::optional<ClaimDecision> clear_away(const ClaimScene& scene) {
  for (const TakingBack& one : scene.taking_back) {
    if (auto decision = follow_take_back(scene, one)) return decision;
  }
  for (const TakingBack& missed : scene.lost_taking_back) {
    const Retry* const retry = take_back_retry(scene, *missed.operation);
    const bool counted = retry != nullptr && missed.operation->attempt <= retry->number;
    if (!counted) return for_claim::TakeBackFailed{missed};
  }
  for (const Make& make : scene.makes) {
    const bool over = make.progress && make.progress->over();
    if (make.begun.done) {
      if (over) return for_claim::Forget{make.begun.operation, make.shown};
      const bool late = make.progress && make.progress->state == State::kLate;
      if ((late && !make.shown) || waits_for_word(make)) {
        return for_claim::Cancel{make.begun.operation};
      }
      continue;
    }
    if (make.shown) {
      // The volume is the record now of what was made.
      if (over || !make.progress) return for_claim::Forget{make.begun.operation, true};
      if (waits_for_word(make)) return for_claim::Cancel{make.begun.operation};
      continue;
    }
    if (!is_wanted(scene, make)) {
      if (auto decision = retire(scene, make)) return decision;
      continue;
    }
    const Make* const heir = heir_of(scene, make);
    if (heir != nullptr && (over || !make.progress)) {
      return for_claim::Forget{make.begun.operation, false, heir->begun.operation};
    }
  }
  return std::nullopt;
}

std::vector<HeldByDisk> held_by_disks(const ClaimScene& scene) {
  std::vector<HeldByDisk> all;
  const auto look_at = [&](const std::shared_ptr<const Operation>& place) {
    const std::string& why = disk_there(scene, *place).why_unfit;
    if (!why.empty()) all.push_back({place, why});
  };
  for (const TakingBack& one : scene.taking_back) {
    const Retry* const retry = take_back_retry(scene, *one.operation);
    const bool is_tried_again = one.progress.state == State::kFailed && !one.in_use &&
                                retry != nullptr && one.operation->attempt <= retry->number;
    if (is_tried_again && !has_later(scene, one)) look_at(one.operation);
  }
  for (const Make& make : scene.makes) {
    const bool rests = !make.progress || make.progress->over();
    if (!rests || make.begun.done || make.shown || is_wanted(scene, make)) continue;
    if (make.has_done_nothing() || heir_of(scene, make) != nullptr) continue;
    if (!is_taken_back(scene, make.operation())) look_at(make.begun.operation);
  }
  return all;
}

}  // namespace lpp::provisioner
