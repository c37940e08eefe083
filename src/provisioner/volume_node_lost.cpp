// SPDX-License-Identifier: Apache-2.0
// Letting the claim of a volume go whose node was deleted from the cluster.

#include <fmt/chrono.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/node_lost.h"
#include "provisioner/volume_reconciler.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

namespace {

/// Whether the volume is the claim's, which is to stay.
bool is_its(const std::optional<k8s::PersistentVolumeClaim>& claim,
            const k8s::PersistentVolume& volume) {
  return claim && claim->meta.uid == volume.claim_uid && claim->volume_name == volume.meta.name &&
         !claim->meta.deleting();
}

std::string text_of(Duration wait) {
  return fmt::format("{}", std::chrono::duration_cast<std::chrono::seconds>(wait));
}

}  // namespace

/// What a volume needs that is not to be removed: its node costs a look at all nodes, and few
/// classes ask for it.
void VolumeReconciler::note_node(VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  const auto storage_class = world_.classes.get({"", volume.storage_class_name});
  if (storage_class != nullptr && world_.names.has(storage_class->provisioner)) {
    const auto wanted = on_node_lost_of(*storage_class);
    const auto* const on_node_lost = std::get_if<OnNodeLost>(&wanted);
    if (on_node_lost != nullptr && on_node_lost->release) {
      scene.lets_go_after = on_node_lost->after;
    }
  }
  if (!scene.lets_go_after && !has_node_lost_mark(volume)) return;
  scene.node = removal_node_of(volume, world_.nodes, *scene.config);
  const auto claim = world_.claims.get(volume.claim);
  if (claim != nullptr && claim->meta.uid == volume.claim_uid &&
      claim->volume_name == volume.meta.name) {
    scene.claim = claim;
  }
}

/// Not by the cache's word: all nodes are asked for, by label as well as by name.
Result<std::optional<bool>> VolumeReconciler::is_lost(const k8s::PersistentVolume& volume,
                                                      TimePoint not_before) {
  const auto nodes = census_.ask(world_.client, world_.clock, not_before);
  if (!nodes.ok()) return nodes.error();
  if (*nodes == nullptr) return std::optional<bool>{};
  return std::optional(is_on_none_of(volume, **nodes));
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass, const for_volume::NodeLost& decision) {
  const VolumeScene& scene = pass.scene;
  const auto lost = is_lost(*scene.volume, {});
  if (!lost.ok()) return not_let_go(pass, lost.error());
  if (!*lost || !**lost) return Action::await_change(kSoon);  // the cache will show it
  pass.scene.memory.node_lost = world_.clock.now();
  remember(pass);
  const std::string what = "node " + decision.node +
                           " was deleted from the cluster: unless it is "
                           "registered again within " +
                           text_of(*scene.lets_go_after);
  tell_lost(pass, kNodeLost, what + ", this claim is deleted, and its data is given up",
            what + ", the claim of this volume is deleted");
  return std::nullopt;
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass,
                                                 const for_volume::LetClaimGo& decision) {
  const VolumeScene& scene = pass.scene;
  const k8s::PersistentVolume& volume = *scene.volume;
  const auto lost = is_lost(volume, *scene.memory.node_lost + *scene.lets_go_after);
  if (!lost.ok()) return not_let_go(pass, lost.error());
  if (!*lost || !**lost) return Action::await_change(kSoon);
  const auto claim = read_claim(world_, volume.claim);
  if (!claim.ok()) return not_let_go(pass, claim.error());
  if (!is_its(*claim, volume)) return Action::await_change(kSoon);
  // First of all: from here on a node that comes back keeps what is on its disk. A mark that is
  // there already may just be taken off: another version of the volume stops that.
  if (scene.memory.marked_node_lost) {
    // Not by the cache's word: somebody may have taken it off since.
    const auto now = read_volume(world_, volume.meta.name);
    if (!now.ok()) return not_let_go(pass, now.error());
    if (!*now || (*now)->meta.uid != volume.meta.uid || !is_node_lost(**now)) {
      pass.scene.memory.marked_node_lost = false;
      remember(pass);
      return Action::await_change(kSoon);
    }
  } else {
    const auto marked = mark_node_lost(world_.client, volume, world_.clock.wall_now());
    if (!marked.ok() && k8s::is_stale(marked.error())) return Action::await_change(kSoon);
    if (!marked.ok()) return not_let_go(pass, marked.error());
    pass.scene.memory.marked_node_lost = true;
    remember(pass);
  }
  const auto deleted = delete_claim(world_.client, **claim);
  if (!deleted.ok() && k8s::is_stale(deleted.error())) return Action::await_change(kSoon);
  if (!deleted.ok()) return not_let_go(pass, deleted.error());
  world_.figures.claim_released(volume.storage_class_name, kReleasedClaim);
  const std::string why = "node " + decision.node + " was deleted from the cluster: ";
  tell_lost(pass, kClaimReleased,
            why + "this claim is deleted, its data stays in " + volume.path +
                " on that node's disk; a new claim gets a volume on another node",
            why + "the claim of this volume is deleted; nothing removes its directory " +
                volume.path + " should the node come back");
  return Action::await_change(kRecheck);
}

