// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/sync.h"

namespace lpp::k8s {

/// Token bucket: qps tokens a second, at most burst saved. Among those that wait namespaces take
/// turns; within one it is first come, first served. Thread-safe.
class RateLimiter {
 public:
  RateLimiter(Clock& clock, double qps, int burst);

  /// Waits for a token on behalf of that namespace ("" = of nobody in particular, which counts as
  /// one). False when stopped, or when as things stand it cannot be had before the deadline.
  bool acquire(TimePoint deadline, const std::stop_token& stop, std::string_view ns = {});

  /// How many wait now.
  std::size_t waiting() const;

 private:
  using Ticket = std::uint64_t;
  /// Of a namespace.
  struct Line {
    std::list<Ticket> waiting{};
    std::uint64_t turn = 0;  // when it came, or was served last
  };
  using Lines = std::map<std::string, Line, std::less<>>;

  void refill(TimePoint now) LPP_REQUIRES(mutex_);
  /// How many get a token before that one.
  std::size_t ahead_of(const Line& own, std::list<Ticket>::const_iterator mine) const
      LPP_REQUIRES(mutex_);

  Clock& clock_;
  const double qps_;
  const double burst_;
  mutable Mutex mutex_;
  CondVar changed_;  // somebody has left, or is to stop
  double tokens_ LPP_GUARDED_BY(mutex_);
  TimePoint updated_ LPP_GUARDED_BY(mutex_);
  std::uint64_t last_turn_ LPP_GUARDED_BY(mutex_) = 0;
  Lines lines_ LPP_GUARDED_BY(mutex_);  // none of them empty
};

}  // namespace lpp::k8s
