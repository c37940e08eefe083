// SPDX-License-Identifier: Apache-2.0
#include "provisioner/claim_reconciler.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "operation/reasons.h"
#include "provisioner/claim_binding.h"
#include "provisioner/claim_clear_away.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using operation::Executor;
using operation::Operation;
using operation::Progress;
using operation::same_place;
using State = Progress::State;

namespace {

/// The cache shows soon what stood in the way.
constexpr std::chrono::seconds kOtherFoundWait{1};

}  // namespace

Action ClaimReconciler::step(const ClaimKey& key, std::optional<TimePoint> waiting_since) {
  Pass pass{.key = key, .waiting_since = waiting_since};
  const std::string claim_name = key.claim.to_string();
  for (int i = 0; i < kMostDecisions; ++i) {
    pass.scene = look(key);
    const log::Scope fields({{"volume", pass.scene.volume_name},
                             {"claim", claim_name},
                             {"node", pass.scene.node_name}});
    show(pass.scene);
    if (const auto next = carry_out(pass, decide(pass.scene))) return *next;
  }
  log::error("claim {}: no end of decisions", claim_name);
  return Action::retry();
}

ClaimReconciler::Next ClaimReconciler::carry_out(Pass& pass, ClaimDecision decision) {
  if (rests_on_a_part(pass.scene, decision)) {
    if (auto next = read_the_rest(pass, decision)) return next;
    decision = decide(pass.scene);
  }
  if (is_a_wait(pass.scene, decision)) pass.scene.memory.waited = true;
  return std::visit([&](const auto& what) { return perform(pass, what); }, decision);
}

ClaimScene ClaimReconciler::look(const ClaimKey& key) {
  ClaimScene scene;
  scene.now = world_.clock.now();
  scene.names = world_.names;
  scene.volume_name = volume_name_of(key.uid);
  // What is on record before the caches: a volume is created before the record of its making goes.
  const auto recorded = world_.executor.recorded(scene.volume_name);
  scene.claim = world_.claims.get(key.claim);
  if (scene.claim != nullptr && scene.claim->meta.uid != key.uid) scene.claim = nullptr;
  if (scene.claim != nullptr) {
    scene.node_name = selected_node(*scene.claim);
    scene.storage_class = world_.classes.get({"", scene.claim->class_name()});
  }
  if (!scene.node_name.empty()) scene.node = world_.nodes.get({"", scene.node_name});
  scene.config = world_.config.current();
  scene.volume = world_.volumes.get({"", scene.volume_name});
  scene.binds = world_.binding.is_ours();
  scene.memory = memories_.get(scene.volume_name);
  note_begun(recorded, scene.memory);
  note_waits(scene);
  if (scene.memory.in_flight != nullptr) {
    scene.lost = world_.executor.lost(*scene.memory.in_flight);
  }

  const bool is_ours = scene.volume != nullptr && scene.volume->claim_uid == key.uid &&
                       provisioner::is_ours(*scene.volume, world_.names);
  if (is_ours) scene.memory.had_volume = true;
  for (const Begun& begun : scene.memory.begun) {
    Make make{.begun = begun};
    for (const auto& one : recorded) {
      if (one.operation->id() == begun.operation->id()) make.progress = one.progress;
    }
    make.shown = is_ours && scene.volume->path == begun.operation->path &&
                 shares_directory(*scene.volume, *begun.operation, world_.nodes);
    scene.makes.push_back(std::move(make));
  }
  for (const auto& one : recorded) {
    if (one.operation->kind == operation::Kind::kRemove) scene.removals.push_back(one);
    if (one.operation->kind != operation::Kind::kTakeBack) continue;
    const bool in_use = overlapping_volume(world_.volumes, world_.nodes, *one.operation,
                                           world_.names, {}) != nullptr;
    scene.taking_back.push_back({one.operation, one.progress, in_use});
  }
  note_missed(scene);
  scene.sight = sight_of(scene);
  look_at_disks(scene);
  scene.base_paths = base_paths_of(scene);
  return scene;
}

