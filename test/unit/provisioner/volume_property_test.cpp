// SPDX-License-Identifier: Apache-2.0
// What holds for every decision of a volume, whatever its scene looks like, in random scenes.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "fakes/builders.h"
#include "k8s/store.h"
#include "provisioner/names.h"
#include "provisioner/node_lost.h"
#include "provisioner/volume_decision.h"
#include "provisioner/volume_removal.h"
#include "unit/provisioner/random_scenes.h"

namespace lpp::provisioner {

static std::string describe(const VolumeScene& scene) {
  using testing::text;
  std::string said = "no volume";
  if (scene.volume != nullptr) {
    const k8s::PersistentVolume& volume = *scene.volume;
    said = "volume " + volume.phase + " " + volume.reclaim_policy + " at " + volume.path +
           (volume.meta.deleting() ? ", deleting" : "") +
           (has_finalizer(volume) ? ", with our finalizer" : "") +
           (scene.is_wanted ? ", to be removed" : "") + "\nnode " +
           std::to_string(static_cast<int>(scene.node.kind)) + " \"" + scene.node.name + "\"";
  }
  if (scene.overlapping != nullptr) {
    said += scene.overlapping_takes_it_along ? "\ngoes with another" : "\nanother overlaps";
  }
  for (const auto* all : {&scene.removals, &scene.makes}) {
    for (const operation::Recorded& one : *all) {
      said += "\n" + text(*one.operation) + ": " + text(one.progress);
    }
  }
  said += "\nlast failure " + std::to_string(scene.memory.retry.number);
  if (held(scene.memory.retry, scene.now, scene.seen())) said += ", held";
  return said;
}

}  // namespace lpp::provisioner

namespace lpp::provisioner::volume_properties {
namespace {

using operation::Kind;
using operation::Operation;
using operation::Recorded;
using testing::Dice;
using testing::is_open;
using testing::may_act;
using State = operation::Progress::State;
using For = testing::Property<VolumeScene, VolumeDecision>;
using Item = std::shared_ptr<const Operation>;

constexpr const char* kPath = "/data/pvc-v_default_a";

/// What random scenes are put together from; made once.
class VolumeScenes {
 public:
  VolumeScenes() {
    add_volumes();
    config::Config paths;
    paths.paths.node_path_map["n1"] = {"/data"};
    config_ = std::make_shared<const config::Config>(std::move(paths));
    for (const char* owner : {"uid-v", "another-uid"}) {
      for (const char* path : {kPath, "/data/elsewhere"}) {
        for (const char* node : {"n1", "n2", ""}) add_operations(owner, path, node);
      }
    }
  }

  VolumeScene scene(Dice dice) const {
    VolumeScene scene;
    scene.now = testing::kSceneTime;
    scene.names = testing::kProvisionerName;
    scene.name = "v";
    scene.volume = dice.of(volumes_);
    scene.config = config_;
    scene.is_wanted = scene.volume != nullptr && is_ours(*scene.volume, scene.names) &&
                      wants_delete(*scene.volume, no_claims_);
    const auto attempts = dice.attempts();
    const std::uint64_t removals = dice.few(3);
    for (std::uint64_t i = 0; i < removals; ++i) {
      scene.removals.push_back({operation(dice, removals_, attempts[i]), dice.progress()});
    }
    const std::uint64_t makes = dice.one_in(3) ? 1 + dice.few(1) : 0;
    for (std::uint64_t i = 0; i < makes; ++i) {
      scene.makes.push_back({operation(dice, makes_, attempts[i]), dice.progress()});
    }
    if (dice.one_in(8)) scene.last_other = dice.number();
    const bool lets_go = dice.one_in(2);
    if (lets_go) scene.lets_go_after = std::chrono::seconds(1 + dice.below(8));
    if (dice.one_in(2)) scene.claim = dice.of(claims_);
    if (dice.one_in(2)) scene.memory.node_lost = dice.around_now();
    if (!scene.is_wanted && lets_go) scene.node = dice.of(nodes_);
    if (scene.is_wanted) {
      scene.node = dice.of(nodes_);
      if (dice.one_in(6)) {
        scene.overlapping = other_;
        scene.overlapping_goes_too = dice.one_in(2);
        scene.overlapping_takes_it_along = scene.overlapping_goes_too && dice.one_in(2);
      }
    }
    if (dice.one_in(2)) {
      scene.memory.retry = {.number = dice.number(),
                            .hold_until = dice.around_now(),
                            .seen = dice.one_in(4) ? "something else" : scene.seen()};
    }
    if (dice.one_in(8)) scene.memory.released = dice.around_now();
    scene.binds = !dice.one_in(4);
    if (dice.one_in(2)) scene.memory.abandoned = dice.around_now();
    if (dice.one_in(4)) scene.memory.claim_asked_at = dice.around_now();
    if (dice.one_in(8)) lose_node(scene, dice);
    return scene;
  }

