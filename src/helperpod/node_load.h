#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "operation/executor.h"

namespace lpp::helperpod {

/// Bounds how many helper pods are at work on a node at once: each is critical, so that a kubelet
/// ends applications to make room for it. Who has to wait is served in the order of asking.
/// Thread-safe.
class NodeLoad {
 public:
  /// `most` for each node; 0 = no limit.
  NodeLoad(Clock& clock, std::size_t most) : clock_(clock), most_(most) {}

  using Waiting = std::vector<std::shared_ptr<const operation::Operation>>;

  /// Room for one more, held until give_back() or until it waits no longer; else it waits.
  bool admit(const operation::Operation& operation);
  /// Returns those for whom there is room now.
  Waiting give_back(const std::string& node);

  /// A pod is at work there, or is so no more. Both may be said again.
  void began(const std::string& node, const std::string& pod_uid);
  Waiting ended(const std::string& node, const std::string& pod_uid);

 private:
  struct Asking {
    std::shared_ptr<const operation::Operation> operation{};
    TimePoint last{};
  };
  struct Load {
    std::size_t admitted = 0;
    std::unordered_set<std::string> pods{};
    std::deque<Asking> waiting{};
  };

  std::size_t room(const Load& load) const LPP_REQUIRES(mutex_);
  static void drop_silent(Load& load, TimePoint now);
  Waiting served(const std::string& node, Load& load) LPP_REQUIRES(mutex_);

  Clock& clock_;
  const std::size_t most_;
  Mutex mutex_;
  std::unordered_map<std::string, Load> nodes_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::helperpod
