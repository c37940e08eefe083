// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/sync.h"

namespace lpp::helperpod {

/// UIDs of helper pods that may be removed later, in the order they came. Some may be gone
/// meanwhile. Thread-safe.
class SettledPods {
 public:
  /// So many at most.
  static constexpr std::size_t kMax = 500;

  /// False when there is no room.
  bool add(std::string uid, TimePoint now);
  /// Waits until there are some; since when the oldest has been here, or nothing when stopped.
  std::optional<TimePoint> wait(const std::stop_token& stop) const;
  /// Takes the oldest out.
  std::optional<std::string> take();
  std::size_t size() const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::deque<std::pair<TimePoint, std::string>> pods_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::helperpod
