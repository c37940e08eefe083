#include "k8s/rate_limiter.h"

#include <algorithm>

namespace lpp::k8s {

namespace {
// Slower than one call in a thousand seconds is a mistake, and would overflow the arithmetic below.
constexpr double kSlowest = 0.001;
}  // namespace

RateLimiter::RateLimiter(Clock& clock, double qps, int burst)
    : clock_(clock),
      qps_(std::max(qps, kSlowest)),
      burst_(std::max(burst, 1)),
      tokens_(burst_),
      updated_(clock.now()) {}

bool RateLimiter::acquire(TimePoint deadline, const std::stop_token& stop) {
  if (stop.stop_requested()) return false;
  TimePoint due;
  {
    MutexLock lock(mutex_);
    const TimePoint now = clock_.now();
    const double elapsed = std::chrono::duration<double>(now - updated_).count();
    tokens_ = std::min(burst_, tokens_ + elapsed * qps_);
    updated_ = now;
    if (tokens_ >= 1) {
      tokens_ -= 1;
      return true;
    }
    // The token is taken now, though it comes into being later: the balance becomes negative and
    // whoever asks next waits longer.
    const std::chrono::duration<double> wait((1 - tokens_) / qps_);
    due = now + std::chrono::duration_cast<Duration>(wait);
    if (due > deadline) return false;
    tokens_ -= 1;
  }
  if (clock_.sleep_until(due, stop)) return true;
  MutexLock lock(mutex_);
  tokens_ += 1;  // not used after all
  return false;
}

}  // namespace lpp::k8s
