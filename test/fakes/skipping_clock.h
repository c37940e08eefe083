// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "fakes/told_clock.h"

namespace lpp::testing {

/// A clock for tests on one thread: whoever waits for a time has it at once. Waits without an end
/// really wait. Thread-safe.
class SkippingClock final : public ToldClock {
 public:
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
};

}  // namespace lpp::testing
