// SPDX-License-Identifier: Apache-2.0
#include "provisioner/resize_reconciler.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "k8s/quantity.h"
#include "provisioner/names.h"
#include "provisioner/volume_node.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using nlohmann::json;
using operation::Executor;
using operation::Operation;
using operation::Progress;
using State = Progress::State;

namespace {

/// Only one of these at a time is true of a claim (rule D2.4).
constexpr std::array<std::string_view, 4> kResizeConditions{
    kResizingCondition, kResizeErrorCondition, "FileSystemResizePending", "NodeResizeError"};

bool is_larger(const k8s::PersistentVolume& volume, std::int64_t bytes) {
  const auto capacity = k8s::Quantity::parse(volume.capacity);
  return capacity.ok() && capacity->value() > bytes;
}

}  // namespace

Action ResizeReconciler::step(const ClaimKey& key) {
  Pass pass{.key = key};
  for (int i = 0; i < kMostDecisions; ++i) {
    pass.scene = look(pass);
    if (pass.scene.volume == nullptr) return Action::done();
    const std::string claim_name = key.claim.to_string();
    const log::Scope fields({{"volume", pass.scene.volume->meta.name},
                             {"claim", claim_name},
                             {"node", pass.scene.node.name}});
    const auto decision = decide(pass.scene);
    const auto next = std::visit([&](const auto& what) { return perform(pass, what); }, decision);
    if (next) return *next;
  }
  log::error("claim {}: no end of decisions about its size", key.claim.to_string());
  return Action::retry();
}

ResizeScene ResizeReconciler::look(const Pass& pass) const {
  ResizeScene scene;
  scene.now = world_.clock.now();
  scene.names = world_.names;
  scene.claim = world_.claims.get(pass.key.claim);
  // What is left of a claim that is gone is its volume's affair.
  if (scene.claim == nullptr || scene.claim->meta.uid != pass.key.uid ||
      scene.claim->volume_name.empty()) {
    return scene;
  }
  const std::string& volume = scene.claim->volume_name;
  auto recorded = world_.executor.recorded(volume);
  scene.volume = world_.volumes.get({"", volume});
  for (auto& one : recorded) {
    const Operation& operation = *one.operation;
    if (operation.kind != operation::Kind::kResize || operation.owner_uid != pass.key.uid) continue;
    // The volume's step calls it off.
    if (scene.volume != nullptr && !operation.node.empty() &&
        !may_be_on(*scene.volume, operation.node, world_.nodes)) {
      scene.last_elsewhere = std::max(scene.last_elsewhere, operation.attempt);
      continue;
    }
    scene.resizes.push_back(std::move(one));
  }
  std::sort(scene.resizes.begin(), scene.resizes.end(), [](const auto& a, const auto& b) {
    return a.operation->attempt < b.operation->attempt;
  });
  if (scene.resizes.empty() && !wants_resize(*scene.claim)) {
    forget(scene);
    scene.volume = nullptr;  // nothing to be decided
    return scene;
  }
  scene.config = world_.config.current();
  if (scene.volume != nullptr) {
    scene.node = removal_node_of(*scene.volume, world_.nodes, *scene.config);
    scene.storage_class = world_.classes.get({"", scene.volume->storage_class_name});
  }
  scene.memory = memories_.get(volume);
  scene.has_way = pass.has_way;
  if (scene.memory.in_flight != nullptr) {
    scene.lost = world_.executor.lost(*scene.memory.in_flight);
  }
  return scene;
}

/// Anybody may name any volume in his claim: what is remembered is of the volume's own claim.
void ResizeReconciler::forget(const ResizeScene& scene) const {
  if (scene.volume == nullptr || scene.volume->claim_uid != scene.claim->meta.uid) return;
  memories_.erase(scene.volume->meta.name);
  world_.figures.forget(operation::Kind::kResize, scene.volume->meta.name);
}

