// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/sync.h"
#include "base/token_bucket.h"

namespace lpp {

/// How many lines each namespace may still write. Bounded: namespaces beyond the 1,000 that have
/// written lately share one pace. Thread-safe.
class LinePace {
 public:
  LinePace(double burst, double per_second) : burst_(burst), per_second_(per_second) {}

  struct Verdict {
    bool pass = false;
    std::uint64_t left_out = 0;  // of its lines before this one, if this one passes
  };
  Verdict ask(std::string_view ns, TimePoint now) {
    MutexLock lock(mutex_);
    auto it = paces_.find(ns);
    if (it == paces_.end()) {
      if (paces_.size() >= kMost) {
        std::erase_if(paces_, [&](const auto& entry) { return entry.second.bucket.full(now); });
      }
      const std::string_view name = paces_.size() < kMost ? ns : std::string_view();
      it = paces_.try_emplace(std::string(name), Pace{TokenBucket(burst_, per_second_)}).first;
    }
    Pace& pace = it->second;
    if (!pace.bucket.take(now)) {
      ++pace.left_out;
      return {};
    }
    return {.pass = true, .left_out = std::exchange(pace.left_out, 0)};
  }

 private:
  static constexpr std::size_t kMost = 1000;
  struct Pace {
    TokenBucket bucket;
    std::uint64_t left_out = 0;
  };

  const double burst_;
  const double per_second_;
  Mutex mutex_;
  std::map<std::string, Pace, std::less<>> paces_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp
