// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/sync.h"

namespace lpp {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// Time, injected everywhere so that tests do not wait. Thread-safe.
/// Deadlines use now() (monotonic, not the steady_clock); wall_now() only fills API time fields.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;
  virtual std::chrono::system_clock::time_point wall_now() const = 0;

  /// Waits on cv until notified, spuriously woken, or now() >= deadline. mutex must be held.
  virtual void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) LPP_REQUIRES(mutex) = 0;

  /// Sleeps until the deadline; false if the stop token was triggered first.
  bool sleep_until(TimePoint deadline, const std::stop_token& stop);
  bool sleep_for(Duration duration, const std::stop_token& stop) {
    return sleep_until(now() + duration, stop);
  }
};

/// The machine's clocks; now() also counts suspension, as others' leases do. Stateless.
class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
  std::chrono::system_clock::time_point wall_now() const override;
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex);
};

/// RFC 3339 in UTC: "2026-11-20T09:15:16Z" and, for Lease, with microseconds.
std::string format_rfc3339(std::chrono::system_clock::time_point time);
std::string format_rfc3339_micro(std::chrono::system_clock::time_point time);

}  // namespace lpp
