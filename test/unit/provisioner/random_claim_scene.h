// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/builders.h"
#include "provisioner/claim_decision.h"
#include "provisioner/names.h"
#include "unit/provisioner/random_scenes.h"

namespace lpp::testing {

/// A claim's scene that keeps what look() and note_begun() of the reconciler keep.
struct RandomClaimScene : provisioner::ClaimScene {
  bool volume_is_of_the_claim = false;
  std::string volume_node{};

  /// The directory that the volume shows; its name is another one's.
  operation::Operation volume_place() const {
    operation::Operation place;
    place.path = volume->path;
    place.node = volume_node;
    return place;
  }
  void settle_flags() {
    for (provisioner::TakingBack& one : taking_back) {
      if (volume != nullptr && meet(volume_place(), *one.operation)) one.in_use = true;
    }
    for (provisioner::Make& make : makes) {
      make.shown = volume_is_of_the_claim && is_one_directory(volume_place(), make.operation());
      for (const provisioner::TakingBack& one : taking_back) {
        if (is_one_directory(*one.operation, make.operation())) make.begun.given_up = true;
      }
    }
  }
};

struct SeenClaim {
  std::shared_ptr<const k8s::PersistentVolumeClaim> claim{};
  std::string node{};  // selected
};

/// What random scenes of a claim are put together from; made once.
class ClaimScenes {
 public:
  ClaimScenes() {
    add_claims();
    const auto pattern = [](const std::string& value) {
      return storage_class()
          .parameter("pathPattern", value)
          .parameter("allowUnsafePathPattern", "true")
          .shared();
    };
    classes_ = {
        storage_class().shared(),
        storage_class().binding_mode("Immediate").shared(),
        pattern("{{ .PVC.namespace }}/{{ .PVC.name }}"),
        pattern("{{ .PVC.namespace }}/{{ .PVC.name }}/inner"),
        storage_class().parameter("quota", "hard").parameter("overcommit", "false").shared(),
        storage_class().parameter("quota", "hard").shared(),
        storage_class().parameter("overcommit", "false").shared(),
        storage_class().provisioner("example.com/other").shared(),
        nullptr};
    nodes_ = {node("n1").shared(), node("n2").shared()};
    config::Config per_node;
    per_node.paths.node_path_map = {{"n1", {"/data"}}, {"n2", {"/data"}}};
    config::Config shared;
    shared.generation = 1;
    shared.paths.shared_file_system_path = "/shared";
    configs_ = {std::make_shared<const config::Config>(per_node),
                std::make_shared<const config::Config>(shared)};
    add_volumes();
    for (const Place& place : places_) {
      for (int attempt = 1; attempt <= kAttempts; ++attempt) {
        makes_.push_back(at(place, operation::Kind::kMake, attempt));
        take_backs_.push_back(at(place, operation::Kind::kTakeBack, attempt));
      }
    }
  }

  /// One that a step could find, if those before it went any way they can.
  RandomClaimScene scene(Dice dice) const {
    RandomClaimScene scene;
    scene.now = kSceneTime;
    scene.names = kProvisionerName;
    scene.volume_name = "pvc-uid-a";
    scene.config = dice.of(configs_);
    scene.binds = !dice.one_in(4);
    claim_is(scene, some_claim(dice));
    if (scene.claim == nullptr || dice.one_in(2)) scene.storage_class = dice.of(classes_);
    if (dice.one_in(16)) scene.node = nullptr;
    const SeenVolume& volume = dice.one_in(4) ? dice.of(volumes_) : no_volume_;
    scene.volume = volume.volume;
    scene.volume_node = volume.node;
    scene.volume_is_of_the_claim = volume.is_of_the_claim;
    add_operations(scene, dice);
    remember(scene, dice);
    return scene;
  }

  // What may become of the scene's claim.
  const SeenClaim& some_claim(Dice& dice) const { return dice.of(claims_); }
  const SeenClaim& no_claim() const { return claims_.front(); }
  const SeenClaim& bound_claim() const { return claims_.back(); }
  void claim_is(RandomClaimScene& scene, const SeenClaim& seen) const {
    scene.claim = seen.claim;
    scene.node_name = seen.node;
    scene.node = nullptr;
    for (const auto& one : nodes_) {
      if (one->meta.name == seen.node) scene.node = one;
    }
    if (seen.claim != nullptr && scene.storage_class == nullptr) {
      scene.storage_class = classes_.front();
    }
  }

  /// A volume as the claim gets it.
  const std::shared_ptr<const k8s::PersistentVolume>& a_volume() const {
    return volumes_.front().volume;
  }

