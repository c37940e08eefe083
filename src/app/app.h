// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "app/options.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/published.h"
#include "operation/executor.h"
#include "operation/path_ledger.h"

namespace lpp::app {

/// What an executor other than the helper pods' may need of the daemon; outlives it.
struct ExecutorParts {
  Clock& clock;
  operation::PathLedger& ledger;
  const config::Published<config::Config>& config;
};
using MakeExecutor = std::function<std::unique_ptr<operation::Executor>(const ExecutorParts&)>;

/// The daemon: owns every part, starts them in order and stops them in the reverse order.
/// run() returns the process's exit code: 0 after a stop that was asked for, 1 when the start
/// failed.
class App {
 public:
  /// Sets up the process's log, before any thread may write to it. Without `make_executor`
  /// operations are done by helper pods.
  explicit App(Options options, MakeExecutor make_executor = {});
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Starts everything, works until the stop token is triggered, and shuts down within 12 s.
  int run(const std::stop_token& stop);

  /// Switches between what --log-level says and debug (or, if that is debug, info).
  void toggle_debug_log() const;

 private:
  class Impl;
  const Options options_;
  const MakeExecutor make_executor_;
};

/// Runs the daemon until a signal ends it or it ends by itself; returns its exit code. For main(),
/// after block_signals().
int run_until_signal(App& app);

}  // namespace lpp::app
