// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"

namespace lpp {

/// What a Histogram held at one moment. `counts` has one entry more than `bounds`: what is above
/// the last bound.
struct HistogramSnapshot {
  std::span<const double> bounds{};
  std::vector<std::uint64_t> counts{};
  double sum_seconds = 0;
};

/// Durations counted by upper bounds (inclusive, in seconds). Thread-safe without locks; a snapshot
/// taken while others observe may miss what is just being counted.
class Histogram {
 public:
  /// The bounds ascend and are static.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(Duration duration) {
    const double seconds = std::chrono::duration<double>(duration).count();
    std::size_t i = 0;
    while (i < bounds_.size() && seconds > bounds_[i]) ++i;
    counts_[i].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(duration.count(), std::memory_order_relaxed);
  }

  HistogramSnapshot snapshot() const {
    HistogramSnapshot out{.bounds = bounds_};
    out.counts.reserve(counts_.size());
    for (const auto& count : counts_) out.counts.push_back(count.load(std::memory_order_relaxed));
    out.sum_seconds =
        std::chrono::duration<double>(Duration(sum_.load(std::memory_order_relaxed))).count();
    return out;
  }

 private:
  const std::span<const double> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<Duration::rep> sum_ = 0;
};

}  // namespace lpp
