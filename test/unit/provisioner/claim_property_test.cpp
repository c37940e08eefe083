// SPDX-License-Identifier: Apache-2.0
// What holds for every decision of a claim, whatever its scene looks like, in random scenes.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "provisioner/plan.h"
#include "provisioner/volume_manifest.h"
#include "unit/provisioner/random_claim_scene.h"

namespace lpp::provisioner::claim_properties {
namespace {

using operation::Operation;
using testing::is_one_directory;
using testing::is_open;
using testing::may_act;
using testing::meet;
using State = operation::Progress::State;
using For = testing::Property<ClaimScene, ClaimDecision>;

bool asks(const ClaimScene& scene) {
  return scene.claim != nullptr &&
         should_provision(*scene.claim, scene.storage_class.get(), scene.names);
}

/// The claim has no volume and wants one where the make is.
bool waits_for(const ClaimScene& scene, const Operation& make) {
  return asks(scene) && scene.volume == nullptr && make.node == scene.node_name;
}

/// Its base path cannot serve the claim, or a limit that is asked for is not known to hold.
bool is_of_no_use(const ClaimScene& scene, const Make& make) {
  const operation::Limits& limits = make.operation().limits;
  if (scene.storage_class != nullptr) {
    const auto& parameters = scene.storage_class->parameters;
    const std::string* const quota = k8s::find(parameters, "quota");
    const std::string* const overcommit = k8s::find(parameters, "overcommit");
    if ((quota != nullptr && *quota == "hard") != limits.hard) return true;
    if ((overcommit == nullptr || *overcommit == "true") != limits.overcommit) return true;
  }
  if (!make.progress) return false;
  if (make.progress->state == State::kFailed) {
    return make.progress->unfit && !make.operation().shared;
  }
  const operation::Kept& kept = make.progress->kept;
  return make.progress->state == State::kSucceeded &&
         ((limits.hard && kept.size != true) || (!limits.overcommit && !kept.overcommit));
}

const Make* find_make(const ClaimScene& scene, const Operation& operation) {
  const auto it = std::find_if(scene.makes.begin(), scene.makes.end(), [&](const Make& make) {
    return make.operation().id() == operation.id();
  });
  return it == scene.makes.end() ? nullptr : &*it;
}

const TakingBack* find_taking_back(const ClaimScene& scene, const Operation& operation) {
  const auto it =
      std::find_if(scene.taking_back.begin(), scene.taking_back.end(),
                   [&](const TakingBack& one) { return one.operation->id() == operation.id(); });
  return it == scene.taking_back.end() ? nullptr : &*it;
}

template <typename Holds>
bool any_make(const ClaimScene& scene, const Holds& holds) {
  return std::any_of(scene.makes.begin(), scene.makes.end(), holds);
}
template <typename Holds>
bool any_taking_back(const ClaimScene& scene, const Holds& holds) {
  return std::any_of(scene.taking_back.begin(), scene.taking_back.end(), holds);
}

/// The operation of a decision that begins something or declares it ready for use; else nullptr.
const Operation* entered(const ClaimDecision& decision) {
  if (const auto* start = std::get_if<for_claim::Start>(&decision)) return &start->operation;
  if (const auto* publish = std::get_if<for_claim::Publish>(&decision)) {
    return &publish->make.operation();
  }
  return nullptr;
}

bool is_idle(const ClaimScene& scene) {
  return scene.taking_back.empty() &&
         !any_make(scene, [](const Make& make) { return make.progress || !make.begun.done; });
}

/// Whether what is taken back goes with what is in it: as the step records it.
bool is_teardown(const for_claim::TakeBack& back) { return may_tear_down(back.make); }

const std::vector<For> kWhatIsNew{
    {"nothing is begun or published where something is being taken back",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const Operation* const place = entered(decision);
       return place == nullptr || !any_taking_back(scene, [&](const TakingBack& one) {
                return meet(*one.operation, *place);
              });
     }},
    {"nothing is begun or published where a removal of the volume's name may still act",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const Operation* const place = entered(decision);
       return place == nullptr ||
              std::none_of(scene.removals.begin(), scene.removals.end(), [&](const auto& removal) {
                return may_act(removal.progress) && meet(*removal.operation, *place);
              });
     }},
    // Another node's make does no harm on a shared filesystem, and that node may be dead.
    {"nothing is begun or published where another make of this node may still act",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const Operation* const place = entered(decision);
       return place == nullptr || !any_make(scene, [&](const Make& make) {
                const Operation& other = make.operation();
                return other.id() != place->id() && other.node == place->node && make.progress &&
                       may_act(*make.progress) && meet(other, *place);
              });
     }},
    {"nothing is begun or published but for a claim that asks for it there and has no volume",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const Operation* const place = entered(decision);
       return place == nullptr || (waits_for(scene, *place) && !scene.memory.published);
     }},
    {"nothing is begun or published for a claim on its way out",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       return entered(decision) == nullptr || !scene.claim->meta.deleting();
     }},
    {"what is begun has a number of its own",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const start = std::get_if<for_claim::Start>(&decision);
       return start == nullptr || (find_make(scene, start->operation) == nullptr &&
                                   start->operation.attempt > scene.memory.retry.number);
     }},
    {"only a make that has succeeded, on record and neither done nor given up, is published",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const publish = std::get_if<for_claim::Publish>(&decision);
       if (publish == nullptr) return true;
       const Make* const make = find_make(scene, publish->make.operation());
       return make != nullptr && !make->begun.done && !make->begun.given_up && make->progress &&
              make->progress->state == State::kSucceeded;
     }},
    {"nothing is published while a limit that was asked for is not known to hold",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const publish = std::get_if<for_claim::Publish>(&decision);
       if (publish == nullptr) return true;
       const Make* const make = find_make(scene, publish->make.operation());
       return !is_of_no_use(scene, *make);
     }},
    {"a volume is told to be another's only when it is",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       return !std::holds_alternative<for_claim::OtherVolume>(decision) ||
              !difference(*scene.volume, *scene.claim, scene.names).empty();
     }},
    {"a claim that does not ask is neither refused nor followed, and no node is asked for",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const bool is_of_an_asking_claim = std::holds_alternative<for_claim::Refuse>(decision) ||
                                          std::holds_alternative<for_claim::Follow>(decision) ||
                                          std::holds_alternative<for_claim::Failed>(decision) ||
                                          std::holds_alternative<for_claim::CheckNode>(decision);
       return !is_of_an_asking_claim || (asks(scene) && scene.volume == nullptr);
     }},
};

