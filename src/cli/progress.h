// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/sync.h"
#include "cli/context.h"

namespace lpp::cli {

/// Says on a terminal what a command waits for, once that takes longer than a second; the line goes
/// with the object, and with a signal that ends the process. Does nothing without a terminal. One
/// thread calls it, and there is one object at a time.
class Progress {
 public:
  Progress(Context& context, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What it waits for now.
  void now(std::string what);

 private:
  void run(const std::stop_token& stop);

  Context& context_;
  Mutex mutex_;
  std::string what_ LPP_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace lpp::cli
