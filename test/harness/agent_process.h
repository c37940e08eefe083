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

struct AgentProcessOptions {
  std::string program{};
  std::string controller{};  // URLs, separated by commas
  std::string ca_file{};
  std::string token_file{};
  std::string root = "/";           // where the node's file system is
  std::vector<std::string> args{};  // besides
  std::map<std::string, std::string> env{};
  std::string log_file{};
};

/// A node's agent as a process of its own, with a health port. Killed when the object goes; the log
/// stays. Start it from a thread that outlives it. Thread-safe.
class AgentProcess {
 public:
  static Result<std::unique_ptr<AgentProcess>> start(const AgentProcessOptions& options);

  bool alive() { return child_->alive(); }
  pid_t pid() const { return child_->pid(); }
  int health_port() const { return health_port_; }
  const std::string& log_file() const { return log_file_; }
  /// Memory that it takes now (VmRSS), in KiB; 0 when it is gone.
  int resident_kib() const;

  /// Waits until it has a session. The error says how it ended, or what it answered last, with the
  /// end of its log.
  Result<void> wait_connected(std::chrono::milliseconds limit);

  /// SIGKILL; returns when it is dead.
  void kill() { child_->kill(); }
  void signal(int number) const { child_->signal(number); }
  /// SIGTERM; kTimeout (and killed) when it does not end in time.
  Result<ChildExit> terminate(std::chrono::milliseconds limit);

 private:
  AgentProcess(std::unique_ptr<ChildProcess> child, int health_port, std::string log_file)
      : child_(std::move(child)), health_port_(health_port), log_file_(std::move(log_file)) {}

  const std::unique_ptr<ChildProcess> child_;
  const int health_port_;
  const std::string log_file_;
};

}  // namespace lpp::testing
