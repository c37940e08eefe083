// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>

#include "agent/agent_executor.h"
#include "agent/executor_names.h"
#include "agent/work.h"
#include "base/strings.h"
#include "operation/record.h"

// How an operation begins, goes on, is called off and is forgotten.

namespace lpp::agent {

using operation::Admission;
using operation::Id;
using operation::Operation;

namespace {

/// Volumes that are there tell a disk that is missing from a new one, which an agent that was
/// started without it cannot. "" = there are none: the agent keeps to the first disk that it saw.
std::string right_disk(const std::vector<Base>& told, const std::string& base_path,
                       const std::vector<std::string>& named) {
  if (named.empty()) return {};
  const Base* const base = find_base(told, base_path);
  const std::string now = base == nullptr ? std::string() : base->identity;
  return std::find(named.begin(), named.end(), now) != named.end() ? now : named.front();
}

std::string not_to_be_told(const std::string& node, const Base& base, const std::string& disk) {
  return fmt::format(
      "disk {} belongs to {} on node {}, and whether it is there its agent cannot tell: {}; "
      "mount it again, or restart this node's agent if it has been replaced",
      disk, base.path, node, base.problem);
}

}  // namespace

Admission AgentExecutor::admit(const Operation& operation) {
  if (!load_.admit(operation)) return {};
  return Admission([this, operation] {
    Effects effects;
    effects.wake(load_.give_back(operation));
    wake(effects.woken);
  });
}

Result<operation::Executor::Start> AgentExecutor::start(const Operation& operation) {
  // An order that cannot be written would not reach the agent.
  LPP_RETURN_IF_ERROR(
      [&]() -> Result<void> {
        LPP_ASSIGN_OR_RETURN(const auto text, operation::encode_operation(operation), "operation");
        (void)text;
        return {};
      }(),
      "start");
  std::vector<std::string> disks;
  if (operation.kind == operation::Kind::kMake) {
    disks = surroundings_.disks_named(operation.node, operation.base_path);
  } else if (operation.kind == operation::Kind::kTakeBack && !operation.disk.empty()) {
    for (const auto disk : split(operation.disk, ' ')) disks.emplace_back(disk);
  }
  Effects effects;
  auto started = [&] {
    MutexLock lock(mutex_);
    return record(operation, disks, effects);
  }();
  perform(effects);
  return started;
}

Result<operation::Executor::Start> AgentExecutor::record(const Operation& operation,
                                                         const std::vector<std::string>& disks,
                                                         Effects& effects) {
  if (!active_) return not_active();
  if (const auto it = by_volume_.find(operation.volume_name); it != by_volume_.end()) {
    for (const auto& entry : it->second) {
      const Operation& other = *entry->operation;
      if (other.id() == operation.id()) {
        if (!operation::same_work(other, operation)) return Start::kOtherFound;
        if (!removes(other.kind)) go_on(entry, effects);
        return Start::kRecorded;
      }
      if (other.kind == operation.kind && other.attempt == operation.attempt) {
        return Start::kOtherFound;
      }
    }
  }
  const auto it = agents_.find(operation.node);
  if (it == agents_.end() || presence_of(it->second, clock_.now()) != Presence::kConnected) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = "the agent on node " + operation.node + " is not connected"};
  }
  NodeAgent& agent = it->second;
  // It is on its way out at the agent: what is told of it now is about the former one.
  if (agent.forgotten.contains(name_of(operation.id()))) return Start::kOtherFound;
  auto ordered = std::make_shared<Operation>(operation);
  // What an earlier attempt was to go to does not count. A helper pod, which tells no disk, may
  // have made on any of several what is taken back.
  if (operation.kind == operation::Kind::kMake || operation.kind == operation::Kind::kTakeBack) {
    ordered->disk = right_disk(agent.bases, operation.base_path, disks);
  }
  const auto entry = add(agent, std::move(ordered));
  entry->is_ours = true;
  entry->ordered = clock_.now();
  entry->serial = fmt::format("{}-{}", settings_.instance, ++last_serial_);
  order_start(agent, entry, effects);
  return Start::kRecorded;
}

Result<bool> AgentExecutor::can_resize(const Operation& operation) {
  if (presence(operation.node) == Presence::kConnected) return true;
  return Error{.code = ErrorCode::kUnavailable,
               .message = "the agent on node " + operation.node + " is not connected"};
}

std::string AgentExecutor::disks_named(const Operation& make) const {
  if (make.shared || make.node.empty()) return {};
  return fmt::format("{}", fmt::join(surroundings_.disks_named(make.node, make.base_path), " "));
}

