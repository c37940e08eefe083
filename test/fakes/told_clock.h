// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

namespace lpp::testing {

/// What clocks of tests share: a time that is what they say, and that of the wall beside it.
/// Thread-safe.
class ToldClock : public Clock {
 public:
  TimePoint now() const final {
    MutexLock lock(mutex_);
    return now_;
  }
  std::chrono::system_clock::time_point wall_now() const final {
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'780'000'000)) +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(
               now().time_since_epoch());
  }

 protected:
  mutable Mutex mutex_;
  TimePoint now_ LPP_GUARDED_BY(mutex_){std::chrono::hours(1)};
};

}  // namespace lpp::testing
