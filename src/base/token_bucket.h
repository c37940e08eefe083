// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace lpp {

/// A token bucket: full at first, `per_second` tokens more each second, at most `burst`. Time is
/// passed in and must not go back. Not thread-safe.
class TokenBucket {
 public:
  TokenBucket(double burst, double per_second) : burst_(burst), per_second_(per_second) {}

  bool take(TimePoint now) {
    tokens_ = tokens(now);
    updated_ = now;
    if (tokens_ < kOne) return false;
    tokens_ = std::max(0.0, tokens_ - 1);
    return true;
  }
  bool has(TimePoint now) const { return tokens(now) >= kOne; }
  bool full(TimePoint now) const { return tokens(now) >= burst_; }
  /// When there will be one, if none is taken; not after now if there is one already.
  TimePoint next() const {
    if (!updated_) return TimePoint::min();
    const std::chrono::duration<double> missing((1 - tokens_) / per_second_);
    return *updated_ + std::chrono::ceil<Duration>(missing);
  }

 private:
  static constexpr double kOne = 1 - 1e-9;  // what is due at next() is there then

  double tokens(TimePoint now) const {
    if (!updated_) return burst_;
    const std::chrono::duration<double> passed = now - *updated_;
    return std::min(burst_, tokens_ + passed.count() * per_second_);
  }

  double burst_;
  double per_second_;
  double tokens_ = 0;
  std::optional<TimePoint> updated_{};
};

}  // namespace lpp
