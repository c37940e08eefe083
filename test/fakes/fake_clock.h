// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "fakes/told_clock.h"

namespace lpp::testing {

/// A clock that only moves when told to. Thread-safe. advance() wakes whoever waits on it.
class FakeClock final : public ToldClock {
 public:
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex) {
    {
      MutexLock lock(mutex_);
      if (now_ >= deadline) return;
      waiters_.push_back(&cv);
    }
    // A short real limit: an advance() between the registration and the wait is then only late.
    cv.wait_until(mutex, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
    MutexLock lock(mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &cv));
  }

  /// Moves the time forward and wakes all waiters.
  void advance(Duration by) {
    MutexLock lock(mutex_);
    now_ += by;
    for (CondVar* waiter : waiters_) waiter->notify_all();
  }

 private:
  std::vector<CondVar*> waiters_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::testing
