// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "operation/usage.h"

namespace lpp::operation {

/// What the work at a directory with a limit has told of it when it was over, where nobody measures
/// it all the time. It counts for an hour: later it says too little. Lost with the process.
/// Bounded: the oldest goes for the newest. Thread-safe.
class ToldUses {
 public:
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::chrono::hours kCounts{1};

  struct Entry {
    std::string node{};
    std::string path{};  // of the directory
    Usage usage{};
    std::chrono::system_clock::time_point at{};  // when it was told
  };

  /// The clock must outlive it.
  explicit ToldUses(Clock& clock) : clock_(clock) {}

  void note(const std::string& node, const std::string& path, const Usage& usage);
  void forget(const std::string& node, const std::string& path);
  /// Another process is at work from now on, and knows more.
  void forget_all();
  /// What still counts, by node and path.
  std::vector<Entry> all() const;

 private:
  using Key = std::pair<std::string, std::string>;  // node, path
  struct Told {
    Usage usage{};
    TimePoint at{};
    std::chrono::system_clock::time_point wall{};
  };

  Clock& clock_;
  mutable Mutex mutex_;
  std::map<Key, Told> told_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::operation