/// As the binder would bind them: nobody else has a say in either of them.
bool belong_together(const ClaimScene& scene) {
  if (scene.claim == nullptr || scene.volume == nullptr) return false;
  return scene.volume->claim_uid == scene.claim->meta.uid &&
         scene.volume->meta.name == scene.volume_name && !scene.volume->meta.deleting() &&
         !scene.claim->meta.deleting() &&
         (scene.volume->phase == "Bound" || scene.volume->phase == "Pending");
}

const std::vector<For> kWhatIsBound{
    {"only a claim and the volume made for it are bound, neither of them on its way out",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       return !std::holds_alternative<for_claim::Bind>(decision) || belong_together(scene);
     }},
    {"nothing is written for a claim that is bound, or that somebody else tied to a volume",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const bind = std::get_if<for_claim::Bind>(&decision);
       if (bind == nullptr) return true;
       const bool is_tied = !scene.claim->volume_name.empty();
       return scene.claim->phase != "Bound" && bind->claim == !is_tied &&
              (!is_tied || (scene.claim->volume_name == scene.volume_name &&
                            scene.claim->meta.annotations.contains(kBindCompleted)));
     }},
    {"nothing is written for a claim whose class is not ours, or that does not ask",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const bind = std::get_if<for_claim::Bind>(&decision);
       if (bind == nullptr) return true;
       return scene.storage_class != nullptr && scene.names.has(scene.storage_class->provisioner) &&
              (!bind->claim || asks(scene));
     }},
    {"nothing is written when it is not for us, too soon after the last time, or once it is left",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       if (!std::holds_alternative<for_claim::Bind>(decision)) return true;
       const Memory::Binding& last = scene.memory.binding;
       const auto is_in = [&](const std::string& version) {
         return version == scene.claim->meta.resource_version ||
                version == scene.volume->meta.resource_version;
       };
       const bool is_known =
           last.outdated.empty() || std::any_of(last.outdated.begin(), last.outdated.end(), is_in);
       return scene.binds && !last.left && last.failure.empty() &&
              (!is_known || scene.now >= last.hold_until);
     }},
    {"the phase of a volume is not written twice",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const bind = std::get_if<for_claim::Bind>(&decision);
       return bind == nullptr || !bind->volume_status ||
              scene.memory.binding.bound_volume_uid != scene.volume->meta.uid;
     }},
    {"nothing is begun, refused or published for a claim that was sent back to the scheduler",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       if (scene.claim == nullptr || scene.memory.rescheduled_from.empty() ||
           scene.memory.rescheduled_from != scene.claim->meta.resource_version) {
         return true;
       }
       return !std::holds_alternative<for_claim::Start>(decision) &&
              !std::holds_alternative<for_claim::Publish>(decision) &&
              !std::holds_alternative<for_claim::Refuse>(decision) &&
              !std::holds_alternative<for_claim::CheckNode>(decision);
     }},
    {"only what failed is left to the control plane, once",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       return !std::holds_alternative<for_claim::LeaveUnbound>(decision) ||
              (!scene.memory.binding.failure.empty() && !scene.memory.binding.left);
     }},
    {"a claim that nobody has asked for is not bound at once",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const bind = std::get_if<for_claim::Bind>(&decision);
       return bind == nullptr || !bind->claim || asks_for(*scene.claim, scene.names) ||
              !scene.memory.unasked ||
              scene.now >= *scene.memory.unasked + std::chrono::milliseconds(500);
     }},
    {"a claim that is lost is not bound again at once",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       return !std::holds_alternative<for_claim::Bind>(decision) || scene.claim->phase != "Lost" ||
              !scene.memory.lost || scene.now >= *scene.memory.lost + std::chrono::seconds(2);
     }},
};

