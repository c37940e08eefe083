// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/sync.h"
#include "devcluster/node/sandbox.h"

namespace lpp::devcluster {

/// Output of one container: two files that take turns, so that it never grows beyond the limit.
/// The newest text is kept. One writer; reading is possible at any time.
class BoundedLog {
 public:
  static constexpr std::size_t kLimit = std::size_t{1024} * 1024;

  explicit BoundedLog(std::string path);
  ~BoundedLog();
  BoundedLog(const BoundedLog&) = delete;
  BoundedLog& operator=(const BoundedLog&) = delete;

  void append(std::string_view text);
  /// Everything that is kept of the log at `path`; empty if there is none.
  static std::string read(const std::string& path);

 private:
  const std::string path_;
  int fd_ = -1;
  std::size_t size_ = 0;
};

/// How a container ended.
struct ProcessExit {
  bool started = true;  // false: the program could not be executed; see `message`
  int code = 0;         // as a shell has it: 128 + signal
  int signal = 0;
  std::string message;  // the last output, when it did not start
};

/// Runs sandboxes as child processes and reports their ends. One thread waits for all of them
/// (exit, output, status) however many there are. Thread-safe; start() must be called from
/// threads that live as long as the process host: bubblewrap ends with the thread that made it.
class ProcessHost {
 public:
  using Id = std::uint64_t;
  /// Runs on the host's thread without a lock; must be quick. Not called after stop().
  using ExitHandler = std::function<void(Id id, const ProcessExit& exit)>;

  static Result<std::unique_ptr<ProcessHost>> create(SandboxTools tools, ExitHandler on_exit);
  ~ProcessHost();
  ProcessHost(const ProcessHost&) = delete;
  ProcessHost& operator=(const ProcessHost&) = delete;

  /// Starts the sandbox; its output goes to the BoundedLog at `log_path`. The exit is reported
  /// exactly once, perhaps before this returns: `registered` is called with the id before that.
  Result<Id> start(const SandboxSpec& spec, const std::string& log_path,
                   const std::function<void(Id)>& registered = {});
  /// Sends a signal to the container's first process; unknown or ended ids are ignored.
  void signal(Id id, int signal_number);
  /// Kills everything that runs, waits for it, ends the thread. Repeatable.
  void stop();

  const SandboxTools& tools() const { return tools_; }

 private:
  struct Child;
  ProcessHost(SandboxTools tools, ExitHandler on_exit, int epoll, int wake);

  void run();
  void wake() const;
  void on_ready(std::uint64_t token);
  void deliver(Child& child) LPP_REQUIRES(mutex_);
  void reap(Id id);

  const SandboxTools tools_;
  const ExitHandler on_exit_;
  const int epoll_;
  const int wake_;
  std::jthread thread_;

  Mutex mutex_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  std::size_t starting_ LPP_GUARDED_BY(mutex_) = 0;  // calls of start() under way
  Id next_id_ LPP_GUARDED_BY(mutex_) = 1;
  std::map<Id, std::unique_ptr<Child>> children_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