/// For people and their monitoring.
void ClaimReconciler::show(const ClaimScene& scene) {
  const bool is_at_work = std::any_of(scene.makes.begin(), scene.makes.end(), [](const Make& make) {
    return make.progress && !make.progress->over();
  });
  const bool is_awaited = is_asked_for(scene) && (is_at_work || !scene.claim->meta.deleting());
  if (!is_awaited) world_.figures.forget(operation::Kind::kMake, scene.volume_name);
  bool any = false;
  for (const TakingBack& one : scene.taking_back) {
    if (one.progress.state == State::kEnding) continue;
    any = true;
    world_.figures.progressed(operation::Kind::kTakeBack, *one.operation, step_of(one.progress),
                              one.progress.message);
  }
  // Nothing else tells it, for as long as the disk does not come back.
  for (const auto& [operation, why] : held_by_disks(scene)) {
    any = true;
    world_.figures.progressed(operation::Kind::kTakeBack, *operation, Step::kWaiting, why);
    reporter_.tell(take_back_subject(*operation),
                   "directory " + operation->path + " waits for its disk: " + why);
  }
  if (!any) world_.figures.forget(operation::Kind::kTakeBack, scene.volume_name);
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Wait& decision) {
  const std::string& volume = pass.scene.volume_name;
  if (decision.forget) {
    memories_.erase(volume);
    // Until the cache shows the claim bound it may be far behind: the volume can have been bound,
    // used and let go when the claim still seems to wait for it.
    const bool seems_to_wait = pass.scene.claim != nullptr && pass.scene.claim->volume_name.empty();
    if (seems_to_wait && pass.scene.memory.had_volume) memories_.set(volume, {.had_volume = true});
    world_.ledger.release(volume);
    world_.figures.forget(operation::Kind::kMake, volume);
    world_.figures.forget(operation::Kind::kTakeBack, volume);
  } else {
    remember(pass);
  }
  return decision.at_most ? Action::await_change(*decision.at_most) : Action::done();
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Start& decision) {
  ClaimScene& scene = pass.scene;
  Operation operation = decision.operation;
  if (auto refusal = complete_shape(scene, operation)) {
    return perform(pass, for_claim::Refuse{*std::move(refusal)});
  }
  if (const auto holder = world_.ledger.take(operation)) {
    // It may be on its way out: the volume of a claim that was made again under its name, say.
    return path_taken(pass, operation.path, *holder);
  }
  world_.figures.progressed(operation::Kind::kMake, operation, Step::kQueued, {},
                            pass.waiting_since);
  const auto admission = world_.executor.admit(operation);
  if (!admission) {
    world_.ledger.release(operation);
    return reporter_.turned_away(subject(pass), operation.node, scene.config->cmd_timeout,
                                 scene.memory);
  }
  scene.memory.turned_away.reset();
  if (auto next = ask_after_a_wait(pass)) {
    world_.ledger.release(operation);
    return next;
  }
  announce(pass);
  const auto started = world_.executor.start(operation);
  if (!started.ok()) {
    // It may be on record though the answer did not come: then nobody else gets the directory.
    if (!Reporter::heals_by_itself(started.error())) world_.ledger.release(operation);
    remember(pass);
    return reporter_.api_failed(subject(pass), started.error());
  }
  world_.ledger.release(operation);
  Memory& memory = scene.memory;
  memory.troubles = 0;
  memory.waited = *started != Executor::Start::kRecorded;
  if (!memory.begun_on.empty() && memory.begun_on != operation.node) {
    ++memory.moves;
    memory.move_at = scene.now + memories_.wait_after(memory.moves);
  }
  memory.begun_on = operation.node;
  memory.retry.begun = operation.attempt;
  if (*started == Executor::Start::kRecorded) {
    const auto shared = std::make_shared<const Operation>(operation);
    bool published_before = false;
    bool begun_before = memory.had_volume;
    for (const Begun& begun : memory.begun) {
      if (!same_place(*begun.operation, operation)) continue;
      published_before = published_before || !begun.never_published;
      begun_before = begun_before || !begun.done;
    }
    memory.begun.push_back({.operation = shared,
                            .never_published = !published_before && !memory.had_volume,
                            .first_there = !begun_before});
    memory.in_flight = shared;
    world_.figures.progressed(operation::Kind::kMake, operation, Step::kStart);
  }
  remember(pass);
  if (*started == Executor::Start::kOtherFound) return Action::await_change(kOtherFoundWait);
  return Action::await_change(kRecheck);
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Follow& decision) {
  const Progress& progress = *decision.make.progress;
  world_.figures.progressed(operation::Kind::kMake, decision.make.operation(), step_of(progress),
                            progress.message);
  if (progress.outdated) {
    if (const auto held = let_go_on(pass, decision.make)) return held;
  }
  // One that is on its way out is not missed when it has gone.
  if (progress.state != State::kEnding) {
    pass.scene.memory.in_flight = decision.make.begun.operation;
  }
  remember(pass);
  if (!progress.message.empty()) reporter_.tell(subject(pass), progress.message);
  if (!progress.changes_at) return Action::await_change(kRecheck);
  const Duration left = *progress.changes_at - pass.scene.now;
  return Action::await_change(std::clamp(left, Duration::zero(), Duration(kRecheck)));
}

