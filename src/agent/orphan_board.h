// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/listed.h"
#include "base/sync.h"

namespace lpp::agent {

/// Directories on nodes that were nobody's when their agents told of them. What a node's agent
/// lists replaces what it listed before as soon as its last part is here. Lost with the process.
/// Bounded: beyond its bounds no directory is added. Thread-safe.
class OrphanBoard {
 public:
  static constexpr std::size_t kMost = 20'000;
  static constexpr std::size_t kMostOfNode = 2000;

  struct Entry {
    std::string node{};
    Listed listed{};
    std::string disk{};  // that it is on, as its agent calls it; "" = not known. Not kept here
  };

  void note(const std::string& node, const InventoryPart& part);
  /// What was told so far of a list that has not ended.
  void forget_parts(const std::string& node);
  void forget_node(const std::string& node);
  void forget_all();

  /// By node, in the order of the list.
  std::vector<Entry> all() const;
  /// How many more there are at least, by node; those of which none is known are not in it.
  std::map<std::string, std::int64_t> left_out() const;

 private:
  struct List {
    std::vector<Listed> directories{};
    std::int64_t left_out = 0;
  };
  struct Node {
    List known{};
    List coming{};
  };
  void drop(List& list) LPP_REQUIRES(mutex_);
  void drop_if_empty(std::map<std::string, Node>::iterator node) LPP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Node> nodes_ LPP_GUARDED_BY(mutex_);
  std::size_t count_ LPP_GUARDED_BY(mutex_) = 0;  // known and coming
};

}  // namespace lpp::agent
