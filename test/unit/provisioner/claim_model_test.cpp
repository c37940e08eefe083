// SPDX-License-Identifier: Apache-2.0
// What becomes of a claim step by step, in a small model of what steps do and of what happens
// meanwhile: from random scenes, with random changes, and then with none. It shows what no single
// decision can: that decisions come to an end, and that what tenants may have written stays.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "provisioner/world.h"
#include "unit/provisioner/random_claim_scene.h"

namespace lpp::provisioner::claim_model {
namespace {

using operation::Directory;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using operation::Recorded;
using std::chrono::seconds;
using testing::Dice;
using testing::is_one_directory;
using testing::meet;
using State = Progress::State;

constexpr int kMostDecisions = 16;  // of one step
constexpr int kChanges = 12;        // rounds in which claims, volumes and records come and go
constexpr int kMostRounds = 400;

/// The API server says what the cache says, and all calls succeed. What goes on on the nodes ends
/// sooner or later.
class Model {
 public:
  Model(const testing::ClaimScenes& scenes, Dice dice)
      : scenes_(scenes), dice_(dice), scene_(scenes.scene(dice)) {
    scene_.removals.clear();  // they are the affair of the volume's steps
    is_bound_ = scene_.volume_is_of_the_claim &&
                (scene_.claim == nullptr || scene_.claim->volume_name == scene_.volume_name);
    if (is_bound_) written_.push_back(scene_.volume_place());
    // No volume is created where something may be taken back, or another make of the same node may
    // act or has failed.
    const auto is_at_the_volume = [&](const Operation& operation) {
      return scene_.volume != nullptr && meet(scene_.volume_place(), operation);
    };
    for (const Make& make : scene_.makes) {
      if (!make.progress) continue;
      // Nor is another path around or inside it begun while the one is on record.
      const bool is_nested = is_at_the_volume(make.operation()) &&
                             !is_one_directory(scene_.volume_place(), make.operation());
      if (is_nested) continue;
      if (make.operation().shared || !is_at_the_volume(make.operation()) ||
          make.progress->state == State::kSucceeded) {
        records_.push_back({make.begun.operation, *make.progress});
      }
    }
    for (const TakingBack& one : scene_.taking_back) {
      if (!is_at_the_volume(*one.operation)) records_.push_back({one.operation, one.progress});
    }
  }

  void run() {
    for (int round = 0; round < kMostRounds; ++round) {
      step();
      if (!broken_.empty() || (rests_ && round >= kChanges)) return;
      work();
      if (round < kChanges && dice_.one_in(3)) change_something();
    }
    broken_ = "it does not come to rest";
  }

  const std::string& broken() const { return broken_; }
  std::string story() const { return story_ + "\n" + describe(scene_); }

 private:
  /// As ClaimReconciler::step().
  void step() {
    rests_ = false;
    wait_ = kRecheck;
    for (int i = 0; i < kMostDecisions; ++i) {
      look();
      const auto decision = decide(scene_);
      story_.append(" ").append(testing::name_of(decision));
      if (std::visit([&](const auto& what) { return perform(what); }, decision)) return;
    }
    broken_ = "one step has no end of decisions";
  }

  /// As ClaimReconciler::look().
  void look() {
    note_begun(records_, scene_.memory);
    scene_.makes.clear();
    scene_.taking_back.clear();
    for (const Begun& begun : scene_.memory.begun) {
      Make make{.begun = begun};
      if (const Recorded* const record = find(*begun.operation)) make.progress = record->progress;
      scene_.makes.push_back(std::move(make));
    }
    for (const Recorded& one : records_) {
      if (one.operation->kind == Kind::kTakeBack) {
        scene_.taking_back.push_back({.operation = one.operation, .progress = one.progress});
      }
    }
    scene_.settle_flags();
  }

  // What each decision does; true if the step ends with it.

