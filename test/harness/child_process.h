// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sync.h"

namespace lpp::testing {

struct ChildOptions {
  std::string program{};  // a path; PATH is not searched
  std::vector<std::string> args{};
  std::map<std::string, std::string> env{};  // besides PATH, HOME and the sanitizers' options
  std::string log_file{};                    // gets standard output and error, appended
};

/// How a process ended: exactly one of the two is meaningful.
struct ChildExit {
  int code = 0;
  int signal = 0;  // 0 = it exited by itself
  bool operator==(const ChildExit&) const = default;
  std::string to_string() const;
};

/// A child process held by a pidfd: never confused with another one, never left behind. Killed when
/// the object goes, and by the kernel when the thread that started it ends, so start it from a
/// thread that outlives it. All methods are thread-safe.
class ChildProcess {
 public:
  /// kNotFound or kInvalid with the cause when the program cannot be executed.
  static Result<std::unique_ptr<ChildProcess>> start(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool alive();
  void signal(int number) const;
  /// SIGKILL; returns when it is dead.
  void kill();
  /// How it ended; nullopt when it still runs after the time limit.
  std::optional<ChildExit> wait(std::chrono::milliseconds limit);

 private:
  ChildProcess(pid_t pid, int pidfd) : pid_(pid), pidfd_(pidfd) {}

  const pid_t pid_;
  const int pidfd_;
  Mutex mutex_;
  std::optional<ChildExit> exit_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::testing