 private:
  /// Most of what a claim that is let go needs, which chance alone rarely brings together.
  void lose_node(VolumeScene& scene, Dice& dice) const {
    scene.volume = dice.of(bound_);
    scene.is_wanted = false;
    scene.overlapping = nullptr;
    if (!dice.one_in(4)) scene.removals.clear();
    scene.claim = dice.of(claims_);
    scene.node = dice.one_in(2) ? nodes_[3] : dice.of(nodes_);
    scene.lets_go_after = std::chrono::seconds(1 + dice.below(8));
    if (dice.one_in(2)) scene.memory.node_lost = dice.around_now();
  }

  void add_volumes() {
    const auto released = [] {
      return testing::volume("v")
          .host_path(kPath)
          .claim("default", "a")
          .finalizer(std::string(kFinalizer))
          .released();
    };
    const auto add = [&](const testing::VolumeBuilder& seen) { volumes_.push_back(seen.shared()); };
    volumes_.push_back(nullptr);
    add(released());
    add(released());
    add(released().deleting());
    add(released().phase("Available").deleting());
    add(released().unset("/metadata", "finalizers"));
    add(released().host_path("/etc/v"));
    add(released().unset("/spec", "hostPath"));
    for (const char* policy : {"Delete", "Retain"}) {
      add(released().phase("Bound").reclaim_policy(policy));
      add(released().phase("Bound").reclaim_policy(policy).deleting());
      add(released().phase("Bound").reclaim_policy(policy).unset("/metadata", "finalizers"));
    }
    const std::string mark(kVolumeNodeLost);
    for (const char* uid : {"uid-a", "uid-of-an-earlier-claim"}) {
      add(released().annotation(mark, uid));
      add(released().phase("Bound").annotation(mark, uid));
      bound_.push_back(volumes_.back());
    }
    bound_.push_back(released().phase("Bound").shared());
    add(released().reclaim_policy("Retain"));
    add(released().annotation(std::string(kProvisionedBy), "example.com/other"));
  }

  void add_operations(const std::string& owner, const std::string& path, const std::string& node) {
    for (int attempt = 1; attempt <= testing::kAttempts; ++attempt) {
      Operation operation;
      operation.kind = Kind::kRemove;
      operation.volume_name = "v";
      operation.owner_uid = owner;
      operation.attempt = attempt;
      operation.node = node;
      operation.base_path = "/data";
      operation.path = path;
      removals_.push_back(std::make_shared<const Operation>(operation));
      operation.kind = Kind::kMake;
      makes_.push_back(std::make_shared<const Operation>(operation));
    }
  }

  /// Half of them what a scene of one volume has.
  static const Item& operation(Dice& dice, const std::vector<Item>& of, int attempt) {
    const std::uint64_t places = of.size() / testing::kAttempts;
    const std::uint64_t place = dice.one_in(2) ? 0 : dice.below(places);
    return of[place * testing::kAttempts + static_cast<std::uint64_t>(attempt - 1)];
  }