  bool perform(const for_claim::Wait& wait) {
    rests_ = !wait.at_most;
    wait_ = wait.at_most.value_or(kRecheck);
    if (wait.forget) scene_.memory = {};
    return true;
  }
  bool perform(const for_claim::Start& start) {
    const auto made = std::make_shared<const Operation>(start.operation);
    Memory& memory = scene_.memory;
    const bool published_before =
        std::any_of(memory.begun.begin(), memory.begun.end(), [&](const Begun& begun) {
          return !begun.never_published && is_one_directory(*begun.operation, *made);
        });
    memory.begun.push_back({.operation = made, .never_published = !published_before});
    memory.in_flight = made;
    memory.begun_on = made->node;
    return record(made);
  }
  bool perform(const for_claim::Follow& follow) {
    scene_.memory.in_flight = follow.make.begun.operation;
    return true;
  }
  bool perform(const for_claim::Publish& publish) {
    const Operation made = publish.make.operation();
    auto volume = std::make_shared<k8s::PersistentVolume>(*scenes_.a_volume());
    volume->path = made.path;
    scene_.volume = std::move(volume);
    scene_.volume_is_of_the_claim = true;
    scene_.volume_node = made.shared ? "" : made.node;
    each_begun(made, [](Begun& begun) {
      begun.never_published = false;
      begun.done = true;
    });
    scene_.memory = {.begun = std::move(scene_.memory.begun), .published = scene_.now};
    forget(made.id());
    return true;
  }
  bool perform(const for_claim::Failed& failed) {
    scene_.memory.retry = {.number = failed.operation->attempt,
                           .hold_until = scene_.now + seconds(2),
                           .seen = scene_.settings()};
    scene_.memory.in_flight = nullptr;
    return false;
  }
  bool perform(const for_claim::Cancel& cancel) {
    if (Recorded* const record = find(*cancel.operation)) {
      record->progress = {.state = State::kEnding};
    }
    return false;
  }
  bool perform(const for_claim::Withdraw& withdraw) {
    if (is_kept_by_the_claim(withdraw.make)) return rest();
    return perform(for_claim::Cancel{withdraw.make.begun.operation});
  }
  bool perform(const for_claim::Forget& forgotten) {
    Begun mine{.never_published = true};
    for (Begun& begun : scene_.memory.begun) {
      if (begun.operation->id() != forgotten.operation->id()) continue;
      begun.done = true;
      mine = begun;
    }
    for (Begun& begun : scene_.memory.begun) {
      if (forgotten.heir == nullptr || begun.operation->id() != forgotten.heir->id()) continue;
      begun.made = begun.made || (mine.made && mine.never_published);
      begun.never_published = begun.never_published && mine.never_published;
    }
    forget(forgotten.operation->id());
    return false;
  }
  bool perform(const for_claim::TakeBack& back) {
    const Operation made = back.make.operation();
    if (scene_.volume != nullptr && meet(scene_.volume_place(), made)) {
      return perform(for_claim::FinishTakeBack{{back.make.begun.operation}});
    }
    if (is_kept_by_the_claim(back.make)) return rest();
    Operation undo = made;
    undo.kind = Kind::kTakeBack;
    undo.attempt = back.attempt;
    undo.only_if_empty = !may_tear_down(back.make);
    each_begun(made, [](Begun& begun) { begun.given_up = true; });
    return record(std::make_shared<const Operation>(std::move(undo)));
  }
  bool perform(const for_claim::FinishTakeBack& finish) {
    const Operation place = *finish.done.operation;
    each_begun(place, [](Begun& begun) { begun.done = true; });
    scene_.memory.take_back.erase(place_key(place));
    std::erase_if(records_, [&](const Recorded& one) {
      return one.progress.over() && is_one_directory(*one.operation, place);
    });
    return false;
  }
  bool perform(const for_claim::TakeBackFailed& failed) {
    const Operation& operation = *failed.failed.operation;
    scene_.memory.take_back[place_key(operation)] = {.number = operation.attempt,
                                                     .hold_until = scene_.now + seconds(2)};
    return false;
  }
  bool perform(const for_claim::TakeBackStuck& stuck) {
    find(*stuck.operation)->progress.message.clear();
    return false;
  }
  bool perform(const for_claim::CheckNode& /*check*/) { return rest(); }
  bool perform(const for_claim::CheckPublished& /*check*/) {
    if (scene_.volume == nullptr) scene_.memory.published.reset();
    return scene_.claim != nullptr;
  }
  bool perform(const for_claim::OtherVolume& /*other*/) { return rest(); }
  bool perform(const for_claim::Refuse& /*refuse*/) { return rest(); }
  bool perform(const for_claim::Bind& /*bind*/) {
    claim_is(scenes_.bound_claim());
    is_bound_ = true;
    written_.push_back(scene_.volume_place());
    return true;
  }
  bool perform(const for_claim::LeaveUnbound& /*left*/) {
    scene_.memory.binding.left = true;
    return false;
  }

  /// It is an administrator's turn, once nothing changes by itself any more.
  bool rest() {
    rests_ = std::all_of(records_.begin(), records_.end(), [](const Recorded& one) {
      return one.progress.over() || one.progress.state == State::kLate;
    });
    return true;
  }

  /// The claim is bound to a volume that is lost: nothing of it is touched.
  bool is_kept_by_the_claim(const Make& make) const {
    return scene_.claim != nullptr && scene_.claim->volume_name == scene_.volume_name &&
           scene_.volume == nullptr && !make.begun.given_up;
  }

  // What is on record.

