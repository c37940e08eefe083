// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "fakes/setting.h"
#include "operation/executor.h"
#include "unit/provisioner/decision_names.h"

/// Random scenes for decisions: each has a number by which it comes again.
namespace lpp::testing {

inline constexpr int kAttempts = 5;
inline const TimePoint kSceneTime{std::chrono::hours(1)};

/// SplitMix64: cheap to begin.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 1'000'003) {}

  std::uint64_t below(std::uint64_t count) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return (z ^ (z >> 31U)) % count;
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <typename Many>
  const auto& of(const Many& many) {
    return many[below(many.size())];
  }
  /// 0, 1, … each half as often.
  std::uint64_t few(std::uint64_t most) {
    std::uint64_t count = 0;
    while (count < most && one_in(2)) ++count;
    return count;
  }
  /// Distinct numbers of attempts, in any order.
  std::array<int, kAttempts> attempts() {
    std::array<int, kAttempts> all{1, 2, 3, 4, 5};
    for (std::size_t i = all.size() - 1; i > 0; --i) std::swap(all[i], all[below(i + 1)]);
    return all;
  }
  int number() { return static_cast<int>(below(kAttempts + 1)); }
  operation::Progress progress() {
    static constexpr std::array kStates{State::kWaiting, State::kRunning, State::kSucceeded,
                                        State::kFailed,  State::kLate,    State::kEnding};
    operation::Progress progress{.state = of(kStates)};
    progress.acts_no_more = progress.state == State::kEnding && one_in(2);
    const bool is_open = progress.state == State::kWaiting || progress.state == State::kRunning;
    progress.outdated = is_open && one_in(8);
    progress.unfit = progress.state == State::kFailed && one_in(4);
    if (progress.unfit && one_in(4)) progress.directory = operation::Directory::kAbsent;
    if (one_in(2)) progress.kept = {.size = true, .reserve = one_in(2), .overcommit = one_in(2)};
    if (one_in(8)) progress.message = "something is wrong";
    if (one_in(4)) progress.changes_at = around_now();
    return progress;
  }
  /// Past or to come.
  TimePoint around_now() {
    return kSceneTime + std::chrono::seconds(below(20)) - std::chrono::seconds(10);
  }

 private:
  std::uint64_t state_;
};

/// LPP_RANDOM_SCENES, or enough for each build.
inline std::uint64_t scene_count() {
  return static_cast<std::uint64_t>(setting("LPP_RANDOM_SCENES", 10'000));
}

// What can be judged of operations without the code that decides.

/// Whether something may still be done on the node.
inline bool may_act(const operation::Progress& progress) {
  return !progress.over() && !progress.acts_no_more;
}
/// Whether it may, and nobody has stopped it.
inline bool is_open(const operation::Progress& progress) {
  return !progress.over() && progress.state != State::kEnding;
}
inline bool is_one_node(const operation::Operation& a, const operation::Operation& b) {
  return a.node == b.node || a.node.empty() || b.node.empty() || (a.shared && b.shared);
}
inline bool is_one_directory(const operation::Operation& a, const operation::Operation& b) {
  return is_one_node(a, b) && a.path == b.path;
}
/// One directory is the other, or inside it.
inline bool meet(const operation::Operation& a, const operation::Operation& b) {
  return is_one_node(a, b) &&
         ((a.path + "/").starts_with(b.path + "/") || (b.path + "/").starts_with(a.path + "/"));
}

inline std::string text(const operation::Operation& operation) {
  return std::string(to_string(operation.kind)) + " " + std::to_string(operation.attempt) + " of " +
         operation.owner_uid + " on \"" + operation.node + "\"" +
         (operation.shared ? " shared" : "") + " at " + operation.path;
}
inline std::string text(const operation::Progress& progress) {
  static constexpr std::array kNames{"waiting", "running", "succeeded", "failed", "late", "ending"};
  return std::string(kNames.at(static_cast<std::size_t>(progress.state))) +
         (progress.acts_no_more ? ", only the record" : "") +
         (progress.message.empty() ? "" : ", \"" + progress.message + "\"");
}

/// What holds for every decision, in a sentence.
template <typename Scene, typename Decision>
struct Property {
  const char* sentence;
  bool (*holds)(const Scene&, const Decision&);
};

/// The first broken property ends it: with the scene, which is the same at the next run.
template <typename Scene, typename Decision, typename Properties, typename Build>
void check_properties(const Properties& properties, const Build& build) {
  std::array<std::uint64_t, std::variant_size_v<Decision>> met{};
  std::array<std::string, std::variant_size_v<Decision>> names{};
  for (std::uint64_t number = 0; number < scene_count(); ++number) {
    const Scene scene = build(Dice(number));
    const Decision decision = decide(scene);
    if (met[decision.index()]++ == 0) names[decision.index()] = name_of(decision);
    for (const auto& property : properties) {
      if (property.holds(scene, decision)) continue;
      FAIL("broken: " << std::string(property.sentence) << "\nscene " << number << ", decision "
                      << names[decision.index()] << "\n"
                      << describe(scene));
    }
  }
  // What is never decided is not tested.
  for (std::size_t i = 0; i < met.size(); ++i) {
    CHECK_MESSAGE(met[i] > 0, "of decision " << i << " there is none");
    if (setting("LPP_RANDOM_SCENES")) MESSAGE(names[i] << ": " << met[i]);
  }
}

}  // namespace lpp::testing
