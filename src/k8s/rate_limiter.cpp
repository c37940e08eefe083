// SPDX-License-Identifier: Apache-2.0
#include "k8s/rate_limiter.h"

#include <algorithm>

namespace lpp::k8s {

namespace {
// Slower than one call in a thousand seconds is a mistake, and would overflow the arithmetic below.
constexpr double kSlowest = 0.001;
// What is due now is there now.
constexpr double kRounding = 1e-9;
}  // namespace

RateLimiter::RateLimiter(Clock& clock, double qps, int burst)
    : clock_(clock),
      qps_(std::max(qps, kSlowest)),
      burst_(std::max(burst, 1)),
      tokens_(burst_),
      updated_(clock.now()) {}

bool RateLimiter::acquire(TimePoint deadline, const std::stop_token& stop, std::string_view ns) {
  if (stop.stop_requested()) return false;
  // Before the lock: a stop that comes right now runs it on this thread.
  const std::stop_callback on_stop(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  MutexLock lock(mutex_);
  auto line = lines_.find(ns);
  if (line == lines_.end()) {
    line = lines_.emplace(std::string(ns), Line{.turn = ++last_turn_}).first;
  }
  Line& own = line->second;
  const auto mine = own.waiting.insert(own.waiting.end(), ++last_turn_);
  bool served = false;
  while (!stop.stop_requested()) {
    const TimePoint now = clock_.now();
    refill(now);
    // Each that waits has a due time of its own, so that none has to wake another.
    const double needed = static_cast<double>(ahead_of(own, mine)) + 1;
    served = tokens_ >= needed - kRounding;
    if (served) break;
    const std::chrono::duration<double> wait((needed - tokens_) / qps_);
    const TimePoint due = now + std::chrono::ceil<Duration>(wait);
    if (due > deadline) break;
    clock_.wait_until(changed_, mutex_, due);
  }
  own.waiting.erase(mine);
  if (served) {
    tokens_ = std::max(0.0, tokens_ - 1);
    own.turn = ++last_turn_;
  }
  if (own.waiting.empty()) lines_.erase(line);
  if (!served) changed_.notify_all();  // those behind it come sooner
  return served;
}

std::size_t RateLimiter::waiting() const {
  MutexLock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [ns, line] : lines_) count += line.waiting.size();
  return count;
}

void RateLimiter::refill(TimePoint now) {
  const double elapsed = std::chrono::duration<double>(now - updated_).count();
  tokens_ = std::min(burst_, tokens_ + elapsed * qps_);
  updated_ = now;
}

std::size_t RateLimiter::ahead_of(const Line& own, std::list<Ticket>::const_iterator mine) const {
  const auto round = static_cast<std::size_t>(std::distance(own.waiting.begin(), mine));
  std::size_t ahead = round;
  for (const auto& [ns, other] : lines_) {
    if (&other == &own) continue;
    ahead += std::min(other.waiting.size(), round);
    if (other.waiting.size() > round && other.turn < own.turn) ++ahead;
  }
  return ahead;
}

}  // namespace lpp::k8s
