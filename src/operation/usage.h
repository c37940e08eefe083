// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/sync.h"

namespace lpp::operation {

/// What a directory with a limit takes up, and may.
struct Usage {
  std::int64_t bytes = 0;
  std::int64_t limit_bytes = 0;          // 0 = none
  std::optional<std::int64_t> inodes{};  // nullopt: they are not counted
  std::int64_t limit_inodes = 0;         // 0 = none
  bool operator==(const Usage&) const = default;
};

/// What is known of the volumes that somebody on their node measures, used by a pod or not. Lost
/// with the process. Bounded: beyond its bounds no volume is added. Thread-safe.
class UsageBoard {
 public:
  static constexpr std::size_t kMost = 20'000;
  static constexpr std::size_t kMostOfNode = 2000;

  struct Entry {
    std::string node{};
    std::string path{};  // of the directory
    Usage usage{};
  };

  void note(const std::string& node, const std::string& path, const Usage& usage);
  /// Nobody measures it any more.
  void forget(const std::string& node, const std::string& path);
  /// Of the node nothing but these is measured.
  void keep_only(const std::string& node, const std::set<std::string>& paths);
  void forget_node(const std::string& node);
  void forget_all();

  std::optional<Usage> find(const std::string& node, const std::string& path) const;
  /// By node and path.
  std::vector<Entry> all() const;

 private:
  using Paths = std::map<std::string, Usage>;
  void drop_if_empty(std::map<std::string, Paths>::iterator node) LPP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Paths> nodes_ LPP_GUARDED_BY(mutex_);
  std::size_t count_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::operation
