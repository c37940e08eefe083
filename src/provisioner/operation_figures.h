// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/by_labels.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/sync.h"
#include "k8s/resource.h"
#include "operation/executor.h"

namespace lpp::provisioner {

/// Where it stands. kStart: recorded, and nothing has been done yet. kWaiting: the last attempt
/// failed and the next one is not due yet.
enum class Step { kQueued, kStart, kScript, kVolume, kWaiting };
/// "queued", "pod_start", "script", "volume" or "waiting": monitoring knows these words.
std::string_view to_string(Step step);

/// The step that an executor's word means.
Step step_of(const operation::Progress& progress);

struct InFlight {
  operation::Kind kind = operation::Kind::kMake;
  std::string volume{};
  k8s::ObjectKey claim{};
  std::string node{};
  int attempt = 0;
  Step step = Step::kQueued;
  Duration age{};       // since this process first saw it
  Duration step_age{};  // since it entered the step
  std::string problem{};
};

/// One attempt, or one refusal to begin, that went wrong.
struct Failure {
  operation::Kind kind = operation::Kind::kMake;
  std::string volume{};
  k8s::ObjectKey claim{};
  std::string node{};
  std::string storage_class{};
  std::string source{};  // kind of the claim's data source
  std::string reason{};  // one CamelCase word, for counting
  std::string message{};
};

struct PastFailure {
  Failure failure{};
  std::chrono::system_clock::time_point at{};
};

/// What the reconcilers are doing and what went wrong: numbers and lists for people and their
/// monitoring. Nothing is decided by it, losing it costs nothing. Bounded: beyond kMaxInFlight, or
/// kMaxOfNamespace of one namespace, operations are counted but not followed. Thread-safe; each
/// call is short.
class OperationFigures {
 public:
  static constexpr std::array<double, 11> kAttemptBounds{.005, .01, .025, .05, .1, .25,
                                                         .5,   1,   2.5,  5,   10};
  static constexpr std::array<double, 14> kStepBounds{.005, .01, .025, .05, .1, .25, .5,
                                                      1,    2.5, 5,    10,  60, 600, 3600};
  static constexpr std::size_t kMaxInFlight = 5000;
  static constexpr std::size_t kMaxOfNamespace = 4000;
  static constexpr std::size_t kMaxFailures = 20;

  /// Counters since the process began; the first six are the provision controller's (rule
  /// A10). Labels in the order of the comments.
  struct Totals {
    ByLabels<Counter, 2> provisioned{100};                           // class, source
    ByLabels<Counter, 2> provision_failed{100};                      // class, source
    ByLabels<Histogram, 2> provision_duration{100, kAttemptBounds};  // class, source
    ByLabels<Counter, 1> deleted{100};                               // class
    ByLabels<Counter, 1> delete_failed{100};                         // class
    ByLabels<Histogram, 1> delete_duration{100, kAttemptBounds};     // class
    ByLabels<Histogram, 2> steps{20, kStepBounds};                   // kind, step
    ByLabels<Counter, 2> failures{100};                              // kind, reason
    ByLabels<Counter, 1> bindings{10};                               // result
    ByLabels<Counter, 2> claims_released{100};                       // class, result
  };

  explicit OperationFigures(Clock& clock) : clock_(clock) {}

  /// An operation has been seen in this step, perhaps again. `kind` is what it is followed for: the
  /// removal of a volume, too, while that waits for a make of it to end. `problem` is why it does
  /// not get on, if known; `since` is when the step began, if that was before now.
  void progressed(operation::Kind kind, const operation::Operation& operation, Step step,
                  std::string_view problem = {}, std::optional<TimePoint> since = {});
  /// It has succeeded: the volume is there, or gone. `source` is the kind of the claim's source.
  void succeeded(operation::Kind kind, std::string_view volume, const std::string& storage_class,
                 const std::string& source = {});
  /// It has failed for now; it is tried again.
  void failed(Failure failure);
  /// A claim has been bound by us, or left to the control plane: a word of binding.h.
  void bound(std::string_view result) { ++totals_.bindings.at({std::string(result)}); }
  /// A claim whose node was deleted has been let go, or could not be: a word of node_lost.h.
  void claim_released(const std::string& storage_class, std::string_view result) {
    ++totals_.claims_released.at({storage_class, std::string(result)});
  }
  /// Nothing more is to be done for this volume.
  void forget(operation::Kind kind, std::string_view volume);
  /// Nothing more is done by this process: it does not lead any more.
  void forget_all();

  /// What is in flight, the oldest first, at most `limit`.
  std::vector<InFlight> in_flight(std::size_t limit) const;
  struct Load {
    std::size_t count = 0;
    std::size_t waiting = 0;  // of them in kWaiting
    Duration oldest{};
  };
  std::map<operation::Kind, Load> load() const;
  /// The newest first.
  std::vector<PastFailure> recent_failures() const;
  const Totals& totals() const { return totals_; }

 private:
  struct Known {
    k8s::ObjectKey claim{};
    std::string node{};
    int attempt = 0;
    Step step = Step::kQueued;
    TimePoint began{};
    TimePoint attempt_began{};
    TimePoint step_began{};
    // We came in the middle of it, after a restart: how long that took is not known.
    bool attempt_cut = false;
    bool step_cut = false;
    std::string problem{};
  };
  struct Key {
    operation::Kind kind = operation::Kind::kMake;
    std::string volume{};
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::string>()(key.volume) + static_cast<std::size_t>(key.kind);
    }
  };

  using AllKnown = std::unordered_map<Key, Known, KeyHash>;

  void count_step(operation::Kind kind, const Known& known, TimePoint now);
  bool has_room(const std::string& ns) const LPP_REQUIRES(mutex_);
  AllKnown::iterator follow(Key key, const Known& known) LPP_REQUIRES(mutex_);
  void forget(AllKnown::iterator it) LPP_REQUIRES(mutex_);
  void leave_namespace(const Known& known) LPP_REQUIRES(mutex_);
  /// Drops one of the namespace that has most, the oldest of them.
  void drop_failure() LPP_REQUIRES(mutex_);

  Clock& clock_;
  Totals totals_;
  mutable Mutex mutex_;
  AllKnown known_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::size_t> of_namespace_ LPP_GUARDED_BY(mutex_);
  std::deque<PastFailure> failures_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::provisioner
