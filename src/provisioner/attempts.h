#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/sync.h"
#include "helperpod/operation.h"
#include "k8s/work_queue.h"

namespace lpp::provisioner {

/// What this process remembers of a volume's attempts. Losing it costs a repeated Event and a
/// shorter wait, never correctness: the helper pod is the durable record.
struct Attempt {
  int number = 0;          // last one that failed
  TimePoint hold_until{};  // not again before this, unless `seen` no longer holds
  std::string seen{};      // what the decision depended on
  std::string reported{};  // last message put into an Event, and when
  TimePoint reported_at{};
  int in_flight = 0;                       // attempt whose helper pod we have seen; 0 = none
  int reschedules = 0;                     // how often the selected node was taken off the claim
  TimePoint reschedule_at{};               // not again before this
  std::optional<TimePoint> volume_made{};  // PV created, maybe not in the cache yet
  TimePoint removal_seen_by{};             // PV removed; the cache should show it by then
  std::shared_ptr<const helperpod::Operation> made_by{};  // with volume_made
  std::shared_ptr<const helperpod::Operation> begun{};    // of an undo: see Undo::remember()
};

/// Attempts by volume name. Thread-safe.
class Attempts {
 public:
  Attempts(Clock& clock, k8s::BackoffPolicy policy, int retry_count)
      : clock_(clock), policy_(policy), retry_count_(retry_count) {}

  Attempt get(std::string_view volume_name) const;
  void set(std::string_view volume_name, Attempt attempt);
  void erase(std::string_view volume_name);
  std::size_t size() const;

  /// What made another volume where this operation's directory would be, if the cache may not show
  /// that volume yet; nullptr = nothing.
  std::shared_ptr<const helperpod::Operation> made_there(
      const helperpod::Operation& operation) const;

  /// How long to wait after attempt `number` failed: exponential, and once the retry count is used
  /// up (0 = never) until the next resync.
  Duration wait_after(int number) const;
  /// The time left of a hold that still applies, or nothing.
  std::optional<Duration> held(const Attempt& attempt, std::string_view seen) const;

  /// True when the message is worth an Event: another one than the last for this volume, or the
  /// last is long ago. Notes it as said.
  bool worth_saying(std::string_view volume_name, std::string_view message);

  /// Whatever is given up for now is looked at again after this.
  static constexpr std::chrono::minutes kResync{15};

 private:
  Clock& clock_;
  const k8s::BackoffPolicy policy_;
  const int retry_count_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, Attempt> attempts_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::provisioner
