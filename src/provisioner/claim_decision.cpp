// SPDX-License-Identifier: Apache-2.0
#include "provisioner/claim_decision.h"

#include <fmt/format.h>

#include <algorithm>

#include "operation/reasons.h"
#include "provisioner/claim_binding.h"
#include "provisioner/claim_clear_away.h"
#include "provisioner/claim_shape.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

using operation::Operation;
using operation::Progress;
using State = Progress::State;

namespace {

/// A volume that we created should be in the cache long before this.
constexpr std::chrono::seconds kPublishedLimit{30};
/// So often a claim may move to another node without a wait.
constexpr int kFreeMoves = 3;

/// What of a node a decision can depend on. Its resource version changes with every heartbeat.
std::string seen_of(const k8s::Node* node) {
  if (node == nullptr) return {};
  std::string seen = node->meta.uid;
  if (node->meta.incomplete) return seen;  // the rest depends on how much of it was read
  for (const auto& [key, value] : node->meta.labels)
    seen.append("/").append(key).append("=").append(value);
  return seen;
}

/// When something of what is on record, or of a hold, changes by itself; what is on record is
/// looked at again in any case.
Duration soonest(const ClaimScene& scene) {
  std::optional<Duration> least;
  const auto at = [&](TimePoint time) {
    if (time > scene.now && (!least || time - scene.now < *least)) least = time - scene.now;
  };
  const auto follow = [&](const Progress& progress) {
    if (!progress.over()) at(scene.now + kRecheck);
    if (progress.changes_at) at(*progress.changes_at);
  };
  for (const Make& make : scene.makes) {
    if (make.progress) follow(*make.progress);
  }
  for (const TakingBack& one : scene.taking_back) follow(one.progress);
  for (const auto& [place, retry] : scene.memory.take_back) at(retry.hold_until);
  at(scene.memory.retry.hold_until);
  return least.value_or(kRecheck);
}

for_claim::Wait wait(const ClaimScene& scene) { return {.at_most = soonest(scene)}; }

/// Nothing is to be done for the claim; something of it may still be on record.
for_claim::Wait idle(const ClaimScene& scene, bool forget) {
  const bool busy = !scene.taking_back.empty() ||
                    std::any_of(scene.makes.begin(), scene.makes.end(),
                                [](const Make& make) { return make.progress || !make.begun.done; });
  if (busy) return wait(scene);
  return {.forget = forget};
}

bool is_near_taking_back(const ClaimScene& scene, const Operation& make) {
  return std::any_of(
      scene.taking_back.begin(), scene.taking_back.end(),
      [&](const TakingBack& one) { return affect_each_other(*one.operation, make); });
}

/// A removal of a volume that had the claim's volume name, and that may still be at work there.
const operation::Recorded* removal_near(const ClaimScene& scene, const Operation& make) {
  for (const auto& removal : scene.removals) {
    const Progress& progress = removal.progress;
    const bool acts_no_more =
        progress.over() || (progress.state == State::kEnding && progress.acts_no_more);
    if (!acts_no_more && affect_each_other(*removal.operation, make)) return &removal;
  }
  return nullptr;
}

/// Until it is gone; one that does not go is told.
ClaimDecision wait_for(const ClaimScene& scene, const operation::Recorded& removal) {
  if (removal.progress.message.empty()) return wait(scene);
  return for_claim::TakeBackStuck{removal.operation, removal.progress};
}

int next_attempt(const ClaimScene& scene) {
  int last = scene.memory.retry.number;
  for (const Make& make : scene.makes) last = std::max(last, make.operation().attempt);
  return last + 1;
}

ClaimDecision volume_is_there(const ClaimScene& scene) {
  const std::string different = difference(*scene.volume, *scene.claim, scene.names);
  if (!different.empty()) return for_claim::OtherVolume{different};
  auto decision = decide_binding(scene);
  if (!decision) return idle(scene, true);
  const auto* const held = std::get_if<for_claim::Wait>(&*decision);
  if (held == nullptr) return *std::move(decision);
  for_claim::Wait rest = idle(scene, false);
  if (held->at_most) rest.at_most = std::min(*held->at_most, rest.at_most.value_or(kRecheck));
  return rest;
}

/// Nobody asks for a volume: the claim is bound elsewhere, or no node is selected (any more).
ClaimDecision not_asked_for(const ClaimScene& scene) {
  const bool waits_for_a_node =
      scene.claim->volume_name.empty() && asks_for(*scene.claim, scene.names);
  return idle(scene, !waits_for_a_node && !scene.memory.published);
}

/// Before what is made is shown, made again or goes on: what else may act there on this node comes
/// first. Another node's make does no harm on a shared filesystem, and that node may never come
/// back.
std::optional<ClaimDecision> clear_place(const ClaimScene& scene, const Make& current) {
  if (!current.progress->over() && !waits_for_word(current)) return std::nullopt;
  const Operation& place = current.operation();
  if (is_near_taking_back(scene, place)) return wait(scene);
  if (const auto* const removal = removal_near(scene, place)) return wait_for(scene, *removal);
  for (const Make& make : scene.makes) {
    const bool is_there =
        make.operation().node == place.node && affect_each_other(make.operation(), place);
    if (&make == &current || !is_there || !make.progress || make.progress->over()) continue;
    if (make.progress->state == State::kEnding && make.progress->acts_no_more) continue;
    // Nobody lets it go on: the later one has its place.
    if (make.progress->state == State::kLate || waits_for_word(make)) {
      return for_claim::Cancel{make.begun.operation};
    }
    return wait(scene);
  }
  return std::nullopt;
}

ClaimDecision make_again(const ClaimScene& scene, const Make& make) {
  const std::string& unfit = disk_there(scene, make.operation()).why_unfit;
  if (!unfit.empty() && !make.operation().shared) {
    return for_claim::Failed{make.begun.operation, unfit, std::string(operation::kOtherDisk), true};
  }
  if (held(scene.memory.retry, scene.now, scene.settings())) return wait(scene);
  Operation next = make.operation();
  next.attempt = next_attempt(scene);
  next.disk.clear();  // whoever makes it finds out anew
  // The node's labels may have changed since.
  if (next.shape && next.shape->has_affinity && scene.node && scene.node_name == next.node) {
    if (auto refusal = tie_to(*scene.node, *next.shape)) {
      return for_claim::Refuse{*std::move(refusal)};
    }
  }
  return for_claim::Start{std::move(next)};
}

ClaimDecision go_on_making(const ClaimScene& scene, const Make& make) {
  switch (make.progress->state) {
    case State::kEnding:
    case State::kWaiting:
    case State::kRunning: return for_claim::Follow{make};
    case State::kSucceeded:
      if (make.falls_short()) {
        return for_claim::Failed{make.begun.operation,
                                 what_is_missing(make.operation(), make.progress->kept),
                                 "LimitsMissing"};
      }
      if (make.progress->standing == Progress::Standing::kAwaited) return for_claim::Follow{make};
      if (scene.claim->meta.deleting()) return idle(scene, false);  // taken back once it is gone
      if (make.progress->standing == Progress::Standing::kDoubtful) return make_again(scene, make);
      return for_claim::Publish{make};
    case State::kFailed:
    case State::kLate: break;
  }
  if (!is_counted(scene, make)) {
    return for_claim::Failed{make.begun.operation, make.progress->message, make.progress->reason,
                             make.falls_short()};
  }
  // At no moment it is unknown that something may have been done: what failed stays on record until
  // the next attempt is, unless it could interfere.
  if (make.progress->state == State::kLate) return for_claim::Cancel{make.begun.operation};
  return make_again(scene, make);
}

/// What failed elsewhere may succeed here.
bool is_where_it_began(const ClaimScene& scene) {
  const std::string& before = scene.memory.begun_on;
  return before.empty() || before == scene.node_name;
}

ClaimDecision begin_making(const ClaimScene& scene) {
  const Memory& memory = scene.memory;
  if (memory.in_flight != nullptr && memory.in_flight->node == scene.node_name &&
      memory.in_flight->attempt > memory.retry.number) {
    return for_claim::Failed{memory.in_flight, scene.lost.message, scene.lost.reason};
  }
  if (waits_for_next_attempt(scene)) return wait(scene);
  if (scene.claim->meta.deleting()) return idle(scene, false);  // nothing new on its way out
  if (scene.storage_class == nullptr) {
    return for_claim::Refuse{
        {.message = "storageClass \"" + scene.claim->class_name() + "\" not found"}};
  }
  auto planned = make_operation(*scene.claim, *scene.storage_class, scene.node.get(), *scene.config,
                                scene.base_paths);
  if (auto* refusal = std::get_if<Refusal>(&planned)) return for_claim::Refuse{std::move(*refusal)};
  auto& operation = std::get<Operation>(planned);
  operation.attempt = next_attempt(scene);
  if (operation.shape && scene.storage_class->provisioner != scene.names.own()) {
    operation.shape->provisioner = scene.storage_class->provisioner;
  }
  // What is still going on there, or on its way out, comes first.
  if (is_near_taking_back(scene, operation)) return wait(scene);
  if (const auto* const removal = removal_near(scene, operation)) return wait_for(scene, *removal);
  for (const Make& make : scene.makes) {
    const bool elsewhere = make.operation().node != operation.node;  // of a shared filesystem
    if (make.progress && !elsewhere && affect_each_other(make.operation(), operation))
      return wait(scene);
  }
  if (!is_where_it_began(scene) && memory.moves >= kFreeMoves && scene.now < memory.move_at) {
    return for_claim::Wait{.at_most = memory.move_at - scene.now};
  }
  return for_claim::Start{std::move(operation)};
}

ClaimDecision provision(const ClaimScene& scene) {
  if (scene.memory.published) {
    if (scene.now - *scene.memory.published < kPublishedLimit) return wait(scene);
    return for_claim::CheckPublished{};
  }
  // It has no node any more, by our own write.
  const std::string& before = scene.memory.rescheduled_from;
  if (!before.empty() && before == scene.claim->meta.resource_version) return wait(scene);
  if (!scene.node_name.empty() && scene.node == nullptr) {
    if (held(scene.memory.retry, scene.now, scene.seen())) return wait(scene);
    // It has just been sent back to the scheduler. Whoever writes such a node on it in a loop
    // does not make us ask the API server each time.
    if (scene.now < scene.memory.reschedule_at) {
      return for_claim::Wait{.at_most = scene.memory.reschedule_at - scene.now};
    }
    return for_claim::CheckNode{};
  }
  const Make* current = nullptr;
  for (const Make& make : scene.makes) {
    if (make.begun.done || !make.progress || !is_wanted(scene, make)) continue;
    if (current == nullptr || make.operation().attempt > current->operation().attempt) {
      current = &make;
    }
  }
  if (current == nullptr) return begin_making(scene);
  if (auto decision = clear_place(scene, *current)) return *std::move(decision);
  return go_on_making(scene, *current);
}

}  // namespace

