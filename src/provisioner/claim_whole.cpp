// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <utility>

#include "provisioner/claim_reconciler.h"
#include "provisioner/names.h"

namespace lpp::provisioner {

namespace {

/// Whether the label that ties a volume of the class to the node may be among those not kept.
bool may_lack_a_label(const ClaimScene& scene) {
  if (scene.node == nullptr || !scene.node->meta.incomplete || scene.storage_class == nullptr) {
    return false;
  }
  const auto* key = k8s::find(scene.storage_class->parameters, kNodeAffinityKeyParameter);
  const std::string_view label = key == nullptr || key->empty() ? kHostnameLabel : *key;
  return k8s::find(scene.node->meta.labels, label) == nullptr;
}

}  // namespace

bool ClaimReconciler::rests_on_a_part(const ClaimScene& scene, const ClaimDecision& decision) {
  if (!std::holds_alternative<for_claim::Start>(decision) &&
      !std::holds_alternative<for_claim::Refuse>(decision)) {
    return false;
  }
  return scene.claim->meta.incomplete || may_lack_a_label(scene);
}

ClaimReconciler::Next ClaimReconciler::read_the_rest(Pass& pass) {
  ClaimScene& scene = pass.scene;
  const auto wait = [&] {
    remember(pass);
    return wait_for_the_cache();
  };
  if (scene.claim->meta.incomplete) {
    auto claim = read_whole_claim(world_, pass.key.claim);
    if (!claim.ok()) return reporter_.api_failed(subject(pass), claim.error());
    if (!*claim || (*claim)->meta.uid != pass.key.uid || !(*claim)->volume_name.empty() ||
        selected_node(**claim) != scene.node_name) {
      return wait();
    }
    if ((*claim)->meta.incomplete) {
      return perform(pass,
                     for_claim::Refuse{{.message = "the claim is too large: no more than 2 MiB in "
                                                   "memory each of labels, annotations, "
                                                   "owner references and finalizers are read, and "
                                                   "of its spec no more than 4 KiB in one field"}});
    }
    scene.claim = std::make_shared<const k8s::PersistentVolumeClaim>(**std::move(claim));
  }
  if (may_lack_a_label(scene)) {
    const auto found = world_.client.get(k8s::kNodes, {"", scene.node_name});
    if (!found.ok()) {
      if (found.error().is(ErrorCode::kNotFound)) return wait();
      return reporter_.api_failed(subject(pass), found.error());
    }
    auto node = k8s::decode<k8s::Node>(*found);
    if (!node.ok()) return reporter_.api_failed(subject(pass), node.error());
    node->meta.incomplete = true;  // as the cache has it: what was seen of it stays the same
    scene.node = std::make_shared<const k8s::Node>(*std::move(node));
  }
  return std::nullopt;
}

}  // namespace lpp::provisioner
