// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "harness/child_process.h"

namespace lpp::testing {

struct DaemonOptions {
  std::string program{};
  std::vector<std::string> args{};  // after "start"; --health-port is added
  std::map<std::string, std::string> env{};
  std::string log_file{};
};

/// The provisioner daemon as a process of its own, with its health port. Killed when the object
/// goes; the log stays. Start it from a thread that outlives it. Thread-safe.
class DaemonProcess {
 public:
  static Result<std::unique_ptr<DaemonProcess>> start(const DaemonOptions& options);

  bool alive() { return child_->alive(); }
  pid_t pid() const { return child_->pid(); }
  /// The most memory that it ever took (VmHWM); 0 when it is gone.
  int peak_mib() const;
  int health_port() const { return health_port_; }
  const std::string& log_file() const { return log_file_; }

  /// Waits until /ready answers 200. The error says how the daemon ended, or what it answered last,
  /// with the end of its log.
  Result<void> wait_ready(std::chrono::milliseconds limit);

  /// SIGKILL; returns when it is dead.
  void kill() { child_->kill(); }

  struct Ending {
    ChildExit exit;
    std::chrono::milliseconds took{};
  };
  /// SIGTERM; kTimeout (and killed) when it does not end in time.
  Result<Ending> terminate(std::chrono::milliseconds limit);
  void signal(int number) { child_->signal(number); }
  std::optional<ChildExit> wait(std::chrono::milliseconds limit) { return child_->wait(limit); }

  /// The last lines of its log, for messages.
  std::string log_tail(std::size_t lines = 30) const;

 private:
  DaemonProcess(std::unique_ptr<ChildProcess> child, int health_port, std::string log_file)
      : child_(std::move(child)), health_port_(health_port), log_file_(std::move(log_file)) {}

  const std::unique_ptr<ChildProcess> child_;
  const int health_port_;
  const std::string log_file_;
};

}  // namespace lpp::testing