Action ClaimReconciler::path_taken(Pass& pass, const std::string& path,
                                   const operation::Holder& holder) {
  if (pass.scene.memory.had_volume) {
    // It may be gone for long, as its volume is.
    if (const auto next = ask_after_a_wait(pass)) return *next;
  }
  pass.scene.memory.waited = true;
  remember(pass);
  reporter_.failed(subject(pass), "PathTaken",
                   "path " + path + " overlaps the directory " + holder.path + " of volume " +
                       holder.volume_name);
  return Action::await_change(kRecheck);
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Failed& decision) {
  for (const Make& make : pass.scene.makes) {
    if (make.progress && make.operation().id() == decision.operation->id()) {
      note_told(world_, make.operation(), *make.progress);
    }
  }
  Memory& memory = pass.scene.memory;
  memory.retry = memories_.failed(memory.retry, decision.operation->attempt, pass.scene.settings());
  memory.in_flight = nullptr;
  if (decision.unfit) {
    give_up(pass, *decision.operation);
    // The claim may be served elsewhere, and nobody would hear of a disk that is missing.
    if (decision.reason == operation::kOtherDisk) {
      reporter_.tell(subject(pass), decision.message);
    }
    note_unfit(pass, decision);
    remember(pass);
    return std::nullopt;
  }
  remember(pass);
  if (decision.reason == operation::kCalledOff) {
    tell_of_anew(pass, *decision.operation);
    return std::nullopt;
  }
  memories_.unsay(pass.scene.volume_name, kProvisioningFailed);
  reporter_.failed(subject(pass), decision.reason, decision.message);
  return std::nullopt;
}

/// The claim was not to have its directory there for a while, and is again: nothing has failed.
void ClaimReconciler::tell_of_anew(const Pass& pass, const Operation& make) {
  const std::string text = "making directory " + make.path + " on node " + make.node +
                           " was called off while the claim seemed not to need it there; it is "
                           "made after all";
  world_.events.event(subject(pass).about, k8s::EventType::kNormal, kProvisioning, text);
  log::info("{}", text);
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Cancel& decision) {
  const Operation& operation = *decision.operation;
  if (pass.scene.memory.in_flight != nullptr &&
      pass.scene.memory.in_flight->id() == operation.id()) {
    pass.scene.memory.in_flight = nullptr;
  }
  if (decision.is_last_record) {
    const auto told = operation.only_if_empty ? Result<void>() : tell_of_stopped(operation);
    if (!told.ok()) return reporter_.api_failed(take_back_subject(operation), told.error());
    pass.scene.memory.begun.push_back({.operation = decision.operation, .given_up = true});
  }
  not_missed(pass, operation.id());
  remember(pass);
  const auto cancelled = world_.executor.cancel(operation.id());
  if (!cancelled.ok()) {
    return reporter_.api_failed(take_back_subject(operation), cancelled.error());
  }
  return std::nullopt;
}

/// The volume was created but the cache does not show it.
ClaimReconciler::Next ClaimReconciler::perform(Pass& pass,
                                               const for_claim::CheckPublished& /*decision*/) {
  const auto volume = read_volume(world_, pass.scene.volume_name);
  if (!volume.ok()) return reporter_.api_failed(subject(pass), volume.error());
  if (*volume) return Action::await_change(kRecheck);
  // Removed by somebody before we saw it: begin again.
  pass.scene.memory.published.reset();
  remember(pass);
  world_.ledger.release(pass.scene.volume_name);
  return pass.scene.claim == nullptr ? Next() : Next(Action::retry());
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::OtherVolume& decision) {
  pass.scene.memory.waited = true;
  remember(pass);
  reporter_.failed(subject(pass), "VolumeExists",
                   "PersistentVolume " + pass.scene.volume_name +
                       " exists but is not the one for this claim: " + decision.difference +
                       "; remove it if nothing uses it");
  return Action::await_change(Memories::kResync);
}

/// Once for each attempt.
void ClaimReconciler::announce(const Pass& pass) {
  const auto& claim = *pass.scene.claim;
  world_.events.event(reference_to(claim), k8s::EventType::kNormal, kProvisioning,
                      "External provisioner is provisioning volume for claim \"" +
                          claim.meta.key().to_string() + "\"");
}

Subject ClaimReconciler::subject(const Pass& pass) const {
  const ClaimScene& scene = pass.scene;
  Subject subject{.failure = {.kind = operation::Kind::kMake,
                              .volume = scene.volume_name,
                              .claim = pass.key.claim,
                              .node = scene.node_name},
                  .about = k8s::reference_to(
                      "PersistentVolumeClaim",
                      {.name = pass.key.claim.name, .ns = pass.key.claim.ns, .uid = pass.key.uid}),
                  .event_reason = kProvisioningFailed};
  std::string class_name;
  if (scene.claim != nullptr) {
    class_name = scene.claim->class_name();
    subject.failure.source = scene.claim->source_kind();
    subject.about = reference_to(*scene.claim);
  }
  subject.failure.storage_class = class_name;
  subject.prefix = "failed to provision volume with StorageClass \"" + class_name + "\": ";
  return subject;
}

}  // namespace lpp::provisioner
