// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"

namespace lpp::testing {

/// A clock that only moves when told to. Thread-safe. advance() wakes whoever waits on it.
class FakeClock final : public Clock {
 public:
  TimePoint now() const override {
    MutexLock lock(mutex_);
    return now_;
  }
  std::chrono::system_clock::time_point wall_now() const override {
    MutexLock lock(mutex_);
    return wall_start_ +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(now_.time_since_epoch());
  }

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
  mutable Mutex mutex_;
  TimePoint now_ LPP_GUARDED_BY(mutex_){std::chrono::hours(1)};
  const std::chrono::system_clock::time_point wall_start_{std::chrono::seconds(1'780'000'000)};
  std::vector<CondVar*> waiters_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::testing