  std::vector<std::shared_ptr<const k8s::PersistentVolume>> volumes_{};
  std::vector<std::shared_ptr<const k8s::PersistentVolume>> bound_{};
  std::shared_ptr<const k8s::PersistentVolume> other_ = testing::volume("w").shared();
  std::shared_ptr<const config::Config> config_{};
  k8s::StoreWriter<k8s::PersistentVolumeClaim> no_claims_{};
  std::vector<std::shared_ptr<const k8s::PersistentVolumeClaim>> claims_{
      testing::claim("a").volume("v").shared(),
      testing::claim("a").volume("v").deleting().shared()};
  std::vector<Item> removals_{};  // by place, then attempt
  std::vector<Item> makes_{};     // likewise
  std::vector<VolumeNode> nodes_{{VolumeNode::Kind::kNode, "n1", ""},
                                 {VolumeNode::Kind::kNode, "n1", ""},
                                 {VolumeNode::Kind::kAny, "", ""},
                                 {VolumeNode::Kind::kGone, "n1", "n1"},
                                 {VolumeNode::Kind::kGone, "", "labelled zone=a"},
                                 {VolumeNode::Kind::kUnclear, "", "two nodes match"}};
};

const Recorded* find_in(const std::vector<Recorded>& all, const Operation& operation) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const Recorded& one) {
    return one.operation->id() == operation.id();
  });
  return it == all.end() ? nullptr : &*it;
}

bool is_of_this_volume(const VolumeScene& scene, const Operation& removal) {
  return removal.owner_uid == scene.volume->meta.uid && removal.path == scene.volume->path &&
         (scene.node.kind != VolumeNode::Kind::kNode || removal.node == scene.node.name);
}

/// Another volume's may not be there at all; an earlier one of this volume may be on its way out,
/// for it does to the same directory what is to be done anyway.
bool is_free_of_removals(const VolumeScene& scene, const Recorded* except) {
  return std::none_of(scene.removals.begin(), scene.removals.end(), [&](const Recorded& removal) {
    if (&removal == except) return false;
    return is_open(removal.progress) || removal.operation->owner_uid != scene.volume->meta.uid;
  });
}

const std::vector<For> kWhatGoes{
    {"only what is to be removed is removed, on a node that is known, where nothing overlaps it",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const remove = std::get_if<for_volume::Remove>(&decision);
       if (remove == nullptr) return true;
       const bool node_is_known =
           scene.node.kind == VolumeNode::Kind::kNode || scene.node.kind == VolumeNode::Kind::kAny;
       return scene.is_wanted && node_is_known && scene.overlapping == nullptr &&
              is_of_this_volume(scene, remove->operation) &&
              remove->operation.node == scene.node.name && remove->operation.path == kPath;
     }},
    {"nothing is removed while another removal or a make is on record that may act",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!std::holds_alternative<for_volume::Remove>(decision)) return true;
       return is_free_of_removals(scene, nullptr) &&
              std::none_of(scene.makes.begin(), scene.makes.end(), [](const Recorded& make) {
                return may_act(make.progress) || make.progress.over();
              });
     }},
    {"a removal has a number that nothing else of the name has that removes",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const remove = std::get_if<for_volume::Remove>(&decision);
       if (remove == nullptr) return true;
       const int attempt = remove->operation.attempt;
       return attempt > scene.last_other && attempt > scene.memory.retry.number &&
              std::all_of(
                  scene.removals.begin(), scene.removals.end(),
                  [&](const Recorded& removal) { return removal.operation->attempt < attempt; });
     }},
    {"a volume is released only after a removal of its own directory has succeeded",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!std::holds_alternative<for_volume::Release>(decision)) return true;
       return scene.is_wanted &&
              std::any_of(scene.removals.begin(), scene.removals.end(),
                          [&](const Recorded& removal) {
                            return removal.progress.state == State::kSucceeded &&
                                   is_of_this_volume(scene, *removal.operation) &&
                                   is_free_of_removals(scene, &removal);
                          });
     }},
    {"a bound or retained volume is never released, let go or removed",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const bool ends = std::holds_alternative<for_volume::Release>(decision) ||
                         std::holds_alternative<for_volume::LetGo>(decision) ||
                         std::holds_alternative<for_volume::Remove>(decision);
       return !ends || (scene.volume->reclaim_policy == "Delete" && scene.volume->phase != "Bound");
     }},
    {"what has just been let go or released is neither again",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const bool ends =
           std::holds_alternative<for_volume::Release>(decision) ||
           (scene.removals.empty() && (std::holds_alternative<for_volume::LetGo>(decision) ||
                                       std::holds_alternative<for_volume::Remove>(decision)));
       return !ends || scene.now >= scene.memory.released;
     }},
    {"a volume is let go only if its node is gone, or another's removal takes its directory along",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const let_go = std::get_if<for_volume::LetGo>(&decision);
       if (let_go == nullptr) return true;
       if (!scene.is_wanted || !is_free_of_removals(scene, nullptr)) return false;
       if (let_go->stays) return is_node_lost(*scene.volume);
       if (scene.node.kind == VolumeNode::Kind::kGone) {
         return !let_go->node.empty() && let_go->node == scene.node.name;
       }
       return scene.overlapping != nullptr && scene.overlapping_takes_it_along;
     }},
    {"our finalizer comes to bound volumes with policy Delete, and goes from those without it",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (std::holds_alternative<for_volume::AddFinalizer>(decision)) {
         return !scene.is_wanted && scene.volume->reclaim_policy == "Delete" &&
                scene.volume->phase == "Bound" && !scene.volume->meta.deleting();
       }
       return !std::holds_alternative<for_volume::RemoveFinalizer>(decision) ||
              (!scene.is_wanted && scene.volume->reclaim_policy != "Delete");
     }},
};

