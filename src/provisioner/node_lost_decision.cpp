// SPDX-License-Identifier: Apache-2.0
// What becomes of the claim of a volume whose node was deleted from the cluster.

#include "provisioner/node_lost.h"
#include "provisioner/volume_decision.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

namespace {

using Where = VolumeNode::Kind;

/// Bound to each other, and neither is on its way out.
bool is_in_use(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  return volume.phase == "Bound" && !volume.meta.deleting() && scene.claim != nullptr &&
         !scene.claim->meta.deleting();
}

/// On a disk of its node, which has a name. A label that somebody has edited looks like a node that
/// is gone, too.
bool is_on_lost_node(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  return scene.node.kind == Where::kGone && !scene.node.name.empty() &&
         volume.source != k8s::VolumeSource::kOther &&
         !is_on_shared_filesystem(volume.path, *scene.config);
}

}  // namespace

std::optional<VolumeDecision> decide_node_lost(const VolumeScene& scene) {
  const k8s::PersistentVolume& volume = *scene.volume;
  const bool marked = is_node_lost(volume);
  if (has_node_lost_mark(volume) && !marked) return for_volume::KeepClaim{};
  if (!is_in_use(scene)) return std::nullopt;
  if (marked && scene.node.kind == Where::kNode) return for_volume::KeepClaim{};
  if (!scene.lets_go_after || !is_on_lost_node(scene)) return std::nullopt;
  if (!scene.memory.node_lost) return for_volume::NodeLost{scene.node.name};
  const TimePoint due = *scene.memory.node_lost + *scene.lets_go_after;
  if (scene.now < due) return for_volume::Wait{.at_most = due - scene.now};
  return for_volume::LetClaimGo{scene.node.name};
}

}  // namespace lpp::provisioner
