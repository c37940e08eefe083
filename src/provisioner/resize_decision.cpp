// SPDX-License-Identifier: Apache-2.0
#include "provisioner/resize_decision.h"

#include <algorithm>
#include <string_view>

#include "k8s/quantity.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/volume_removal.h"
#include "provisioner/volume_rules.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

using operation::Operation;
using operation::Progress;
using operation::Recorded;
using State = Progress::State;

namespace {

std::optional<Size> size_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto quantity = k8s::Quantity::parse(text);
  if (!quantity.ok() || quantity->saturated() || quantity->value() <= 0) return std::nullopt;
  return Size{.text = text, .bytes = quantity->value()};
}

/// It asks for more than can be counted, and has less.
bool is_beyond_all(const k8s::PersistentVolumeClaim& claim) {
  const auto quantity = k8s::Quantity::parse(claim.storage_request);
  return quantity.ok() && quantity->saturated() && quantity->value() > 0 && size_of(claim.capacity);
}

bool is_marked(const k8s::PersistentVolumeClaim& claim) {
  return claim.resize_status == kResizeInProgress || claim.resize_status == kResizeInfeasible;
}

struct Marks {
  std::optional<Size> allocated{};
  std::string_view status{};
};

/// Those of the claim's status; where it cannot have any those that this process remembers.
Marks marks_of(const ResizeScene& scene) {
  const k8s::PersistentVolumeClaim& claim = *scene.claim;
  const ResizeMarks& dropped = scene.memory.dropped;
  if (!claim.resize_status.empty() || dropped.status.empty()) {
    return {.allocated = size_of(claim.allocated), .status = claim.resize_status};
  }
  return {.allocated = size_of(dropped.allocated), .status = dropped.status};
}

for_resize::Wait wait(const ResizeScene& scene) {
  Duration least = kRecheck;
  for (const Recorded& resize : scene.resizes) {
    const auto at = resize.progress.changes_at;
    if (at && *at > scene.now) least = std::min(least, *at - scene.now);
  }
  return {.at_most = least};
}

/// The claim and the volume are each other's, and ours. The class does not matter: a volume that
/// was adopted, or made by another version, grows like any other.
bool is_ours_and_bound(const ResizeScene& scene) {
  if (scene.claim == nullptr || scene.volume == nullptr) return false;
  const k8s::PersistentVolumeClaim& claim = *scene.claim;
  const k8s::PersistentVolume& volume = *scene.volume;
  return claim.phase == "Bound" && !claim.meta.deleting() && !volume.meta.deleting() &&
         claim.volume_name == volume.meta.name && volume.claim == claim.meta.key() &&
         volume.claim_uid == claim.meta.uid && is_ours(volume, scene.names) &&
         volume.source != k8s::VolumeSource::kOther;
}

bool acts(const Recorded& resize) {
  return !resize.progress.over() &&
         !(resize.progress.state == State::kEnding && resize.progress.acts_no_more);
}

/// It has succeeded, and nobody on the node says that the limits hold.
bool falls_short(const Recorded& resize) {
  return resize.progress.state == State::kSucceeded &&
         !what_is_missing(*resize.operation, resize.progress.kept).empty();
}

/// That of the volume itself stays, whatever becomes of its class.
operation::Limits limits_of_volume(const ResizeScene& scene) {
  operation::Limits limits;
  if (scene.storage_class != nullptr) {
    const auto of_class = limits_of(*scene.storage_class);
    if (const auto* known = std::get_if<operation::Limits>(&of_class)) limits = *known;
  }
  const std::string* quota = k8s::find(scene.volume->meta.annotations, kVolumeQuota);
  limits.hard = quota != nullptr && *quota == kQuotaHard;
  if (!limits.hard) limits.inodes = 0;
  return limits;
}

/// Whether an attempt for that size has failed, and none is under way.
bool has_failed(const ResizeScene& scene, const Size& size) {
  bool failed = scene.memory.retry.number > 0 && scene.memory.retry.seen == size.text;
  for (const Recorded& resize : scene.resizes) {
    if (resize.operation->size_bytes != size.bytes) continue;
    const bool done = resize.progress.state == State::kSucceeded && !falls_short(resize);
    if (acts(resize) || done) return false;
    failed = failed || resize.progress.over();
  }
  return failed;
}

/// What the volume is to have. An expansion that has begun is finished first, whatever the claim
/// asks for by now; one that failed gives way to a lower request. Never less than the volume has.
std::optional<Size> goal_of(const ResizeScene& scene) {
  const k8s::PersistentVolumeClaim& claim = *scene.claim;
  const auto request = size_of(claim.storage_request);
  auto capacity = size_of(claim.capacity);
  if (!capacity) return std::nullopt;
  std::optional<Size> goal = request;
  const auto [allocated, status] = marks_of(scene);
  if (status == kResizeInProgress && allocated && allocated->bytes > capacity->bytes) {
    const bool gives_way =
        request && request->bytes < allocated->bytes && has_failed(scene, *allocated);
    if (!gives_way) goal = allocated;
  }
  if (!goal) return std::nullopt;
  if (goal->bytes <= capacity->bytes) {
    if (!is_marked(claim)) return std::nullopt;
    return capacity;  // only the marks are left
  }
  const auto volume = size_of(scene.volume->capacity);
  if (volume && volume->bytes > goal->bytes) goal = volume;
  return goal;
}

/// Nothing is to grow: what is on record is of no use.
ResizeDecision end_all(const ResizeScene& scene) {
  for (const Recorded& resize : scene.resizes) {
    if (resize.progress.over()) return for_resize::Forget{resize.operation};
    if (resize.progress.state != State::kEnding) return for_resize::Cancel{resize.operation};
  }
  if (!scene.resizes.empty()) return wait(scene);
  return for_resize::Wait{.forget = true};
}

/// The latest for this size.
const Recorded* current(const ResizeScene& scene, const Size& goal) {
  const Recorded* latest = nullptr;
  for (const Recorded& resize : scene.resizes) {
    if (resize.operation->size_bytes != goal.bytes) continue;
    if (resize.progress.state == State::kEnding && resize.progress.acts_no_more) continue;
    if (latest == nullptr || resize.operation->attempt > latest->operation->attempt) {
      latest = &resize;
    }
  }
  return latest;
}

/// What else is at work in the directory comes to its end first: two sizes must not compete.
std::optional<ResizeDecision> clear_away(const ResizeScene& scene, const Recorded* kept) {
  for (const Recorded& resize : scene.resizes) {
    if (&resize == kept || !acts(resize)) continue;
    if (resize.progress.state != State::kEnding) return for_resize::Cancel{resize.operation};
    if (!resize.progress.message.empty()) return for_resize::Follow{resize};
    return wait(scene);
  }
  return std::nullopt;
}

int next_attempt(const ResizeScene& scene) {
  int last = std::max(scene.memory.retry.number, scene.last_elsewhere);
  for (const Recorded& resize : scene.resizes) last = std::max(last, resize.operation->attempt);
  return last + 1;
}

Operation resize_to(const ResizeScene& scene, const Size& goal) {
  const k8s::PersistentVolume& volume = *scene.volume;
  Operation operation;
  operation.kind = operation::Kind::kResize;
  operation.volume_name = volume.meta.name;
  operation.claim = scene.claim->meta.key();
  operation.owner_uid = scene.claim->meta.uid;
  if (!may_be_given_away(volume)) operation.claim_uid = volume.claim_uid;
  operation.attempt = next_attempt(scene);
  operation.storage_class = volume.storage_class_name;
  operation.node = scene.node.name;
  operation.path = volume.path;
  if (const auto* disk = k8s::find(volume.meta.annotations, kVolumeDisk)) operation.disk = *disk;
  operation.base_path = base_path_of(operation.node, volume, *scene.config);
  operation.require_mount = scene.config->must_be_mounted(operation.node, operation.base_path);
  if (!volume.volume_mode.empty()) operation.volume_mode = volume.volume_mode;
  operation.size_bytes = goal.bytes;
  operation.limits = limits_of_volume(scene);
  return operation;
}

ResizeDecision begin_work(const ResizeScene& scene, const Size& goal) {
  const k8s::PersistentVolume& volume = *scene.volume;
  if (const auto left = held(scene.memory.retry, scene.now, goal.text)) {
    return for_resize::Wait{.at_most = *left};
  }
  if (!scene.has_way) return for_resize::AskForWay{resize_to(scene, goal)};
  if (scene.node.kind == VolumeNode::Kind::kGone || scene.node.kind == VolumeNode::Kind::kUnclear) {
    const bool gone = scene.node.kind == VolumeNode::Kind::kGone;
    return for_resize::Refuse{
        gone ? "node " + scene.node.description + " does not exist"
             : "it is not clear on which node the directory is: " + scene.node.description,
        goal};
  }
  if (const auto safe = check_place(volume, *scene.config, "resize"); !safe.ok()) {
    return for_resize::Refuse{safe.error().message, goal};
  }
  return for_resize::Start{resize_to(scene, goal)};
}

/// A volume without a limit grows in numbers; one that has a limit must not seem larger than that.
std::optional<ResizeDecision> go_on_without(const ResizeScene& scene, const Size& goal) {
  if (!limits_of_volume(scene).any()) return std::nullopt;
  return for_resize::Refuse{
      "it has limits, and there is nothing to change them with: set resizeCommand in config.json, "
      "or give the ConfigMap a script named resize",
      goal};
}

/// Nothing when the directory has its new limit, or cannot have one.
std::optional<ResizeDecision> work(const ResizeScene& scene, const Size& goal) {
  const Recorded* const resize = current(scene, goal);
  if (auto decision = clear_away(scene, resize)) return decision;
  if (resize == nullptr) {
    const auto& lost = scene.memory.in_flight;
    if (lost != nullptr && lost->size_bytes == goal.bytes &&
        lost->attempt > scene.memory.retry.number) {
      return for_resize::Failed{lost, scene.lost, goal};
    }
    if (scene.has_way == false) return go_on_without(scene, goal);
    return begin_work(scene, goal);
  }
  switch (resize->progress.state) {
    case State::kWaiting:
    case State::kRunning:
    case State::kEnding: return for_resize::Follow{*resize};
    case State::kSucceeded:
      if (!falls_short(*resize)) return std::nullopt;
      break;
    case State::kFailed:
    case State::kLate: break;
  }
  if (resize->progress.infeasible) {
    return for_resize::Infeasible{resize->operation, resize->progress, goal};
  }
  if (resize->operation->attempt > scene.memory.retry.number) {
    Progress progress = resize->progress;
    if (falls_short(*resize)) {
      progress.reason = "LimitsMissing";
      progress.message = what_is_missing(*resize->operation, progress.kept);
    }
    return for_resize::Failed{resize->operation, std::move(progress), goal};
  }
  if (resize->progress.state == State::kLate) return for_resize::Cancel{resize->operation};
  // Somebody may have taken the script away because it fails.
  if (scene.has_way == false) return for_resize::Forget{resize->operation};
  return begin_work(scene, goal);
}

/// Before anything is done for it, the size stands in the claim's status.
std::optional<ResizeDecision> announce(const ResizeScene& scene, const Size& goal) {
  const auto [allocated, status] = marks_of(scene);
  const bool same_size = allocated && allocated->bytes == goal.bytes;
  if (status == kResizeInProgress && same_size) return std::nullopt;
  if (auto decision = clear_away(scene, nullptr)) return decision;
  // Another expansion is judged by its own attempts.
  for (const Recorded& resize : scene.resizes) {
    const bool is_history = resize.progress.over() && resize.operation->size_bytes == goal.bytes;
    if (is_history) return for_resize::Forget{resize.operation};
  }
  if (status == kResizeInfeasible && same_size) {
    if (const auto left = held(scene.memory.retry, scene.now, goal.text)) {
      return for_resize::Wait{.at_most = *left};
    }
  }
  return for_resize::Begin{goal};
}

}  // namespace

bool wants_resize(const k8s::PersistentVolumeClaim& claim) {
  if (claim.volume_name.empty()) return false;
  if (is_marked(claim)) return true;
  const auto request = size_of(claim.storage_request);
  const auto capacity = size_of(claim.capacity);
  return is_beyond_all(claim) || (request && capacity && request->bytes > capacity->bytes);
}

ResizeDecision decide(const ResizeScene& scene) {
  if (!is_ours_and_bound(scene)) return end_all(scene);
  const auto goal = goal_of(scene);
  if (!goal && scene.resizes.empty() && is_beyond_all(*scene.claim)) {
    const Size request{.text = scene.claim->storage_request};
    const auto left = held(scene.memory.retry, scene.now, request.text);
    if (left) return for_resize::Wait{.at_most = *left};
    return for_resize::Refuse{"no volume can have " + request.text, request};
  }
  if (!goal) return end_all(scene);
  using Limit = for_resize::Finish::Limit;
  const auto capacity = size_of(scene.claim->capacity);
  if (goal->bytes <= capacity->bytes) return for_resize::Finish{*goal, Limit::kSameAsBefore};
  if (auto decision = announce(scene, *goal)) return *std::move(decision);
  if (auto decision = work(scene, *goal)) return *std::move(decision);
  const auto volume = size_of(scene.volume->capacity);
  if (!volume || volume->bytes < goal->bytes) return for_resize::GrowVolume{*goal};
  const Recorded* const resize = current(scene, *goal);
  const bool enforced = resize != nullptr && resize->progress.kept.size.value_or(true);
  return for_resize::Finish{*goal, enforced ? Limit::kEnforced : Limit::kNone};
}

}  // namespace lpp::provisioner