const std::vector<For> kWhatIsTakenBack{
    {"what is in a directory goes only if no volume showed it and it is certainly the make's",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const back = std::get_if<for_claim::TakeBack>(&decision);
       if (back == nullptr || !is_teardown(*back)) return true;
       const Operation& what = back->make.operation();
       const Make* const make = find_make(scene, what);
       return make != nullptr && make->begun.never_published && !make->shown && make->begun.made &&
              make->progress;
     }},
    {"nothing is taken back that a volume shows, that may still act, or that is done",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const back = std::get_if<for_claim::TakeBack>(&decision);
       if (back == nullptr) return true;
       const Make* const make = find_make(scene, back->make.operation());
       if (make == nullptr) return find_taking_back(scene, back->make.operation()) != nullptr;
       const bool has_begun = any_taking_back(scene, [&](const TakingBack& one) {
         return is_one_directory(*one.operation, make->operation());
       });
       return has_begun || (!make->shown && !make->begun.done);
     }},
    {"nothing is taken back that the claim waits for, unless that has begun already",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const back = std::get_if<for_claim::TakeBack>(&decision);
       if (back == nullptr || back->make.begun.given_up) return true;
       const bool is_not_tried_again =
           back->make.has_failed() && scene.claim != nullptr && scene.claim->meta.deleting();
       return is_not_tried_again || is_of_no_use(scene, back->make) ||
              !waits_for(scene, back->make.operation());
     }},
    {"nothing is taken back where a make may still act",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const back = std::get_if<for_claim::TakeBack>(&decision);
       return back == nullptr || !any_make(scene, [&](const Make& make) {
                return make.progress && may_act(*make.progress) &&
                       meet(make.operation(), back->make.operation());
              });
     }},
    {"nothing is taken back twice at the same time",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const back = std::get_if<for_claim::TakeBack>(&decision);
       return back == nullptr || !any_taking_back(scene, [&](const TakingBack& one) {
                return may_act(one.progress) && meet(*one.operation, back->make.operation());
              });
     }},
    {"what takes back has a number that nothing else of the name has that removes",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const back = std::get_if<for_claim::TakeBack>(&decision);
       if (back == nullptr) return true;
       const bool is_a_removals =
           std::any_of(scene.removals.begin(), scene.removals.end(),
                       [&](const auto& one) { return one.operation->attempt >= back->attempt; });
       return !is_a_removals && !any_taking_back(scene, [&](const TakingBack& one) {
         return one.operation->attempt >= back->attempt;
       });
     }},
    {"while something is taken back where a volume is by now, that is stopped before all else",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const bool is_in_danger = any_taking_back(scene, [](const TakingBack& one) {
         return one.in_use && is_open(one.progress) && one.progress.state != State::kLate;
       });
       return !is_in_danger || std::holds_alternative<for_claim::CheckPublished>(decision) ||
              std::holds_alternative<for_claim::Cancel>(decision) ||
              std::holds_alternative<for_claim::Forget>(decision) ||
              std::holds_alternative<for_claim::TakeBack>(decision) ||
              std::holds_alternative<for_claim::FinishTakeBack>(decision) ||
              std::holds_alternative<for_claim::TakeBackFailed>(decision) ||
              std::holds_alternative<for_claim::TakeBackStuck>(decision);
     }},
    {"a taking back is finished only when it is over, with success or where a volume is by now",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const finish = std::get_if<for_claim::FinishTakeBack>(&decision);
       if (finish == nullptr) return true;
       const TakingBack* const one = find_taking_back(scene, *finish->done.operation);
       return one != nullptr && (one->progress.state == State::kSucceeded ||
                                 (one->progress.state == State::kFailed && one->in_use));
     }},
};

