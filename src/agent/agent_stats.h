// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/by_labels.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/result.h"
#include "operation/operation.h"

// What an agent counts of itself, for its monitoring. Thread-safe.

namespace lpp::agent {

struct WorkStats {
  static constexpr std::array<double, 13> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                  0.25,  1.0,    5.0,   30.0, 120.0, 600.0};
  static constexpr std::array kKinds{operation::Kind::kMake, operation::Kind::kTakeBack,
                                     operation::Kind::kRemove, operation::Kind::kResize};

  /// From the beginning of the work on the disk to its end; by operation and result.
  ByLabels<Histogram, 2> durations{kKinds.size() * 3, kBounds};
  ByLabels<std::atomic<std::int64_t>, 1> running{kKinds.size()};  // by operation
};

struct SessionStats {
  static constexpr std::size_t kMostReasons = 12;

  Counter begun = 0;
  ByLabels<Counter, 1> ended{kMostReasons};   // of those that had begun; by reason
  ByLabels<Counter, 1> failed{kMostReasons};  // attempts that came to none; by reason
  /// Of the session that there is; 1970 = there is none.
  std::atomic<std::chrono::system_clock::time_point> since{};
};

/// What stands at the moment.
struct WorkView {
  std::size_t queued = 0;
  std::size_t on_record = 0;
  std::map<std::string, bool> bases{};  // by path: whether the agent can work there
};

/// The class of what ended a session: "expired", "not_leading", "refused", "busy", "timeout",
/// "unreachable", "protocol", "stopped" or "error".
std::string_view label_of(const Error& why);

}  // namespace lpp::agent