bool Make::has_failed() const {
  return progress && (progress->state == State::kFailed || progress->state == State::kLate);
}

bool Make::has_done_nothing() const {
  return begun.first_there && !begun.made && !begun.given_up && progress &&
         progress->state == State::kFailed && progress->directory == operation::Directory::kAbsent;
}

bool Make::falls_short() const {
  if (!progress || !progress->over()) return false;
  // Of a shared file system each node has the same path.
  if (progress->state == State::kFailed) return progress->unfit && !operation().shared;
  if (!operation().limits.any() && !operation().require_mount) return false;
  return !what_is_missing(operation(), progress->kept).empty();
}

bool waits_for_next_attempt(const ClaimScene& scene) {
  const Retry& retry = scene.memory.retry;
  if (held(retry, scene.now, scene.seen())) return true;
  return is_where_it_began(scene) && held(retry, scene.now, scene.settings());
}

std::string ClaimScene::settings() const {
  return fmt::format("{}/{}/{}/{}", storage_class ? storage_class->meta.resource_version : "",
                     seen_of(node.get()), config ? config->generation : 0, sight);
}

std::string ClaimScene::seen() const {
  return (claim ? claim->meta.resource_version : std::string()) + "/" + settings();
}

ClaimDecision decide(const ClaimScene& scene) {
  // The volume may be there though the cache does not show it: then the directory is not free.
  if (scene.claim == nullptr && scene.memory.published && scene.volume == nullptr) {
    return for_claim::CheckPublished{};
  }
  if (auto decision = clear_away(scene)) return *std::move(decision);
  if (scene.claim == nullptr) return idle(scene, true);
  if (scene.volume != nullptr) return volume_is_there(scene);
  if (!is_asked_for(scene)) return not_asked_for(scene);
  return provision(scene);
}

bool keeps_others_out(const Make& make) {
  return make.progress && make.progress->standing == Progress::Standing::kCertain;
}

bool may_tear_down(const Make& make) {
  return make.begun.never_published && make.begun.made && keeps_others_out(make);
}

}  // namespace lpp::provisioner
