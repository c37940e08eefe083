// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"

namespace lpp::devcluster {

/// Runs a handler for keys on a few threads: a key added twice before it runs runs once, never on
/// two threads at the same time, and again if it was added while it ran. Of several due times the
/// earliest counts. Handlers must not wait. All methods are thread-safe.
class KeyedQueue {
 public:
  using Handler = std::function<void(const std::string& key)>;

  /// `clock` must outlive the queue. Threads are named "<name>-<n>".
  KeyedQueue(Clock& clock, std::string name, std::size_t threads, Handler handler);
  ~KeyedQueue();
  KeyedQueue(const KeyedQueue&) = delete;
  KeyedQueue& operator=(const KeyedQueue&) = delete;

  void start();
  void add(const std::string& key) { add_at(key, clock_.now()); }
  void add_after(const std::string& key, Duration delay) { add_at(key, clock_.now() + delay); }
  /// Running handlers finish, waiting keys are dropped, threads are joined. Repeatable.
  void stop();

 private:
  void add_at(const std::string& key, TimePoint due);
  void run(std::size_t index);

  Clock& clock_;
  const std::string name_;
  const std::size_t thread_count_;
  const Handler handler_;
  std::vector<std::jthread> threads_;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ LPP_GUARDED_BY(mutex_) = false;
  std::map<std::string, TimePoint> due_ LPP_GUARDED_BY(mutex_);
  std::set<std::pair<TimePoint, std::string>> order_ LPP_GUARDED_BY(mutex_);  // what due_ says
  std::set<std::string> running_ LPP_GUARDED_BY(mutex_);
  std::map<std::string, TimePoint> again_ LPP_GUARDED_BY(mutex_);  // added while running
};

}  // namespace lpp::devcluster