void ResizeReconciler::remember(const Pass& pass) {
  memories_.set(pass.scene.volume->meta.name, pass.scene.memory);
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Wait& decision) {
  if (decision.forget) forget(pass.scene);
  return decision.at_most ? Action::await_change(*decision.at_most) : Action::done();
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Begin& decision) {
  const std::string& size = decision.size.text;
  const json status{{"allocatedResources", {{"storage", size}}},
                    {"allocatedResourceStatuses", {{"storage", kResizeInProgress}}},
                    {"conditions", conditions(pass, kResizingCondition, {})}};
  const auto patched = patch_claim(pass, Note::kRemove, status);
  if (!patched.ok()) return write_failed(pass, patched.error());
  log::info("the volume is to grow from {} to {}", pass.scene.claim->capacity, size);
  event(pass, kResizing, "External resizer is resizing volume " + pass.scene.volume->meta.name);
  pass.scene.memory = {};  // what failed was another expansion
  note_dropped(pass, *patched, {.allocated = size, .status = std::string(kResizeInProgress)});
  remember(pass);
  return Action::await_change(kSoon);
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass,
                                                 const for_resize::AskForWay& decision) {
  const auto way = world_.executor.can_resize(decision.operation);
  if (!way.ok()) return api_failed(pass, way.error());
  pass.has_way = *way;
  return std::nullopt;
}