 private:
  using Item = std::shared_ptr<const operation::Operation>;
  struct SeenVolume {
    std::shared_ptr<const k8s::PersistentVolume> volume{};
    std::string node{};
    bool is_of_the_claim = false;
  };
  struct Place {
    std::string node{};
    std::string base_path{};
    std::string path{};
    bool shared = false;
  };

  void add_claims() {
    const auto add = [&](const ClaimBuilder& seen, const std::string& on) {
      claims_.push_back({seen.shared(), on});
    };
    const auto on_n1 = [] { return claim("a").node("n1"); };
    claims_.push_back({});
    claims_.push_back({});
    add(on_n1(), "n1");
    add(on_n1(), "n1");
    add(claim("a").node("n2"), "n2");
    add(on_n1().deleting(), "n1");
    add(claim("a"), "");
    add(on_n1().volume("b"), "n1");
    add(on_n1().provisioner("example.com/other"), "n1");
    add(on_n1().no_provisioner(), "n1");
    add(claim("a").node("gone"), "gone");
    add(on_n1().volume_mode("Block"), "n1");
    const auto named = [&] {
      return on_n1()
          .volume("pvc-uid-a")
          .annotation(std::string(provisioner::kBindCompleted), "yes");
    };
    add(named().phase("Pending"), "n1");
    add(named().phase("Lost"), "n1");
    add(on_n1().volume("pvc-uid-a").phase("Pending"), "n1");
    add(on_n1().volume("pvc-uid-a"), "n1");
  }

  void add_volumes() {
    const auto at_path = [](const std::string& path) {
      return volume("pvc-uid-a").host_path(path).claim("default", "a");
    };
    const std::string named = "/data/pvc-uid-a_default_a";
    volumes_ = {{at_path(named).shared(), "", true},
                {at_path(named).node("n1").shared(), "n1", true},
                {at_path("/data/default/a").node("n2").shared(), "n2", true},
                {at_path("/shared/pvc-uid-a_default_a").shared(), "", true},
                {at_path(named).phase("Pending").shared(), "", true},
                {at_path(named).released().shared(), "", true},
                {at_path(named).deleting().shared(), "", true},
                {at_path(named).claim("default", "a", "another-uid").shared()},
                {at_path(named)
                     .annotation(std::string(provisioner::kProvisionedBy), "example.com/other")
                     .shared()}};
  }

  static Item at(const Place& place, operation::Kind kind, int attempt) {
    operation::Operation operation;
    operation.kind = kind;
    operation.volume_name = "pvc-uid-a";
    operation.claim = {"default", "a"};
    operation.owner_uid = "uid-a";
    operation.attempt = attempt;
    operation.node = place.node;
    operation.base_path = place.base_path;
    operation.path = place.path;
    operation.shared = place.shared;
    operation.only_if_empty = kind == operation::Kind::kTakeBack && attempt % 2 == 0;
    operation.limits.hard = !place.shared && attempt % 3 == 0;
    operation.limits.overcommit = place.shared || attempt % 3 != 1;
    return std::make_shared<const operation::Operation>(std::move(operation));
  }

  /// An operation somewhere, half of the time where the hint is.
  const Item& operation(Dice& dice, const std::vector<Item>& of, int attempt,
                        std::uint64_t hint) const {
    const std::uint64_t place = dice.one_in(2) ? hint : dice.below(places_.size());
    return of[place * kAttempts + static_cast<std::uint64_t>(attempt - 1)];
  }

  void add_operations(RandomClaimScene& scene, Dice& dice) const {
    const std::uint64_t hint = dice.below(places_.size());
    auto attempts = dice.attempts();
    const std::uint64_t makes = dice.few(4);
    for (std::uint64_t i = 0; i < makes; ++i) {
      provisioner::Make make{.begun = {.operation = operation(dice, makes_, attempts[i], hint),
                                       .never_published = dice.one_in(2),
                                       .made = dice.one_in(2),
                                       .first_there = dice.one_in(2),
                                       .given_up = dice.one_in(8)}};
      if (!dice.one_in(4)) make.progress = dice.progress();
      make.begun.done = make.progress && dice.one_in(8);
      scene.makes.push_back(std::move(make));
    }
    attempts = dice.attempts();
    const std::uint64_t take_backs = dice.one_in(3) ? 1 + dice.few(1) : 0;
    for (std::uint64_t i = 0; i < take_backs; ++i) {
      provisioner::TakingBack one{.operation = operation(dice, take_backs_, attempts[i], hint),
                                  .progress = dice.progress()};
      one.in_use = dice.one_in(6);
      scene.taking_back.push_back(std::move(one));
    }
    if (dice.one_in(8)) {
      operation::Operation removal = *operation(dice, makes_, dice.attempts()[0], hint);
      removal.kind = operation::Kind::kRemove;
      scene.removals.push_back(
          {std::make_shared<const operation::Operation>(std::move(removal)), dice.progress()});
    }
    scene.settle_flags();
  }

