// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace lpp::testing {

/// A clock for tests on one thread: whoever waits for a time has it at once. Waits without an end
/// really wait. Thread-safe.
class SkippingClock final : public Clock {
 public:
  TimePoint now() const override {
    MutexLock lock(mutex_);
    return now_;
  }
  std::chrono::system_clock::time_point wall_now() const override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'780'000'000)) +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(
               now().time_since_epoch());
  }
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex) {
    if (deadline != TimePoint::max()) {
      MutexLock lock(mutex_);
      now_ = std::max(now_, deadline);
      return;
    }
    cv.wait_until(mutex, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
  }
  void advance(Duration by) {
    MutexLock lock(mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  TimePoint now_ LPP_GUARDED_BY(mutex_){std::chrono::hours(1)};
};

}  // namespace lpp::testing