/// The cache may be behind, and the directory another volume's by now, or its volume larger.
Result<bool> ResizeReconciler::may_grow_to(const Pass& pass, std::int64_t bytes) {
  const k8s::PersistentVolume& seen = *pass.scene.volume;
  const auto volume = read_volume(world_, seen.meta.name);
  if (!volume.ok()) return volume.error();
  return *volume && !is_larger(**volume, bytes) && (*volume)->meta.uid == seen.meta.uid &&
         (*volume)->path == seen.path && (*volume)->phase == "Bound" &&
         (*volume)->claim_uid == pass.key.uid && !(*volume)->meta.deleting();
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Start& decision) {
  const Operation& operation = decision.operation;
  Memory& memory = pass.scene.memory;
  const auto may_grow = may_grow_to(pass, operation.size_bytes);
  if (!may_grow.ok()) return api_failed(pass, may_grow.error());
  if (!*may_grow) return Action::await_change(kSoon);
  world_.figures.progressed(operation::Kind::kResize, operation, Step::kQueued);
  const auto admission = world_.executor.admit(operation);
  if (!admission) {
    return reporter_.turned_away(subject(pass), operation.node, pass.scene.config->cmd_timeout,
                                 memory);
  }
  memory.turned_away.reset();
  const auto started = world_.executor.start(operation);
  if (!started.ok()) {
    remember(pass);
    return api_failed(pass, started.error());
  }
  memory.troubles = 0;
  memory.retry.begun = operation.attempt;
  if (*started == Executor::Start::kRecorded) {
    memory.in_flight = std::make_shared<const Operation>(operation);
    world_.figures.progressed(operation::Kind::kResize, operation, Step::kStart);
  }
  remember(pass);
  return Action::await_change(*started == Executor::Start::kRecorded ? kRecheck : kSoon);
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Follow& decision) {
  const Progress& progress = decision.resize.progress;
  world_.figures.progressed(operation::Kind::kResize, *decision.resize.operation, step_of(progress),
                            progress.message);
  if (progress.outdated && progress.state != State::kEnding) {
    const auto may_grow = may_grow_to(pass, decision.resize.operation->size_bytes);
    if (!may_grow.ok()) return api_failed(pass, may_grow.error());
    if (!*may_grow) return Action::await_change(kSoon);
    const auto started = world_.executor.start(*decision.resize.operation);
    if (!started.ok()) return api_failed(pass, started.error());
  }
  // One that is on its way out is not missed when it has gone.
  pass.scene.memory.in_flight =
      progress.state == State::kEnding ? nullptr : decision.resize.operation;
  remember(pass);
  if (!progress.message.empty()) reporter_.tell(subject(pass), progress.message);
  if (!progress.changes_at) return Action::await_change(kRecheck);
  const Duration left = *progress.changes_at - pass.scene.now;
  return Action::await_change(std::clamp(left, Duration::zero(), Duration(kRecheck)));
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Failed& decision) {
  Memory& memory = pass.scene.memory;
  memory.retry = memories_.failed(memory.retry, decision.operation->attempt, decision.size.text);
  memory.in_flight = nullptr;
  remember(pass);
  memories_.unsay(pass.scene.volume->meta.name, kVolumeResizeFailed);
  reporter_.failed(subject(pass), decision.progress.reason, decision.progress.message);
  return std::nullopt;
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass,
                                                 const for_resize::Infeasible& decision) {
  const std::string& message = decision.progress.message;
  const json status{{"allocatedResourceStatuses", {{"storage", kResizeInfeasible}}},
                    {"conditions", conditions(pass, kResizeErrorCondition, message)}};
  const auto patched = patch_claim(pass, Note::kKeep, status);
  if (!patched.ok()) return write_failed(pass, patched.error());
  Memory& memory = pass.scene.memory;
  memory.retry = {.number = decision.operation->attempt,
                  .hold_until = pass.scene.now + Memories::kResync,
                  .seen = decision.size.text};
  memory.in_flight = nullptr;
  note_dropped(pass, *patched,
               {.allocated = decision.size.text, .status = std::string(kResizeInfeasible)});
  remember(pass);
  // An API server that keeps no marks lets no claim ask for less.
  const std::string advice = memory.dropped.status.empty()
                                 ? "ask for less, but for more than " + pass.scene.claim->capacity
                                 : "make room for it";
  reporter_.failed(subject(pass), "Infeasible",
                   "its node cannot have it: " + message + "; " + advice);
  return Action::await_change(kSoon);
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Refuse& decision) {
  pass.scene.memory.retry.hold_until = pass.scene.now + Memories::kResync;
  pass.scene.memory.retry.seen = decision.size.text;
  remember(pass);
  reporter_.failed(subject(pass), "Refused", decision.message);
  return Action::await_change(Memories::kResync);
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Cancel& decision) {
  pass.scene.memory.in_flight = nullptr;
  remember(pass);
  const auto cancelled = world_.executor.cancel(decision.operation->id());
  if (!cancelled.ok()) return api_failed(pass, cancelled.error());
  return std::nullopt;
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Forget& decision) {
  // What the newest one has told counts. It is forgotten last: none that is older tells it anew.
  const auto newest =
      std::find_if(pass.scene.resizes.rbegin(), pass.scene.resizes.rend(),
                   [](const operation::Recorded& resize) { return resize.progress.over(); });
  if (newest != pass.scene.resizes.rend()) {
    note_told(world_, *newest->operation, newest->progress);
  }
  pass.scene.memory.in_flight = nullptr;
  remember(pass);
  const auto forgotten = world_.executor.forget(decision.operation->id(), Executor::When::kNow);
  if (!forgotten.ok()) return api_failed(pass, forgotten.error());
  return std::nullopt;
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass,
                                                 const for_resize::GrowVolume& decision) {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  const json patch{
      {"metadata", {{"uid", volume.meta.uid}, {"resourceVersion", volume.meta.resource_version}}},
      {"spec", {{"capacity", {{"storage", decision.size.text}}}}}};
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumes, volume.meta.key(), k8s::PatchType::kMerge, patch,
                          {}, k8s::Answer::kIdentity);
  if (!patched.ok()) {
    return write_failed(pass, patched.error().wrap("patch the volume's capacity"));
  }
  return Action::await_change(kSoon);
}

ResizeReconciler::Next ResizeReconciler::perform(Pass& pass, const for_resize::Finish& decision) {
  using Limit = for_resize::Finish::Limit;
  const std::string& volume = pass.scene.volume->meta.name;
  json status{{"conditions", conditions(pass, {}, {})}};
  if (!pass.scene.claim->resize_status.empty()) {
    status["allocatedResourceStatuses"] = {{"storage", nullptr}};
  }
  const bool grew = decision.limit != Limit::kSameAsBefore;
  if (grew) status["capacity"] = {{"storage", decision.size.text}};
  const auto patched = patch_claim(pass, Note::kSet, status);
  if (!patched.ok()) return write_failed(pass, patched.error());
  if (grew) {
    log::info("the volume has grown to {}", decision.size.text);
    event(pass, kVolumeResizeSuccessful, "Resize volume succeeded");
    world_.figures.succeeded(operation::Kind::kResize, volume,
                             pass.scene.volume->storage_class_name);
  }
  if (decision.limit == Limit::kNone) {
    // A Warning, for it is not to give way to the Event that the claim has grown.
    const std::string text =
        "volume " + volume +
        " is a directory without a limit: its size has grown in the claim and in the volume, and "
        "nothing keeps what is written to it";
    world_.events.event(subject(pass).about, k8s::EventType::kWarning, kSizeNotEnforced, text);
  }
  return Action::await_change(kSoon);
}

