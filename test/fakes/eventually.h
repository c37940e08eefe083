// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace lpp::testing {

/// Waits (in real time) for a condition that other threads bring about; false when it did not come.
/// Patient, for a machine that is busy: one fsync may take seconds there.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds limit = std::chrono::seconds(60),
                       std::chrono::milliseconds pace = std::chrono::milliseconds(1)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return condition();
    std::this_thread::sleep_for(pace);
  }
  return true;
}

}  // namespace lpp::testing