VolumeReconciler::Next VolumeReconciler::perform(Pass& pass,
                                                 const for_volume::KeepClaim& /*decision*/) {
  const k8s::PersistentVolume& volume = *pass.scene.volume;
  // Whatever becomes of the writes: a node that goes again is waited for anew.
  pass.scene.memory.node_lost.reset();
  pass.scene.memory.marked_node_lost = false;
  remember(pass);
  if (is_node_lost(volume)) {
    // Not by the caches' word, and not while a deletion may be on its way: without the mark the
    // directory goes with the claim.
    const auto claim = read_claim(world_, volume.claim);
    if (!claim.ok()) return not_kept(pass, claim.error());
    if (!is_its(*claim, volume)) return Action::await_change(kRecheck);
    const auto node = world_.client.get(k8s::kNodes, {"", pass.scene.node.name});
    if (!node.ok() && k8s::is_stale(node.error())) return Action::await_change(kSoon);
    if (!node.ok()) return not_kept(pass, node.error());
    const auto kept = keep_claim(world_.client, **claim, world_.clock.wall_now());
    if (!kept.ok() && k8s::is_stale(kept.error())) return Action::await_change(kSoon);
    if (!kept.ok()) return not_kept(pass, kept.error());
  }
  const auto unmarked = unmark_node_lost(world_.client, volume);
  if (!unmarked.ok() && k8s::is_stale(unmarked.error())) return Action::await_change(kSoon);
  if (!unmarked.ok()) return not_kept(pass, unmarked.error());
  memories_.erase(pass.scene.name);
  if (is_node_lost(volume)) {
    world_.figures.claim_released(volume.storage_class_name, kNodeCameBack);
    log::info("the node is back: the claim stays");
  }
  return Action::await_change(kSoon);
}

/// Told on both: the claim's owner reads the one, who administers the cluster the other.
void VolumeReconciler::tell_lost(const Pass& pass, std::string_view reason,
                                 const std::string& of_claim, const std::string& of_volume) {
  Subject about = subject(pass);
  about.event_reason = reason;
  about.prefix.clear();
  reporter_.tell(about, of_volume);
  if (pass.scene.claim == nullptr) return;
  about.about = reference_to(*pass.scene.claim);
  reporter_.tell(about, of_claim);
}

/// Nothing has been done, or the mark only: that is repeated.
Action VolumeReconciler::not_let_go(const Pass& pass, const Error& error) {
  if (error.is(ErrorCode::kCancelled)) return Action::done();
  const bool forbidden = error.is(ErrorCode::kForbidden);
  world_.figures.claim_released(pass.scene.volume->storage_class_name,
                                forbidden ? kReleaseForbidden : kReleaseFailed);
  if (Reporter::heals_by_itself(error)) {
    log::warn("the claim is not let go, tried again soon: {}", error.message);
    return Action::retry();
  }
  std::string why = "the claim of a lost node cannot be let go: " + error.message;
  if (forbidden) {
    why +=
        "; onNodeLost: release needs a permission that the provisioner does not have by default: "
        "apply deploy/node-lost.yaml";
  }
  tell_lost(pass, kClaimReleaseFailed, why, why + " (volume " + pass.scene.name + ")");
  return Action::retry();
}

/// The mark is still there, that is repeated.
Action VolumeReconciler::not_kept(const Pass& pass, const Error& error) {
  if (error.is(ErrorCode::kCancelled)) return Action::done();
  world_.figures.claim_released(pass.scene.volume->storage_class_name, kKeepFailed);
  if (Reporter::heals_by_itself(error)) {
    log::warn("the mark of a lost node is not taken off, tried again soon: {}", error.message);
    return Action::retry();
  }
  const std::string why =
      is_node_lost(*pass.scene.volume)
          ? fmt::format(
                "the node is back, but the annotation {} of the volume cannot be taken "
                "off: {}; until then nothing removes the volume's directory when the "
                "claim is deleted",
                kVolumeNodeLost, error.message)
          : fmt::format(
                "the annotation {} of a former claim of the volume cannot be taken off: "
                "{}; it keeps nothing: the volume is its claim's",
                kVolumeNodeLost, error.message);
  tell_lost(pass, kClaimReleaseFailed, why, why + " (volume " + pass.scene.name + ")");
  return Action::retry();
}

}  // namespace lpp::provisioner
