// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/sync.h"
#include "base/unique_fd.h"

namespace lpp::agent {

/// Brings what other threads want done to a thread that waits with epoll. Thread-safe.
class Mailbox {
 public:
  using Task = std::function<void()>;

  Mailbox();
  void post(Task task);
  /// All that there is, in order. For the one thread.
  std::vector<Task> take();
  /// Can be read when there is some.
  int fd() const { return event_.get(); }

 private:
  const UniqueFd event_;
  Mutex mutex_;
  std::vector<Task> tasks_ LPP_GUARDED_BY(mutex_);
};

/// A few threads for what may wait; no more than `most` wait at once. Thread-safe.
class Jobs {
 public:
  Jobs(const std::string& name, std::size_t threads, std::size_t most);
  ~Jobs() { stop(); }
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// False: too many wait.
  [[nodiscard]] bool add(std::function<void()> job);
  /// Waits for what is being done; what has not begun is dropped. Repeatable.
  void stop();

 private:
  void run();

  const std::size_t most_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ LPP_GUARDED_BY(mutex_) = false;
  std::deque<std::function<void()>> jobs_ LPP_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace lpp::agent
