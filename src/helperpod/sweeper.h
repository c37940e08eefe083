// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "base/clock.h"

namespace lpp::helperpod {

class HelperPodRunner;

/// Removes the helper pods of operations that are over, from its own thread, when nothing else is
/// to be done: in a burst of claims each removal would keep the API server from a volume that
/// somebody waits for. After kLate they go in any case, one after the other.
/// start() and stop() come from one thread at a time.
class Sweeper {
 public:
  static constexpr std::chrono::seconds kLate{10};

  /// `is_quiet` says whether nothing else is to be done. It is called from the thread, and must be
  /// safe until stop() returns.
  Sweeper(Clock& clock, HelperPodRunner& runner, std::function<bool()> is_quiet);
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  /// At most once.
  void start();
  /// Removes what is left, for at most `limit` and as long as that works. Idempotent.
  void stop(Duration limit);

 private:
  void run(const std::stop_token& stop);
  Clock& clock_;
  HelperPodRunner& runner_;
  const std::function<bool()> is_quiet_;
  std::jthread thread_;
};

}  // namespace lpp::helperpod
