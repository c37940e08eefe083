// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"

namespace lpp::operation {

/// What the file system under a base path holds. Bytes and numbers of inodes.
struct Space {
  std::int64_t size = 0;
  std::int64_t free = 0;
  std::int64_t inodes = 0;
  std::int64_t free_inodes = 0;
  /// Tells the file systems of one node apart; "" = nobody knows, as without an agent.
  std::string filesystem{};
  bool operator==(const Space&) const = default;
};

/// The newest that is known of each node's base paths, as the work there tells it. Nobody tells of
/// a path on which nothing is done, or whose scripts do not know. Lost with the process. Bounded:
/// beyond kMost paths none is added. Thread-safe.
class SpaceBoard {
 public:
  static constexpr std::size_t kMost = 10'000;

  struct Entry {
    std::string node{};
    std::string base_path{};
    Space space{};
    std::uint64_t told = 0;  // another number each time that somebody tells it, changed or not
  };

  /// Where it does not tell the file system, what was known of that stays.
  void note(const std::string& node, const std::string& base_path, const Space& space);
  /// Whoever tells of the node says that nothing has changed there.
  void confirm(const std::string& node);
  std::optional<Space> find(const std::string& node, const std::string& base_path) const;
  /// That base path, and the others of the node that are known to be on the same file system.
  std::vector<std::string> beside(const std::string& node, const std::string& base_path) const;
  /// By node and base path.
  std::vector<Entry> all() const;
  /// Another process is at work from now on, and knows more.
  void forget_all();
  /// The node is gone.
  void forget(const std::string& node);

 private:
  using Key = std::pair<std::string, std::string>;  // node, base path
  struct Told {
    Space space{};
    std::uint64_t number = 0;
  };

  mutable Mutex mutex_;
  std::map<Key, Told> spaces_ LPP_GUARDED_BY(mutex_);
  std::uint64_t last_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::operation