const std::vector<For> kWhatIsOnRecord{
    {"a make that the cache knows no claim for is stopped only if the API server is asked, or if "
     "its taking back has begun",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const cancel = std::get_if<for_claim::Cancel>(&decision);
       if (cancel == nullptr || scene.claim != nullptr) return true;
       const Make* const make = find_make(scene, *cancel->operation);
       return make == nullptr || make->begun.done || make->begun.given_up || make->shown;
     }},
    {"only what may act is cancelled: what is late or outdated, or takes back what it must not",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const cancel = std::get_if<for_claim::Cancel>(&decision);
       if (cancel == nullptr) return true;
       if (const TakingBack* const one = find_taking_back(scene, *cancel->operation)) {
         const bool is_unsafe = !one->operation->only_if_empty;
         return is_open(one->progress) && (one->in_use || one->progress.outdated ||
                                           one->progress.state == State::kLate || is_unsafe);
       }
       const Make* const make = find_make(scene, *cancel->operation);
       if (make == nullptr || !make->progress || !is_open(*make->progress)) return false;
       const bool is_superseded = any_make(scene, [&](const Make& other) {
         return &other != make && other.progress && meet(other.operation(), make->operation());
       });
       if (make->progress->outdated && (make->shown || make->begun.done || is_superseded)) {
         return true;
       }
       return make->progress->state == State::kLate && !make->shown;
     }},
    {"a make that waits for word does not go on where a volume is, or something else may act",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const follow = std::get_if<for_claim::Follow>(&decision);
       if (follow == nullptr || !follow->make.progress->outdated) return true;
       const Operation& make = follow->make.operation();
       return scene.volume == nullptr && !follow->make.begun.done && !follow->make.begun.given_up &&
              !any_taking_back(scene, [&](const TakingBack& one) {
                return may_act(one.progress) && meet(*one.operation, make);
              });
     }},
    {"a make is withdrawn only if it has not begun, does not go on or is late, and nobody waits "
     "for it",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const withdraw = std::get_if<for_claim::Withdraw>(&decision);
       if (withdraw == nullptr) return true;
       const Make* const make = find_make(scene, withdraw->make.operation());
       if (make == nullptr || !make->progress || make->shown || make->begun.done) return false;
       const bool is_not_tried_again = make->progress->state == State::kLate &&
                                       scene.claim != nullptr && scene.claim->meta.deleting();
       return (make->progress->state != State::kRunning || make->progress->outdated) &&
              !make->progress->over() && make->progress->state != State::kEnding &&
              (make->begun.given_up || is_not_tried_again || is_of_no_use(scene, *make) ||
               !waits_for(scene, make->operation()));
     }},
    {"only what cannot act is forgotten, and is done, shown, has never begun, or is of a "
     "directory that another record is of",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const forget = std::get_if<for_claim::Forget>(&decision);
       if (forget == nullptr) return true;
       if (const TakingBack* const one = find_taking_back(scene, *forget->operation)) {
         return one->progress.over() && any_taking_back(scene, [&](const TakingBack& later) {
                  return later.operation->attempt > one->operation->attempt &&
                         is_one_directory(*later.operation, *one->operation);
                });
       }
       const Make* const make = find_make(scene, *forget->operation);
       if (make == nullptr || (make->progress && !make->progress->over())) return false;
       if (make->begun.done || make->shown) return true;
       const bool never_begun = make->begun.first_there && !make->begun.made && make->progress &&
                                make->progress->state == State::kFailed &&
                                make->progress->directory == operation::Directory::kAbsent;
       if (never_begun) return true;
       const Make* const heir = forget->heir == nullptr ? nullptr : find_make(scene, *forget->heir);
       return heir != nullptr && heir != make && heir->progress && !heir->begun.done &&
              is_one_directory(heir->operation(), make->operation());
     }},
    {"each failure is counted once",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       if (const auto* const failed = std::get_if<for_claim::Failed>(&decision)) {
         return failed->operation->attempt > scene.memory.retry.number;
       }
       const auto* const failed = std::get_if<for_claim::TakeBackFailed>(&decision);
       if (failed == nullptr) return true;
       const auto retry = scene.memory.take_back.find(place_key(*failed->failed.operation));
       return retry == scene.memory.take_back.end() ||
              failed->failed.operation->attempt > retry->second.number;
     }},
    {"a wait has an end while anything is on record, in mind or held",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const wait = std::get_if<for_claim::Wait>(&decision);
       if (wait == nullptr) return true;
       if (wait->at_most) return *wait->at_most > Duration::zero();
       return is_idle(scene) &&
              (!asks(scene) || scene.volume != nullptr || scene.claim->meta.deleting());
     }},
    {"a claim is forgotten only when nothing of it is on record or in mind",
     [](const ClaimScene& scene, const ClaimDecision& decision) {
       const auto* const wait = std::get_if<for_claim::Wait>(&decision);
       return wait == nullptr || !wait->forget ||
              (is_idle(scene) && (!asks(scene) || scene.volume != nullptr));
     }},
};

}  // namespace

TEST_CASE("every decision for a claim keeps what must hold, in whatever scene") {
  const testing::ClaimScenes scenes;
  std::vector<For> all = kWhatIsNew;
  all.insert(all.end(), kWhatIsTakenBack.begin(), kWhatIsTakenBack.end());
  all.insert(all.end(), kWhatIsBound.begin(), kWhatIsBound.end());
  all.insert(all.end(), kWhatIsOnRecord.begin(), kWhatIsOnRecord.end());
  testing::check_properties<testing::RandomClaimScene, ClaimDecision>(
      all, [&](const testing::Dice& dice) { return scenes.scene(dice); });
}

}  // namespace lpp::provisioner::claim_properties