  void remember(provisioner::ClaimScene& scene, Dice& dice) const {
    provisioner::Memory& memory = scene.memory;
    if (dice.one_in(2)) {
      memory.retry = {.number = dice.number(),
                      .hold_until = dice.around_now(),
                      .seen = dice.one_in(2) ? scene.settings() : scene.seen()};
    }
    for (const Place& place : places_) {
      if (!dice.one_in(3)) continue;
      memory.take_back[place.node + ":" + place.path] = {.number = dice.number(),
                                                         .hold_until = dice.around_now()};
    }
    if (dice.one_in(6)) memory.in_flight = dice.of(makes_);
    if (dice.one_in(4)) {
      memory.binding = {.tries = dice.number(), .hold_until = dice.around_now()};
      if (dice.one_in(2)) memory.binding.outdated = {"1"};
      if (dice.one_in(4)) memory.binding.bound_volume_uid = "uid-pvc-uid-a";
      if (dice.one_in(4)) memory.binding.failure = "failed";
      memory.binding.left = dice.one_in(4);
    }
    if (dice.one_in(4)) memory.lost = dice.around_now();
    if (dice.one_in(4)) memory.unasked = dice.around_now();
    if (dice.one_in(8)) memory.published = kSceneTime - std::chrono::seconds(dice.below(60));
    if (dice.one_in(2)) memory.begun_on = dice.one_in(2) ? "n1" : "n2";
    if (dice.one_in(8)) memory.rescheduled_from = "1";
    memory.moves = dice.number();
    memory.move_at = dice.around_now();
  }

  std::vector<SeenClaim> claims_{};
  std::vector<std::shared_ptr<const k8s::StorageClass>> classes_{};
  std::vector<std::shared_ptr<const k8s::Node>> nodes_{};
  std::vector<std::shared_ptr<const config::Config>> configs_{};
  std::vector<SeenVolume> volumes_{};
  SeenVolume no_volume_{};
  std::vector<Place> places_{{"n1", "/data", "/data/pvc-uid-a_default_a"},
                             {"n1", "/data", "/data/default/a"},
                             {"n1", "/data", "/data/default/a/inner"},
                             {"n2", "/data", "/data/pvc-uid-a_default_a"},
                             {"n2", "/data", "/data/default/a"},
                             {"n1", "/shared", "/shared/pvc-uid-a_default_a", true},
                             {"n2", "/shared", "/shared/pvc-uid-a_default_a", true},
                             {"", "/shared", "/shared/pvc-uid-a_default_a", true},
                             {"n2", "/shared", "/shared/default/a/inner", true}};
  std::vector<Item> makes_{};       // by place, then attempt
  std::vector<Item> take_backs_{};  // likewise
};

}  // namespace lpp::testing

namespace lpp::provisioner {

inline std::string describe(const ClaimScene& scene) {
  using testing::text;
  std::string said = scene.claim == nullptr ? "no claim" : "claim on \"" + scene.node_name + "\"";
  if (scene.claim != nullptr) {
    if (scene.claim->meta.deleting()) said += ", deleting";
    if (!scene.claim->volume_name.empty()) said += ", bound to " + scene.claim->volume_name;
    if (scene.storage_class == nullptr) said += ", no class";
    if (scene.node == nullptr) said += ", no node";
  }
  if (scene.config->paths.shared()) said += ", shared filesystem";
  if (scene.volume != nullptr) {
    said += "\nvolume at " + scene.volume->path + " for " + scene.volume->claim_uid;
  }
  for (const auto& make : scene.makes) {
    said +=
        "\n" + text(make.operation()) + ": " +
        (make.progress ? text(*make.progress) : "not on record") + (make.shown ? ", shown" : "") +
        (make.begun.done ? ", done" : "") + (make.begun.given_up ? ", given up" : "") +
        (make.begun.never_published ? ", never published" : "") + (make.begun.made ? ", made" : "");
  }
  for (const auto& one : scene.taking_back) {
    said += "\n" + text(*one.operation) + ": " + text(one.progress) +
            (one.operation->only_if_empty ? ", if empty" : "") + (one.in_use ? ", in use" : "");
  }
  said += "\nlast failure " + std::to_string(scene.memory.retry.number);
  if (held(scene.memory.retry, scene.now, scene.settings())) said += ", held";
  if (scene.memory.published) said += ", published";
  for (const auto& [on, retry] : scene.memory.take_back) {
    said += "\ntaking back " + on + ": last failure " + std::to_string(retry.number) +
            (retry.hold_until > scene.now ? ", held" : "");
  }
  return said;
}

}  // namespace lpp::provisioner
