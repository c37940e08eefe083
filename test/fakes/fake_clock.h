// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
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
      ++waits_;
    }
    // A short real limit: an advance() between the registration and the wait is then only late.
    cv.wait_until(mutex, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
    MutexLock lock(mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &cv));
  }

  /// Moves the time forward and wakes all waiters. Returns waits() of that moment.
  std::uint64_t advance(Duration by) {
    MutexLock lock(mutex_);
    now_ += by;
    for (CondVar* waiter : waiters_) waiter->notify_all();
    return waits_;
  }

  /// How often somebody has begun to wait for a time to come; who waits on begins anew each 5 ms.
  std::uint64_t waits() const {
    MutexLock lock(mutex_);
    return waits_;
  }

 private:
  std::vector<CondVar*> waiters_ LPP_GUARDED_BY(mutex_);
  std::uint64_t waits_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::testing