void ResizeReconciler::note_dropped(Pass& pass, const json& answer, ResizeMarks written) {
  const auto claim = k8s::decode<k8s::PersistentVolumeClaim>(answer);
  const bool kept = claim.ok() && claim->resize_status == written.status;
  pass.scene.memory.dropped = kept ? ResizeMarks{} : std::move(written);
}

Result<json> ResizeReconciler::patch_claim(const Pass& pass, Note note, const json& status) {
  const k8s::ObjectMeta& meta = pass.scene.claim->meta;
  json patch{{"metadata", {{"uid", meta.uid}, {"resourceVersion", meta.resource_version}}},
             {"status", status}};
  if (note != Note::kKeep) {
    json& value = patch["metadata"]["annotations"][std::string(kNodeExpansionNotRequired)];
    if (note == Note::kSet) value = "true";
  }
  if (status["conditions"].empty()) patch["status"].erase("conditions");
  // Strategic, because conditions of others stay as they are.
  auto patched = world_.client.patch(k8s::kPersistentVolumeClaims, meta.key(),
                                     k8s::PatchType::kStrategicMerge, patch, "status");
  if (!patched.ok()) return patched.error().wrap("patch the claim's status");
  return patched;
}

/// The write is guarded by the version in the cache, so what the cache shows is what is there.
json ResizeReconciler::conditions(const Pass& pass, std::string_view type,
                                  const std::string& message) const {
  json list = json::array();
  bool is_there = false;
  for (const auto& [name, status] : pass.scene.claim->conditions) {
    if (name == type) {
      is_there = status == "True";
    } else if (std::find(kResizeConditions.begin(), kResizeConditions.end(), name) !=
               kResizeConditions.end()) {
      list.push_back({{"$patch", "delete"}, {"type", name}});
    }
  }
  if (type.empty()) return list;
  json condition{{"type", type}, {"status", "True"}};
  if (!is_there) condition["lastTransitionTime"] = format_rfc3339(world_.clock.wall_now());
  if (!message.empty()) condition["message"] = message;
  list.push_back(std::move(condition));
  return list;
}

Action ResizeReconciler::write_failed(const Pass& pass, const Error& error) {
  if (!k8s::is_stale(error)) return api_failed(pass, error);
  log::debug("looked at again: {}", error.message);
  return Action::await_change(kSoon);
}

Action ResizeReconciler::api_failed(const Pass& pass, const Error& error) {
  if (error.is(ErrorCode::kForbidden)) {
    return reporter_.api_failed(
        subject(pass),
        error.wrap(
            "the daemon lacks a permission that growing needs, as a role of an older version "
            "does"));
  }
  return reporter_.api_failed(subject(pass), error);
}

void ResizeReconciler::event(const Pass& pass, std::string_view reason,
                             const std::string& message) {
  world_.events.event(subject(pass).about, k8s::EventType::kNormal, reason, message);
}

Subject ResizeReconciler::subject(const Pass& pass) const {
  const ResizeScene& scene = pass.scene;
  const std::string& volume = scene.volume->meta.name;
  return {.failure = {.kind = operation::Kind::kResize,
                      .volume = volume,
                      .claim = pass.key.claim,
                      .node = scene.node.name,
                      .storage_class = scene.volume->storage_class_name},
          .about = k8s::reference_to(*scene.claim),
          .event_reason = kVolumeResizeFailed,
          .prefix = "failed to resize volume " + volume + ": "};
}

}  // namespace lpp::provisioner
