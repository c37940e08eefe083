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

struct Operation;
struct Space;

/// What the volumes on record in a base path were promised, in bytes, as the node itself counts.
/// Those of several base paths of one file system add up.
struct Promises {
  std::int64_t unused = 0;     // of those that a limit holds: what each may still use
  std::int64_t used = 0;       // what these use
  std::int64_t unlimited = 0;  // the sizes of the others: what they use is not told from the rest

  /// What of the free space is promised already.
  std::int64_t not_used_yet(const Space& space) const;
  Promises& operator+=(const Promises& other);
  bool operator==(const Promises&) const = default;
};

/// Of a volume that is made, and uses nothing yet.
Promises promises_of(const Operation& make);

/// What the file system under a base path holds. Bytes and numbers of inodes.
struct Space {
  std::int64_t size = 0;
  std::int64_t free = 0;
  std::int64_t inodes = 0;
  std::int64_t free_inodes = 0;
  /// Tells the file systems of one node apart; "" = nobody knows, as without an agent.
  std::string filesystem{};
  /// nullopt: not told, as by a script or an agent of an earlier version.
  std::optional<Promises> promises{};
  bool operator==(const Space&) const = default;
};

/// Sizes are what people wrote: their sum stops at half of what the type holds, so that no
/// difference of two wraps around.
std::int64_t add_sizes(std::int64_t a, std::int64_t b);

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

  /// Where it does not tell the file system, what was known of that stays. Promises do not.
  void note(const std::string& node, const std::string& base_path, const Space& space);
  /// The same after a work of an agent, which counts its promises only when it looks at its base
  /// paths: until then those that it told stay, and what is made meanwhile is added.
  void note_work(const std::string& node, const std::string& base_path, const Space& space);
  /// A directory that is there now; nothing where no promises were told. Once for each path.
  void note_made(const std::string& node, const std::string& base_path, const std::string& path,
                 const Promises& promises);
  void note_removed(const std::string& node, const std::string& base_path, const std::string& path);
  /// Whoever tells of the node says that nothing has changed there.
  void confirm(const std::string& node);
  std::optional<Space> find(const std::string& node, const std::string& base_path) const;
  /// That base path, and the others of the node that are known to be on the same file system.
  std::vector<std::string> beside(const std::string& node, const std::string& base_path) const;
  /// What was promised in these base paths of the node; nullopt: not all have told it.
  std::optional<Promises> promises(const std::string& node,
                                   const std::vector<std::string>& base_paths) const;
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
    std::map<std::string, Promises> made{};  // by path, since the promises were told
  };

  /// nullptr: there is no room for another one.
  Told* renew(const std::string& node, const std::string& base_path, Space space)
      LPP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<Key, Told> spaces_ LPP_GUARDED_BY(mutex_);
  std::uint64_t last_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::operation