Result<void> AgentExecutor::may_be_done_unseen(const Operation& operation) const {
  std::string disk = operation.disk;
  if (operation.kind == operation::Kind::kMake) {
    const auto disks = surroundings_.disks_named(operation.node, operation.base_path);
    disk = disks.empty() ? std::string() : disks.front();
  }
  MutexLock lock(mutex_);
  const auto it = agents_.find(operation.node);
  if (it == agents_.end()) return {};
  const Base* const base = find_base(it->second.bases, operation.base_path);
  if (base == nullptr || base->problem.empty()) return {};
  // Its volumes may all be gone, or the cache may not show the first one yet.
  const auto seen = it->second.seen_disks.find(base->path);
  const bool is_make = operation.kind == operation::Kind::kMake;
  if (disk.empty() && is_make && seen != it->second.seen_disks.end()) disk = seen->second;
  if (disk.empty()) return {};
  return Error{.code = ErrorCode::kUnavailable,
               .message = not_to_be_told(operation.node, *base, disk),
               .reason = std::string(kOtherDisk)};
}

std::string AgentExecutor::sight(const std::string& node, const std::string& base_path) const {
  MutexLock lock(mutex_);
  const auto it = agents_.find(node);
  const Base* const base = it == agents_.end() ? nullptr : find_base(it->second.bases, base_path);
  return base == nullptr ? std::string() : sight_of(*base);
}

std::string AgentExecutor::why_unfit(const std::string& node, const std::string& base_path) const {
  Base base;
  std::string seen;
  {
    MutexLock lock(mutex_);
    const auto it = agents_.find(node);
    if (it == agents_.end() || presence_of(it->second, clock_.now()) != Presence::kConnected) {
      return {};
    }
    const Base* const told = find_base(it->second.bases, base_path);
    if (told == nullptr) return {};
    base = *told;
    const auto last = it->second.seen_disks.find(base_path);
    if (last != it->second.seen_disks.end()) seen = last->second;
  }
  auto disks = surroundings_.disks_named(node, base_path);
  // What no volume names, but its agent has seen: start() leaves it to nobody else.
  if (disks.empty() && !base.problem.empty() && !seen.empty()) disks.push_back(seen);
  if (disks.empty()) return {};
  if (!base.problem.empty()) return not_to_be_told(node, base, disks.front());
  if (std::find(disks.begin(), disks.end(), base.identity) != disks.end()) return {};
  Operation make;
  make.node = node;
  make.base_path = base_path;
  make.disk = disks.front();
  return words_of_other_disk(make, make.disk, base.identity);
}

/// Not while its agent is away: until that is back the owner's word grows old.
void AgentExecutor::go_on(const EntryPtr& entry, Effects& effects) {
  NodeAgent& agent = agents_.at(entry->operation->node);
  if (!entry->suspended || presence_of(agent, clock_.now()) != Presence::kConnected) return;
  entry->suspended = false;
  order_start(agent, entry, effects);
}

Result<void> AgentExecutor::cancel(const Id& id) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    for (const auto& entry : find(id)) cancel(entry, effects);
  }
  perform(effects);
  return {};
}

void AgentExecutor::cancel(const EntryPtr& entry, Effects& effects) {
  if (entry->cancelled) return;
  NodeAgent& agent = agents_.at(entry->operation->node);
  if (entry->progress.over()) {
    // What a make has left nobody else may know of: that it is taken back is to be on record first.
    if (entry->operation->kind == operation::Kind::kMake) {
      effects.wake(*entry);
    } else {
      forget(agent, entry, true, effects);
    }
    return;
  }
  if (!entry->sent) {
    drop(agent, entry, effects);
    return;
  }
  entry->cancelled = clock_.now();
  entry->suspended = false;
  effects.wake(*entry);
  if (!agent.complete) return;  // it is ordered when everything is told
  order_cancel(agent, entry, effects);
}

Result<bool> AgentExecutor::forget(const Id& id, When when) {
  Effects effects;
  bool none_left = false;
  {
    MutexLock lock(mutex_);
    for (const auto& entry : find(id)) {
      if (!entry->progress.over() || entry->cancelled) {
        cancel(entry, effects);
      } else {
        forget(agents_.at(entry->operation->node), entry, when == When::kNow, effects);
      }
    }
    none_left = find(id).empty();
  }
  perform(effects);
  return none_left;
}

void AgentExecutor::forget(NodeAgent& agent, const EntryPtr& entry, bool urgent, Effects& effects) {
  const Id id = entry->operation->id();
  drop(agent, entry, effects);
  auto& forgotten = agent.forgotten[name_of(id)];
  forgotten = {.id = id, .serial = entry->serial};
  if (!agent.complete) return;
  order_forget(agent, forgotten, urgent, effects);
}

void AgentExecutor::order_forget(NodeAgent& agent, Forgotten& forgotten, bool urgent,
                                 Effects& effects) {
  const Order forget{.what = Order::What::kForget, .id = forgotten.id, .serial = forgotten.serial};
  forgotten.order = order(agent, {.order = forget, .urgent = urgent}, effects);
}

}  // namespace lpp::agent
