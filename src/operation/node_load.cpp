// SPDX-License-Identifier: Apache-2.0
#include "operation/node_load.h"

#include <algorithm>

namespace lpp::operation {

namespace {

/// Who still wants its turn asks again sooner than this; who does not must not hold up the others.
constexpr std::chrono::seconds kStillAsking{40};
/// Who is called comes at once, or is gone.
constexpr std::chrono::seconds kComes{5};
/// Of the room, what makes leave to removals, and removals to makes.
constexpr std::size_t kKeptShare = 5;

}  // namespace

NodeLoad::Line& NodeLoad::line_of(Load& load, const Operation& operation) {
  const bool for_a_claim = operation.kind == Kind::kMake || operation.kind == Kind::kResize;
  return for_a_claim ? load.makes : load.removals;
}

std::size_t NodeLoad::room(const Load& load, const Line& line) const {
  const auto left = [](std::size_t most, std::size_t used) { return most - std::min(most, used); };
  std::size_t most = most_ - most_ / kKeptShare;
  if (most_removals_ != 0 && &line == &load.removals) most = std::min(most, most_removals_);
  return std::min(left(most_, load.makes.used() + load.removals.used()), left(most, line.used()));
}

bool NodeLoad::admit(const Operation& operation) {
  if (most_ == 0) return true;
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  Load& load = nodes_[operation.node];
  Line& line = line_of(load, operation);
  drop_silent(line, now);
  const std::string& ns = operation.claim.ns;
  Queue& own = line.waiting[ns];
  if (own.asking.empty()) own.turn = ++last_turn_;
  auto mine = std::find_if(own.asking.begin(), own.asking.end(), [&](const Asking& asking) {
    const Operation& other = *asking.operation;  // no id(): it copies, and there may be thousands
    return other.volume_name == operation.volume_name && other.kind == operation.kind &&
           other.owner_uid == operation.owner_uid && other.attempt == operation.attempt;
  });
  if (mine == own.asking.end()) {
    own.asking.push_back({std::make_shared<const Operation>(operation), now});
    mine = own.asking.end() - 1;
  }
  mine->last = now;
  mine->called.reset();
  // Before it come those of its namespace that are before it, and as many of each other one.
  const auto round = static_cast<std::size_t>(mine - own.asking.begin());
  const std::size_t free = room(load, line);
  std::size_t ahead = round;
  for (auto it = line.waiting.begin(); it != line.waiting.end() && ahead < free; ++it) {
    const auto& [other, theirs] = *it;
    if (other == ns) continue;
    ahead += std::min(theirs.asking.size(), round);
    if (theirs.asking.size() > round && theirs.turn < own.turn) ++ahead;
  }
  if (ahead >= free) return false;
  own.asking.erase(mine);
  own.turn = ++last_turn_;
  if (own.asking.empty()) line.waiting.erase(ns);
  ++line.admitted;
  return true;
}

void NodeLoad::drop_silent(Line& line, TimePoint now) {
  for (auto it = line.waiting.begin(); it != line.waiting.end();) {
    std::erase_if(it->second.asking, [&](const Asking& asking) {
      return now - asking.last > kStillAsking || (asking.called && now - *asking.called > kComes);
    });
    it = it->second.asking.empty() ? line.waiting.erase(it) : std::next(it);
  }
}

NodeLoad::Waiting NodeLoad::call(Line& line, std::size_t count, TimePoint now) {
  std::vector<Queue*> in_turn;
  for (auto& [ns, queue] : line.waiting) in_turn.push_back(&queue);
  std::sort(in_turn.begin(), in_turn.end(),
            [](const Queue* a, const Queue* b) { return a->turn < b->turn; });
  Waiting next;
  for (std::size_t round = 0; round < count && next.size() < count; ++round) {
    for (Queue* const queue : in_turn) {
      if (next.size() == count || round >= queue->asking.size()) continue;
      Asking& asking = queue->asking[round];
      if (!asking.called) asking.called = now;
      next.push_back(asking.operation);
    }
  }
  return next;
}

NodeLoad::Waiting NodeLoad::served(const std::string& node, Load& load) {
  Waiting next;
  for (Line* const line : {&load.makes, &load.removals}) {
    const TimePoint now = clock_.now();
    drop_silent(*line, now);
    const auto theirs = call(*line, room(load, *line), now);
    next.insert(next.end(), theirs.begin(), theirs.end());
  }
  if (load.makes.unused() && load.removals.unused()) nodes_.erase(node);
  return next;
}

NodeLoad::Waiting NodeLoad::give_back(const Operation& operation) {
  if (most_ == 0) return {};
  MutexLock lock(mutex_);
  const auto it = nodes_.find(operation.node);
  if (it == nodes_.end()) return {};
  Line& line = line_of(it->second, operation);
  if (line.admitted == 0) return {};
  --line.admitted;
  return served(it->first, it->second);
}

void NodeLoad::began(const Operation& operation, const std::string& name) {
  if (most_ == 0) return;
  MutexLock lock(mutex_);
  line_of(nodes_[operation.node], operation).at_work.insert(name);
}

NodeLoad::Waiting NodeLoad::ended(const Operation& operation, const std::string& name) {
  if (most_ == 0) return {};
  MutexLock lock(mutex_);
  const auto it = nodes_.find(operation.node);
  if (it == nodes_.end() || line_of(it->second, operation).at_work.erase(name) == 0) return {};
  return served(it->first, it->second);
}

}  // namespace lpp::operation
