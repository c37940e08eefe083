// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "fakes/builders.h"
#include "provisioner/claim_decision.h"
#include "provisioner/names.h"
#include "provisioner/volume_decision.h"
#include "provisioner/world.h"
#include "unit/provisioner/decision_names.h"

/// The scenes that the rows of the decision tables begin from. A row changes what it is about.
namespace lpp::testing {

inline constexpr const char* kClaimPath = "/data/pvc-uid-a_default_a";
inline constexpr const char* kVolumePath = "/data/pvc-v_default_a";
/// A pattern's, so that nobody knows whether it was there before.
inline constexpr const char* kUnsafePath = "/data/default/a";

inline std::shared_ptr<const operation::Operation> claim_operation(
    operation::Kind kind, int attempt, const std::string& node = "n1",
    const std::string& path = kClaimPath) {
  operation::Operation operation;
  operation.kind = kind;
  operation.volume_name = "pvc-uid-a";
  operation.claim = {"default", "a"};
  operation.owner_uid = "uid-a";
  operation.attempt = attempt;
  operation.node = node;
  operation.base_path = "/data";
  operation.path = path;
  return std::make_shared<const operation::Operation>(std::move(operation));
}

/// The same operation, but for what `change` does.
template <typename Change>
void change(std::shared_ptr<const operation::Operation>& operation, const Change& change) {
  operation::Operation changed = *operation;
  change(changed);
  operation = std::make_shared<const operation::Operation>(std::move(changed));
}

/// A claim that waits for its volume on n1; nothing has been begun.
struct ClaimRow : provisioner::ClaimScene {
  ClaimRow() {
    now = TimePoint(std::chrono::hours(1));
    names = kProvisionerName;
    volume_name = "pvc-uid-a";
    storage_class = testing::storage_class().shared();
    config::Config paths;
    paths.paths.node_path_map = {{"n1", {"/data"}}, {"n2", {"/data"}}};
    config = std::make_shared<const config::Config>(std::move(paths));
    claim_is(testing::claim("a").node("n1"), "n1");
  }

  void claim_is(const ClaimBuilder& seen, const std::string& selected) {
    claim = seen.shared();
    node_name = selected;
    node = selected.empty() ? nullptr : testing::node(selected).shared();
  }
  void claim_is_gone() {
    claim = nullptr;
    node = nullptr;
    node_name.clear();
  }
  void claim_moved_to_n2() { claim_is(testing::claim("a").node("n2"), "n2"); }
  void volume_is_there(const std::string& path = kClaimPath) {
    volume = testing::volume("pvc-uid-a").host_path(path).claim("default", "a").shared();
  }
  void volume_is_anothers() {
    volume = testing::volume("pvc-uid-a").claim("default", "a", "another-uid").shared();
  }

  /// A make whose record is gone but which this process remembers.
  provisioner::Make& remembered(int attempt = 1, const std::string& on = "n1") {
    auto operation = claim_operation(operation::Kind::kMake, attempt, on);
    return makes.emplace_back(
        provisioner::Make{.begun = {.operation = std::move(operation), .never_published = true}});
  }
  provisioner::Make& make(std::optional<State> state, int attempt = 1,
                          const std::string& on = "n1") {
    auto& made = remembered(attempt, on);
    if (state) made.progress = operation::Progress{.state = *state};
    return made;
  }
  /// Of a directory that goes if it is empty.
  provisioner::TakingBack& take_back(State state, int attempt = 1) {
    auto& one = taking_back.emplace_back(
        provisioner::TakingBack{.operation = claim_operation(operation::Kind::kTakeBack, attempt),
                                .progress = {.state = state}});
    change(one.operation, [](operation::Operation& what) { what.only_if_empty = true; });
    return one;
  }
  operation::Recorded& removal(State state, int attempt = 1, const std::string& path = kClaimPath) {
    return removals.emplace_back(operation::Recorded{
        .operation = claim_operation(operation::Kind::kRemove, attempt, "n1", path),
        .progress = {.state = state}});
  }
  void make_has_failed(int number, Duration held_for) {
    memory.retry = {.number = number, .hold_until = now + held_for, .seen = settings()};
    memory.begun_on = "n1";
  }
  void take_back_has_failed(int number, Duration held_for) {
    memory.take_back["n1:" + std::string(kClaimPath)] = {.number = number,
                                                         .hold_until = now + held_for};
  }