  Recorded* find(const Operation& operation) {
    const auto it = std::find_if(records_.begin(), records_.end(), [&](const Recorded& one) {
      return one.operation->id() == operation.id();
    });
    return it == records_.end() ? nullptr : &*it;
  }
  bool record(std::shared_ptr<const Operation> operation) {
    if (find(*operation) != nullptr) broken_ = "two operations have one number";
    records_.push_back({std::move(operation), {}});
    return true;
  }
  void forget(const operation::Id& id) {
    std::erase_if(records_, [&](const Recorded& one) { return one.operation->id() == id; });
  }
  template <typename Change>
  void each_begun(const Operation& place, const Change& change) {
    for (Begun& begun : scene_.memory.begun) {
      if (is_one_directory(*begun.operation, place)) change(begun);
    }
  }

  bool is_written(const Operation& place) const {
    return std::any_of(written_.begin(), written_.end(),
                       [&](const Operation& written) { return meet(written, place); });
  }
  bool is_data_at_risk(const Operation& operation) const {
    return operation.kind == Kind::kTakeBack && !operation.only_if_empty && is_written(operation);
  }

  // What happens meanwhile.

  void work() {
    scene_.now += wait_;
    scene_.memory.rescheduled_from.clear();  // the cache has shown it by now
    if (scene_.claim != nullptr && dice_.one_in(2)) {
      if (scene_.claim->meta.deleting()) {
        claim_is(scenes_.no_claim());
      } else if (scene_.volume_is_of_the_claim && !is_bound_) {
        claim_is(scenes_.bound_claim());
        is_bound_ = true;
        written_.push_back(scene_.volume_place());
      }
    }
    std::vector<Recorded> left;
    for (Recorded& one : records_) {
      if (testing::may_act(one.progress) && is_data_at_risk(*one.operation)) {
        broken_ = "a teardown is at work where a tenant may have written: " +
                  testing::text(*one.operation);
      }
      if (!go_on(one)) left.push_back(std::move(one));
    }
    records_ = std::move(left);
  }

  /// True when the record is gone.
  bool go_on(Recorded& one) {
    Progress& progress = one.progress;
    if (progress.over() || dice_.one_in(3)) return false;
    if (progress.state == State::kEnding) return true;
    if (progress.state == State::kLate && !dice_.one_in(8)) return false;
    if (progress.state == State::kWaiting && dice_.one_in(2)) {
      progress = {.state = State::kRunning};
      return false;
    }
    const bool has_run = progress.state != State::kWaiting;
    constexpr std::array kEnds{State::kSucceeded, State::kSucceeded, State::kFailed, State::kLate};
    progress = {.state = dice_.of(kEnds)};
    progress.unfit = progress.state == State::kFailed && dice_.one_in(4);
    if (progress.unfit && !has_run) progress.directory = Directory::kAbsent;
    if (!dice_.one_in(4)) progress.kept = {.size = true, .reserve = true, .overcommit = true};
    if (progress.state == State::kSucceeded && !is_written(*one.operation) && dice_.one_in(2)) {
      progress.directory = Directory::kMade;
    }
    return false;
  }

  void change_something() {
    switch (dice_.below(4)) {
      case 0:  // once it is bound it stays so
        return claim_is(is_bound_ ? scenes_.no_claim() : scenes_.some_claim(dice_));
      case 1:
        story_ += " | the volume's object is gone |";
        scene_.volume = nullptr;
        scene_.volume_is_of_the_claim = false;
        return;
      case 2:
        story_ += " | a record is gone |";
        if (!records_.empty()) forget(records_[dice_.below(records_.size())].operation->id());
        return;
      default: story_ += " | another process |"; scene_.memory = {};
    }
  }

  void claim_is(const testing::SeenClaim& seen) {
    story_ += seen.claim == nullptr ? " | the claim is gone |" : " | the claim changes |";
    scenes_.claim_is(scene_, seen);
  }

  const testing::ClaimScenes& scenes_;
  Dice dice_;
  testing::RandomClaimScene scene_;
  std::vector<Recorded> records_{};
  std::vector<Operation> written_{};  // where a volume has been, so that a tenant may have written
  bool is_bound_ = false;
  bool rests_ = false;
  Duration wait_{};
  std::string broken_{};
  std::string story_{};
};

}  // namespace

TEST_CASE("whatever happens to a claim, each step ends, it comes to rest, and data stays") {
  const testing::ClaimScenes scenes;
  const std::uint64_t count = testing::scene_count() / 10;
  for (std::uint64_t number = 0; number < count; ++number) {
    Model model(scenes, Dice(number));
    model.run();
    if (model.broken().empty()) continue;
    FAIL("broken: " << model.broken() << "\nscene " << number << ":" << model.story());
  }
}

}  // namespace lpp::provisioner::claim_model