bool speaks_of_a_lost_node(const VolumeDecision& decision) {
  return std::holds_alternative<for_volume::NodeLost>(decision) ||
         std::holds_alternative<for_volume::LetClaimGo>(decision);
}

const std::vector<For> kWhatIsLost{
    {"nothing removes the directory of a claim that was let go",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (scene.volume == nullptr || !is_node_lost(*scene.volume)) return true;
       if (const auto* const let_go = std::get_if<for_volume::LetGo>(&decision)) {
         return let_go->stays;
       }
       return !std::holds_alternative<for_volume::Remove>(decision) &&
              !std::holds_alternative<for_volume::Release>(decision) &&
              !std::holds_alternative<for_volume::Failed>(decision);
     }},
    {"only the claim of a volume of ours is let go that is bound to it, on a node that is gone, if "
     "its class says so",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!speaks_of_a_lost_node(decision)) return true;
       return !scene.is_wanted && is_ours(*scene.volume, scene.names) &&
              scene.volume->phase == "Bound" && !scene.volume->meta.deleting() &&
              scene.claim != nullptr && !scene.claim->meta.deleting() && scene.lets_go_after &&
              scene.node.kind == VolumeNode::Kind::kGone && !scene.node.name.empty() &&
              scene.removals.empty();
     }},
    {"and only when its node has been gone for as long as the class says",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!std::holds_alternative<for_volume::LetClaimGo>(decision)) return true;
       return scene.memory.node_lost && scene.now >= *scene.memory.node_lost + *scene.lets_go_after;
     }},
    {"what says that a claim is let go is taken back only while the claim is there and its node "
     "too, "
     "or when it is about another claim",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!std::holds_alternative<for_volume::KeepClaim>(decision)) return true;
       if (!is_node_lost(*scene.volume)) return has_node_lost_mark(*scene.volume);
       return scene.volume->phase == "Bound" && scene.claim != nullptr &&
              !scene.claim->meta.deleting() && scene.node.kind == VolumeNode::Kind::kNode;
     }},
};

const std::vector<For> kWhatIsReleased{
    {"only a volume of ours with policy Delete, under our finalizer, is said to be released",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!std::holds_alternative<for_volume::MarkReleased>(decision)) return true;
       return is_ours(*scene.volume, scene.names) && scene.volume->reclaim_policy == "Delete" &&
              has_finalizer(*scene.volume) && !scene.is_wanted &&
              scene.volume->phase != "Released" && !scene.volume->claim_uid.empty();
     }},
    {"and only when its claim has been out of sight for a while, and that is for us to say",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (!std::holds_alternative<for_volume::MarkReleased>(decision)) return true;
       return scene.binds && scene.memory.abandoned && scene.now > *scene.memory.abandoned &&
              scene.now >= scene.memory.claim_asked_at;
     }},
};

