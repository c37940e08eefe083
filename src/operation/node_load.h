// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "operation/executor.h"

namespace lpp::operation {

/// For executors: bounds how many operations are at work on a node at once. Claims do not wait for
/// long removals, nor the other way round: a fifth of the room is kept for each. Among those that
/// wait, namespaces take turns, and within one the order of asking counts. What has no node (a
/// shared filesystem) counts as one node. Thread-safe.
class NodeLoad {
 public:
  /// `most` for each node, `most_removals` of these removals; 0 = no limit.
  NodeLoad(Clock& clock, std::size_t most, std::size_t most_removals = 0)
      : clock_(clock), most_(most), most_removals_(most_removals) {}

  using Waiting = std::vector<std::shared_ptr<const Operation>>;

  /// Room for one more, held until give_back() or until it waits no longer; else it waits.
  bool admit(const Operation& operation);
  /// Returns those for whom there is room now.
  Waiting give_back(const Operation& operation);

  /// Something of that name, an operation's own, is at work there, or is so no more. Both may be
  /// said again.
  void began(const Operation& operation, const std::string& name);
  Waiting ended(const Operation& operation, const std::string& name);

 private:
  struct Asking {
    std::shared_ptr<const Operation> operation{};
    TimePoint last{};
    std::optional<TimePoint> called{};  // since then there is room for it
  };
  /// Of a namespace.
  struct Queue {
    std::deque<Asking> asking{};
    std::uint64_t turn = 0;  // when it came, or was served last
  };
  struct Line {
    std::size_t admitted = 0;
    std::unordered_set<std::string> at_work{};
    std::map<std::string, Queue> waiting{};  // by namespace

    std::size_t used() const { return admitted + at_work.size(); }
    bool unused() const { return used() == 0 && waiting.empty(); }
  };
  struct Load {
    Line makes{};
    Line removals{};
  };

  static Line& line_of(Load& load, const Operation& operation);
  std::size_t room(const Load& load, const Line& line) const;
  static void drop_silent(Line& line, TimePoint now);
  static Waiting call(Line& line, std::size_t count, TimePoint now);
  Waiting served(const std::string& node, Load& load) LPP_REQUIRES(mutex_);

  Clock& clock_;
  const std::size_t most_;
  const std::size_t most_removals_;
  Mutex mutex_;
  std::uint64_t last_turn_ LPP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Load> nodes_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::operation
