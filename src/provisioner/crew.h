// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/sync.h"

namespace lpp::provisioner {

/// Threads of one kind, as many as are busy and one more, up to `most`: an idle daemon has few
/// stacks, and there is always somebody to take the next key. They stay until join(). Thread-safe.
class Crew {
 public:
  /// Marks the thread it is made on as busy as long as it lives; adds a thread if all are busy.
  class Busy {
   public:
    explicit Busy(Crew& crew) : crew_(crew) { crew_.begin(); }
    ~Busy() { crew_.end(); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Crew& crew_;
  };

  /// Each thread is named `name` and its number, and runs `run` once.
  Crew(std::string name, std::size_t most, std::function<void()> run);
  ~Crew() { join(); }

  /// The first thread. At most once.
  void start();
  /// Adds no more threads and waits for all; `run` must have been told to return.
  void join();

  std::size_t size() const;

 private:
  void begin();
  void end();
  void add_thread() LPP_REQUIRES(mutex_);

  const std::string name_;
  const std::size_t most_;
  const std::function<void()> run_;
  mutable Mutex mutex_;
  std::vector<std::jthread> threads_ LPP_GUARDED_BY(mutex_);
  std::size_t busy_ LPP_GUARDED_BY(mutex_) = 0;
  bool joined_ LPP_GUARDED_BY(mutex_) = false;
};

}  // namespace lpp::provisioner