const std::vector<For> kWhatIsOnRecord{
    {"where nothing is to be removed, all removals on record are stopped before anything else",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       if (scene.is_wanted || scene.removals.empty()) return true;
       if (std::holds_alternative<for_volume::Cancel>(decision) ||
           std::holds_alternative<for_volume::Forget>(decision)) {
         return true;
       }
       const bool all_end = std::all_of(
           scene.removals.begin(), scene.removals.end(),
           [](const Recorded& removal) { return removal.progress.state == State::kEnding; });
       const auto* const wait = std::get_if<for_volume::Wait>(&decision);
       return all_end && ((wait != nullptr && wait->at_most && !wait->forget) ||
                          std::holds_alternative<for_volume::Follow>(decision));
     }},
    {"only what may act is cancelled, and the removal that is to be done only when it is late or "
     "has waited too long",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const cancel = std::get_if<for_volume::Cancel>(&decision);
       if (cancel == nullptr) return true;
       const Operation& operation = *cancel->removal.operation;
       if (operation.kind == Kind::kMake) {
         const Recorded* const make = find_in(scene.makes, operation);
         return make != nullptr && is_open(make->progress) && scene.is_wanted;
       }
       const Recorded* const removal = find_in(scene.removals, operation);
       if (removal == nullptr || !is_open(removal->progress)) return false;
       const bool is_the_latest =
           std::none_of(scene.removals.begin(), scene.removals.end(), [&](const Recorded& other) {
             return other.operation->attempt > operation.attempt &&
                    other.operation->owner_uid == operation.owner_uid;
           });
       const bool is_kept = scene.overlapping != nullptr && !scene.overlapping_goes_too;
       return removal->progress.state == State::kLate || removal->progress.outdated ||
              !scene.is_wanted || !is_the_latest || is_kept ||
              !is_of_this_volume(scene, operation) || is_node_lost(*scene.volume);
     }},
    {"no removal goes on where another volume keeps the directory",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const follow = std::get_if<for_volume::Follow>(&decision);
       const bool is_kept = scene.overlapping != nullptr && !scene.overlapping_goes_too;
       return follow == nullptr || !is_kept || follow->removal.operation->kind != Kind::kRemove ||
              follow->removal.progress.over() || follow->removal.progress.state == State::kEnding;
     }},
    {"a record is forgotten only when it is over, and that of a make only before a removal",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const forget = std::get_if<for_volume::Forget>(&decision);
       if (forget == nullptr) return true;
       const bool is_make = forget->operation->kind == Kind::kMake;
       const Recorded* const one =
           find_in(is_make ? scene.makes : scene.removals, *forget->operation);
       return one != nullptr && one->progress.over() &&
              (!is_make ||
               (scene.is_wanted && (scene.overlapping == nullptr || is_node_lost(*scene.volume))));
     }},
    {"each failed removal is counted once",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const failed = std::get_if<for_volume::Failed>(&decision);
       return failed == nullptr || failed->removal.operation->attempt > scene.memory.retry.number;
     }},
    {"a wait has an end while a removal is on record or wanted, and else all is forgotten",
     [](const VolumeScene& scene, const VolumeDecision& decision) {
       const auto* const wait = std::get_if<for_volume::Wait>(&decision);
       if (wait == nullptr) return true;
       if (wait->at_most) return *wait->at_most > Duration::zero() && !wait->forget;
       return wait->forget && scene.removals.empty() && !scene.is_wanted;
     }},
};

}  // namespace

TEST_CASE("every decision for a volume keeps what must hold, in whatever scene") {
  const VolumeScenes scenes;
  std::vector<For> all = kWhatGoes;
  all.insert(all.end(), kWhatIsLost.begin(), kWhatIsLost.end());
  all.insert(all.end(), kWhatIsReleased.begin(), kWhatIsReleased.end());
  all.insert(all.end(), kWhatIsOnRecord.begin(), kWhatIsOnRecord.end());
  testing::check_properties<VolumeScene, VolumeDecision>(
      all, [&](const Dice& dice) { return scenes.scene(dice); });
}

}  // namespace lpp::provisioner::volume_properties
