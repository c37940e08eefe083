// SPDX-License-Identifier: Apache-2.0
// What the caches do not show whole, or perhaps not as it is now, before a make is begun, goes on
// or is shown.

#include <nlohmann/json.hpp>
#include <utility>

#include "provisioner/claim_clear_away.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/names.h"

namespace lpp::provisioner {

namespace {

/// The label by which the volume is to be tied to the node.
std::string label_of(const ClaimScene& scene, const ClaimDecision& decision) {
  const auto* start = std::get_if<for_claim::Start>(&decision);
  if (start != nullptr && start->operation.shape && start->operation.shape->has_affinity) {
    return start->operation.shape->affinity_key;
  }
  if (scene.storage_class == nullptr) return {};
  const auto* key = k8s::find(scene.storage_class->parameters, kNodeAffinityKeyParameter);
  return std::string(key == nullptr || key->empty() ? kHostnameLabel : std::string_view(*key));
}

/// Whether it may be among those not kept.
bool may_lack(const ClaimScene& scene, const std::string& label) {
  return scene.node != nullptr && scene.node->meta.incomplete && !label.empty() &&
         k8s::find(scene.node->meta.labels, label) == nullptr;
}

/// Whether it is as it was decided for.
bool still_waits(const std::optional<k8s::PersistentVolumeClaim>& claim, const ClaimKey& key,
                 const ClaimScene& scene) {
  return claim && claim->meta.uid == key.uid && claim->volume_name.empty() &&
         !claim->meta.deleting() && selected_node(*claim) == scene.node_name;
}

}  // namespace

bool ClaimReconciler::is_a_wait(const ClaimScene& scene, const ClaimDecision& decision) {
  if (const auto* follow = std::get_if<for_claim::Follow>(&decision)) {
    const operation::Progress& progress = *follow->make.progress;
    // For its agent or its disk, or for what does not go.
    return progress.over() || progress.state == operation::Progress::State::kEnding;
  }
  if (std::holds_alternative<for_claim::Wait>(decision)) {
    // Without a node, and asked of nobody, it waits for a change of its own.
    return scene.claim != nullptr && scene.claim->volume_name.empty() &&
           (!scene.node_name.empty() || is_asked_for(scene));
  }
  return std::holds_alternative<for_claim::Failed>(decision) ||
         std::holds_alternative<for_claim::CheckNode>(decision);
}

bool ClaimReconciler::rests_on_a_part(const ClaimScene& scene, const ClaimDecision& decision) {
  if (!std::holds_alternative<for_claim::Start>(decision) &&
      !std::holds_alternative<for_claim::Refuse>(decision)) {
    return false;
  }
  return scene.claim->meta.incomplete || may_lack(scene, label_of(scene, decision));
}

ClaimReconciler::Next ClaimReconciler::read_the_rest(Pass& pass, const ClaimDecision& decision) {
  ClaimScene& scene = pass.scene;
  const auto wait = [&] {
    remember(pass);
    return wait_for_the_cache();
  };
  if (scene.claim->meta.incomplete) {
    auto claim = read_whole_claim(world_, pass.key.claim);
    if (!claim.ok()) return reporter_.api_failed(subject(pass), claim.error());
    if (!still_waits(*claim, pass.key, scene)) return wait();
    if ((*claim)->meta.incomplete) {
      return perform(pass,
                     for_claim::Refuse{{.message = "the claim is too large: no more than 2 MiB in "
                                                   "memory each of labels, annotations, "
                                                   "owner references and finalizers are read, and "
                                                   "of its spec no more than 4 KiB in one field"}});
    }
    scene.claim = std::make_shared<const k8s::PersistentVolumeClaim>(**std::move(claim));
  }
  if (const std::string label = label_of(scene, decision); may_lack(scene, label)) {
    auto node = node_with_label(world_.nodes, world_.client, scene.node_name, label);
    if (!node.ok()) return reporter_.api_failed(subject(pass), node.error());
    if (*node == nullptr) return wait();
    scene.node = *std::move(node);
  }
  return std::nullopt;
}

ClaimReconciler::Next ClaimReconciler::ask_after_a_wait(Pass& pass) {
  const Memory& memory = pass.scene.memory;
  if (!memory.had_volume && !memory.waited) return std::nullopt;
  remember(pass);
  const auto claim = read_claim(world_, pass.key.claim);
  if (!claim.ok()) return reporter_.api_failed(subject(pass), claim.error());
  if (still_waits(*claim, pass.key, pass.scene)) return std::nullopt;
  world_.figures.forget(operation::Kind::kMake, pass.scene.volume_name);
  return wait_for_the_cache();
}

/// A volume that the cache does not show yet may be there: then what the make would set is older
/// than what the volume has.
ClaimReconciler::Next ClaimReconciler::let_go_on(Pass& pass, const Make& make) {
  const auto failed = [&](const Error& error) {
    remember(pass);
    return reporter_.api_failed(subject(pass), error);
  };
  const auto wanted = is_still_wanted(make);
  if (!wanted.ok()) return failed(wanted.error());
  const auto volume = read_volume(world_, make.operation().volume_name);
  if (!volume.ok()) return failed(volume.error());
  if (*wanted != Wanted::kYes || *volume) {
    remember(pass);
    return wait_for_the_cache();
  }
  const auto started = world_.executor.start(make.operation());
  if (!started.ok()) return failed(started.error());
  return std::nullopt;
}

}  // namespace lpp::provisioner
