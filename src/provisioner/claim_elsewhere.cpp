// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/base_paths.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"

// What cannot serve a claim, a base path or its node, and the way to another one.

namespace lpp::provisioner {

using operation::Operation;

namespace {

/// Longer than a helper pod takes: a node's paths are not tried in a circle.
constexpr std::chrono::minutes kUnfitHold{1};

/// That a volume of the claim's class may get on the selected node; nullptr: there are none.
const std::vector<std::string>* paths_of(const ClaimScene& scene) {
  if (scene.claim == nullptr) return nullptr;
  const auto* const paths = scene.config->paths_for_class(scene.claim->class_name());
  return paths == nullptr || paths->shared() ? nullptr : paths->paths_for(scene.node_name);
}

}  // namespace

/// What has failed for another reason, before its disk went, would be made again once that is back,
/// when another path or node has the claim.
void ClaimReconciler::give_up(Pass& pass, const Operation& make) {
  for (const Make& one : pass.scene.makes) {
    if (one.operation().id() != make.id() || one.falls_short()) continue;
    for (Begun& begun : pass.scene.memory.begun) {
      if (begun.operation->id() == make.id()) begun.given_up = true;
    }
  }
}

/// The claim does not wait: another base path of the node may serve, or another node. That none
/// does is told when there is none left.
void ClaimReconciler::note_unfit(Pass& pass, const for_claim::Failed& decision) {
  Memory& memory = pass.scene.memory;
  const Operation& operation = *decision.operation;
  memory.retry.hold_until = pass.scene.now;
  const auto known = std::find_if(memory.unfit.begin(), memory.unfit.end(), [&](const Unfit& one) {
    return one.node == operation.node && one.base_path == operation.base_path;
  });
  Unfit& unfit = known == memory.unfit.end()
                     ? memory.unfit.emplace_back(
                           Unfit{.node = operation.node, .base_path = operation.base_path})
                     : *known;
  ++unfit.retry.number;
  unfit.retry.hold_until =
      pass.scene.now + std::max<Duration>(kUnfitHold, memories_.wait_after(unfit.retry.number));
  unfit.retry.seen = pass.scene.settings();
  unfit.message = decision.message;
  log::warn("base path {} cannot serve the claim: {}", operation.base_path, decision.message);
}

std::string ClaimReconciler::sight_of(const ClaimScene& scene) const {
  const auto* const paths = paths_of(scene);
  std::string seen;
  for (std::size_t i = 0; paths != nullptr && i < paths->size(); ++i) {
    seen += world_.executor.sight(scene.node_name, (*paths)[i]) + "/";
  }
  return seen;
}

/// What is to be taken back may be on another node than the selected one.
void ClaimReconciler::look_at_disks(ClaimScene& scene) const {
  const auto look_at = [&](const Operation& place, bool is_over) {
    DiskThere& there = scene.disks[place_key(place)];
    there.sight = world_.executor.sight(place.node, place.base_path);
    if (is_over) there.why_unfit = world_.executor.why_unfit(place.node, place.base_path);
  };
  for (const Make& make : scene.makes) {
    const bool is_over = !make.progress || make.progress->over();
    if (!make.begun.done && !make.shown) look_at(make.operation(), is_over);
  }
  for (const TakingBack& one : scene.taking_back) look_at(*one.operation, one.progress.over());
  for (const TakingBack& one : scene.lost_taking_back) look_at(*one.operation, true);
}

/// What is known of the selected node's base paths.
BasePaths ClaimReconciler::base_paths_of(const ClaimScene& scene) const {
  BasePaths known;
  for (const Unfit& unfit : scene.memory.unfit) {
    if (unfit.node != scene.node_name) continue;
    if (held(unfit.retry, scene.now, scene.settings())) {
      known.unfit.emplace(unfit.base_path, unfit.message);
    }
  }
  // Nothing can be made beside what has failed to go; its cause may be that of the make.
  for (const TakingBack& one : scene.taking_back) {
    if (one.operation->node != scene.node_name) continue;
    const auto retry = scene.memory.take_back.find(place_key(*one.operation));
    const bool has_failed = retry != scene.memory.take_back.end() && retry->second.number > 0;
    if (!has_failed && one.progress.state != operation::Progress::State::kFailed) continue;
    known.unfit.emplace(one.operation->base_path,
                        "the directory of an earlier attempt, " + one.operation->path +
                            ", cannot be taken back" +
                            (one.progress.message.empty() ? "" : ": " + one.progress.message));
  }
  // Only for a choice, for it takes a look at all volumes. A path that was unfit is one.
  const bool has_begun = std::any_of(scene.makes.begin(), scene.makes.end(), [&](const Make& make) {
    return make.progress && make.operation().node == scene.node_name && !make.falls_short() &&
           !make.begun.given_up;
  });
  const bool is_to_choose = scene.claim != nullptr && scene.storage_class != nullptr &&
                            scene.volume == nullptr && !scene.node_name.empty() && !has_begun;
  if (!is_to_choose || waits_for_next_attempt(scene)) return known;
  const auto* const on_node = paths_of(scene);
  if (on_node == nullptr) return known;
  for (const std::string& path : *on_node) {
    std::string why = world_.executor.why_unfit(scene.node_name, path);
    if (!why.empty()) known.unfit.emplace(path, std::move(why));
  }
  const auto selection = path_selection_of(*scene.storage_class);
  const auto* const wanted = std::get_if<PathSelection>(&selection);
  if (wanted == nullptr || *wanted != PathSelection::kMostFree) return known;
  for (const std::string& path : *on_node) {
    const auto beside = world_.space.beside(scene.node_name, path);
    known.room[path] = {.promised = promised_bytes(world_.volumes, world_.nodes, world_.ledger,
                                                   scene.node_name, beside),
                        .promises = told_promises(world_.space, world_.volumes, world_.ledger,
                                                  scene.node_name, beside),
                        .space = world_.space.find(scene.node_name, path),
                        .tried = !world_.ledger.makes_below(scene.node_name, path).empty()};
  }
  return known;
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass,
                                               const for_claim::CheckNode& /*decision*/) {
  remember(pass);
  const std::string& node = pass.scene.node_name;
  const auto gone = node_is_gone(world_, node);
  if (!gone.ok()) return reporter_.api_failed(subject(pass), gone.error());
  if (!*gone) return Action::await_change(std::chrono::seconds(1));  // the cache will show it
  return perform(pass, for_claim::Refuse{{.message = "nodes \"" + node + "\" not found",
                                          .node_is_the_reason = true}});
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Refuse& decision) {
  ClaimScene& scene = pass.scene;
  const Refusal& refusal = decision.refusal;
  scene.memory.waited = true;
  // What can be done is begun early; that it cannot is said when the control plane has asked.
  if (!asks_for(*scene.claim, world_.names)) {
    remember(pass);
    return Action::await_change(kRecheck);
  }
  Memory& memory = scene.memory;
  const bool another_node_may_serve =
      refusal.node_is_the_reason && scene.storage_class != nullptr &&
      k8s::find(scene.claim->meta.annotations, kSelectedNode) != nullptr;
  const bool reschedule_now = another_node_may_serve && scene.now >= memory.reschedule_at;
  const Duration wait = !another_node_may_serve ? Duration(Memories::kResync)
                        : reschedule_now        ? Duration::zero()
                                                : memory.reschedule_at - scene.now;
  memory.retry.hold_until = scene.now + wait;
  memory.retry.seen = scene.seen();
  remember(pass);
  const std::string reason = refusal.node_is_the_reason ? "NodeUnusable" : "Refused";
  if (!reschedule_now) {
    reporter_.failed(subject(pass), reason, refusal.message);
    return Action::await_change(wait);
  }
  return reschedule(pass, reason, refusal.message);
}

/// Takes the selected node off the claim, so that the scheduler chooses again; each time a little
/// later, since it may choose the same node.
Action ClaimReconciler::reschedule(Pass& pass, const std::string& reason, const std::string& why) {
  ClaimScene& scene = pass.scene;
  const nlohmann::json patch{{"metadata",
                              {{"uid", scene.claim->meta.uid},
                               {"resourceVersion", scene.claim->meta.resource_version},
                               {"annotations", {{kSelectedNode, nullptr}}}}}};
  const auto patched =
      world_.client.patch(k8s::kPersistentVolumeClaims, scene.claim->meta.key(),
                          k8s::PatchType::kMerge, patch, {}, k8s::Answer::kIdentity);
  if (!patched.ok() && k8s::is_stale(patched.error())) return Action::await_change(kSoon);
  if (!patched.ok()) {
    // One message for both, or each attempt would say first the one and then the other again.
    if (Reporter::heals_by_itself(patched.error())) reporter_.tell(subject(pass), why);
    return reporter_.api_failed(
        subject(pass), patched.error().wrap(why + "; remove the selected node from the claim"));
  }
  reporter_.failed(subject(pass), reason, why);
  scene.memory = memories_.get(scene.volume_name);
  scene.memory.rescheduled_from = scene.claim->meta.resource_version;
  ++scene.memory.reschedules;
  scene.memory.reschedule_at = scene.now + memories_.wait_after(scene.memory.reschedules);
  remember(pass);
  log::info("the selected node cannot serve: the scheduler is asked for another one");
  return Action::done();
}

}  // namespace lpp::provisioner
