#pragma once

#include <stop_token>

#include "app/options.h"

namespace lpp::app {

/// The daemon: owns every part, starts them in order and stops them in the reverse order.
/// run() returns the process's exit code: 0 after a stop that was asked for, 1 when the start
/// failed.
class App {
 public:
  /// Sets up the process's log, before any thread may write to it.
  explicit App(Options options);
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
};

}  // namespace lpp::app
