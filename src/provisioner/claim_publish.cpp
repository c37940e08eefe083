// SPDX-License-Identifier: Apache-2.0
// From a directory that is made to a PersistentVolume that shows it.

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/claim_shape.h"
#include "provisioner/names.h"
#include "provisioner/volume_manifest.h"
#include "provisioner/volume_rules.h"

namespace lpp::provisioner {

using operation::Executor;
using operation::Operation;
using operation::same_place;

std::optional<Refusal> ClaimReconciler::complete_shape(const ClaimScene& scene,
                                                       Operation& operation) {
  if (operation.shape) return std::nullopt;
  if (scene.storage_class == nullptr) {
    return Refusal{.message = "storageClass \"" + scene.claim->class_name() + "\" not found"};
  }
  auto shape = make_shape(*scene.claim, *scene.storage_class, scene.node.get(), *scene.config);
  if (auto* refusal = std::get_if<Refusal>(&shape)) return std::move(*refusal);
  auto& made = std::get<operation::Shape>(shape);
  if (made.has_affinity == operation.shared) {
    return Refusal{.message = "directory " + operation.path +
                              " was made before the configuration of its class changed between "
                              "local and shared: configure it as before, or delete the claim"};
  }
  if (scene.storage_class->provisioner != scene.names.own()) {
    made.provisioner = scene.storage_class->provisioner;
  }
  operation.shape = std::move(made);
  return std::nullopt;
}

ClaimReconciler::Next ClaimReconciler::perform(Pass& pass, const for_claim::Publish& decision) {
  ClaimScene& scene = pass.scene;
  Operation operation = decision.make.operation();
  operation.disk = decision.make.progress->disk;
  world_.figures.progressed(operation::Kind::kMake, operation, step_of(*decision.make.progress));
  note_told(world_, operation, *decision.make.progress);
  if (auto refusal = complete_shape(scene, operation)) {
    return perform(pass, for_claim::Refuse{*std::move(refusal)});
  }
  // The node's labels may have changed since the make was recorded.
  if (scene.node && scene.node_name == operation.node && operation.shape->has_affinity) {
    const auto node =
        node_with_label(world_.nodes, world_.client, operation.node, operation.shape->affinity_key);
    if (!node.ok()) return reporter_.api_failed(subject(pass), node.error());
    if (*node != nullptr) {
      if (auto refusal = tie_to(**node, *operation.shape)) {
        return perform(pass, for_claim::Refuse{*std::move(refusal)});
      }
    }
  }
  // The directory stays taken until the cache shows the volume.
  if (const auto holder = world_.ledger.take(operation)) {
    // Whoever else has it may have written there: that it was made for this claim counts no more.
    for (Begun& begun : scene.memory.begun) {
      if (!same_place(*begun.operation, operation)) continue;
      begun.made = false;
      begun.never_published = false;
    }
    return path_taken(pass, operation.path, *holder);
  }
  if (auto next = ask_after_a_wait(pass)) return next;
  // From here on it is not certain any more that no volume showed it.
  for (Begun& begun : scene.memory.begun) {
    if (same_place(*begun.operation, operation)) begun.never_published = false;
  }
  remember(pass);
  const auto manifest = make_volume(operation, *scene.claim, world_.names.own());
  const auto created =
      world_.client.create(k8s::kPersistentVolumes, {}, manifest, k8s::Answer::kIdentity);
  std::optional<k8s::PersistentVolume> there;
  if (!created.ok() && created.error().is(ErrorCode::kAlreadyExists)) {
    const auto volume = read_volume(world_, scene.volume_name);
    if (!volume.ok()) return reporter_.api_failed(subject(pass), volume.error());
    if (!*volume) return Action::retry();
    const std::string different = difference(**volume, *scene.claim, world_.names);
    if (!different.empty()) return perform(pass, for_claim::OtherVolume{different});
    // Ours if the answer to an earlier request was lost; else the cache will show it.
    if ((*volume)->path != operation.path || !shares_directory(**volume, operation, world_.nodes)) {
      return Action::await_change(kRecheck);
    }
    there = **volume;
  } else if (!created.ok()) {
    return reporter_.api_failed(
        subject(pass), created.error().wrap("Error creating provisioned PV object for claim " +
                                            scene.claim->meta.key().to_string()));
  } else {
    there = created_volume(manifest, *created);
  }
  return published(pass, operation, std::move(there));
}

Action ClaimReconciler::published(Pass& pass, const Operation& operation,
                                  std::optional<k8s::PersistentVolume> volume) {
  ClaimScene& scene = pass.scene;
  const log::Scope fields({{"path", operation.path}, {"class", operation.storage_class}});
  log::info("volume provisioned");
  world_.events.event(reference_to(*scene.claim), k8s::EventType::kNormal, kProvisioningSucceeded,
                      "Successfully provisioned volume " + scene.volume_name);
  world_.figures.succeeded(operation::Kind::kMake, scene.volume_name, operation.storage_class,
                           scene.claim->source_kind());
  set_done(pass, operation);
  Memory made;
  made.begun = std::move(scene.memory.begun);
  made.published = scene.now;
  made.had_volume = true;
  scene.memory = std::move(made);
  remember(pass);
  if (volume) bind_at_once(pass, *std::move(volume));
  const auto forgotten = world_.executor.forget(operation.id(), Executor::When::kWhenQuiet);
  if (!forgotten.ok()) return reporter_.api_failed(subject(pass), forgotten.error());
  return Action::await_change(kRecheck);
}

}  // namespace lpp::provisioner
