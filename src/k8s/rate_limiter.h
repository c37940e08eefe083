#pragma once

#include <stop_token>

#include "base/clock.h"
#include "base/sync.h"

namespace lpp::k8s {

/// Token bucket: qps tokens a second, at most burst saved. Thread-safe; first come, first served.
class RateLimiter {
 public:
  RateLimiter(Clock& clock, double qps, int burst);

  /// Waits for a token; false when stopped or when it could not be had before the deadline.
  bool acquire(TimePoint deadline, const std::stop_token& stop);

 private:
  Clock& clock_;
  const double qps_;
  const double burst_;
  Mutex mutex_;
  double tokens_ LPP_GUARDED_BY(mutex_);
  TimePoint updated_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::k8s