  provisioner::ClaimDecision next() const { return decide(*this); }
  template <typename Alternative>
  Alternative next_is() const {
    return the<Alternative>(next());
  }
};

/// A volume whose claim is gone, or still there.
inline VolumeBuilder bound_volume() {
  return volume("v")
      .host_path(kVolumePath)
      .claim("default", "a")
      .finalizer(std::string(provisioner::kFinalizer));
}
inline VolumeBuilder released_volume() { return bound_volume().released(); }

inline std::shared_ptr<const operation::Operation> volume_operation(
    operation::Kind kind, int attempt, const std::string& owner_uid = "uid-v",
    const std::string& path = kVolumePath, const std::string& node = "n1") {
  operation::Operation operation;
  operation.kind = kind;
  operation.volume_name = "v";
  operation.owner_uid = owner_uid;
  operation.attempt = attempt;
  operation.node = node;
  operation.base_path = "/data";
  operation.path = path;
  return std::make_shared<const operation::Operation>(std::move(operation));
}

/// A released volume of n1 whose directory is to be removed; nothing is on record.
struct VolumeRow : provisioner::VolumeScene {
  VolumeRow() {
    now = TimePoint(std::chrono::hours(1));
    names = kProvisionerName;
    name = "v";
    config::Config paths;
    paths.paths.node_path_map["n1"] = {"/data"};
    config = std::make_shared<const config::Config>(std::move(paths));
    volume = released_volume().shared();
    is_wanted = true;
    node = {.kind = provisioner::VolumeNode::Kind::kNode, .name = "n1", .description = {}};
  }

  void is_gone() {
    volume = nullptr;
    is_wanted = false;
  }
  void is_kept(const VolumeBuilder& seen) {
    volume = seen.shared();
    is_wanted = false;
  }
  operation::Recorded& removal(State state, int attempt = 1) {
    return removals.emplace_back(
        operation::Recorded{.operation = volume_operation(operation::Kind::kRemove, attempt),
                            .progress = {.state = state}});
  }
  operation::Recorded& removal_of_another(State state, int attempt = 1) {
    auto& other = removal(state, attempt);
    other.operation = volume_operation(operation::Kind::kRemove, attempt, "uid-of-another");
    return other;
  }
  operation::Recorded& make(State state, int attempt = 1) {
    return makes.emplace_back(
        operation::Recorded{.operation = volume_operation(operation::Kind::kMake, attempt),
                            .progress = {.state = state}});
  }
  void has_failed(int number, Duration held_for) {
    memory.retry = {.number = number, .hold_until = now + held_for, .seen = seen()};
  }

  provisioner::VolumeDecision next() const { return decide(*this); }
  template <typename Alternative>
  Alternative next_is() const {
    return the<Alternative>(next());
  }
};

inline constexpr std::array kAllStates{State::kWaiting, State::kRunning, State::kSucceeded,
                                       State::kFailed,  State::kLate,    State::kEnding};
inline constexpr std::array kUnderWay{State::kWaiting, State::kRunning, State::kEnding};
inline constexpr std::array kOver{State::kSucceeded, State::kFailed};
/// Of a make: it is over, or its record is gone.
inline constexpr std::array<std::optional<State>, 3> kEnded{State::kSucceeded, State::kFailed,
                                                            std::nullopt};

/// Nothing is done, and the next look is not far away.
template <typename Decision>
bool is_plain_wait(const Decision& decision) {
  const auto* const wait = std::get_if<0>(&decision);
  return wait != nullptr && wait->at_most && *wait->at_most <= provisioner::kRecheck &&
         !wait->forget;
}

}  // namespace lpp::testing
