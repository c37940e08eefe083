// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_executor.h"
#include "agent/executor_names.h"
#include "base/log.h"
#include "base/strings.h"
#include "node/volume.h"

// Nodes whose agent does not speak: it may be cut off and at work all the same, so that nobody else
// works there, or it may be gone for good, so that somebody else has to.

namespace lpp::agent {

namespace {

/// An answer about a node's pods is good for so long.
constexpr std::chrono::seconds kAnswerIsGood{5};

}  // namespace

Result<void> AgentExecutor::check_absent(const std::string& node) {
  const TimePoint now = clock_.now();
  std::string since;
  {
    MutexLock lock(mutex_);
    const auto it = agents_.find(node);
    if (it != agents_.end()) since = " since " + format_rfc3339(it->second.lost_wall);
    const Presence there = it != agents_.end()                      ? presence_of(it->second, now)
                           : active_ && now < begun_ + kExpectedFor ? Presence::kExpected
                                                                    : Presence::kAbsent;
    if (there != Presence::kAbsent) {
      absences_.erase(node);
      return Error{ErrorCode::kUnavailable, "the agent on node " + node + " is expected"};
    }
    const auto known = absences_.find(node);
    if (known != absences_.end() && now < known->second.asked + kAnswerIsGood) {
      return known->second.answer;
    }
  }
  const auto has_pod = surroundings_.has_agent_pod(node);
  MutexLock lock(mutex_);
  Absence& absence = absences_[node];
  absence.asked = now;
  if (!has_pod.ok()) {
    absence.none_since.reset();
    // Who must not ask goes by the time that has passed.
    absence.answer = has_pod.error().is(ErrorCode::kForbidden) ? Result<void>() : has_pod.error();
  } else if (*has_pod) {
    absence.none_since.reset();
    absence.answer = Error{
        ErrorCode::kUnavailable,
        fmt::format("the agent on node {} is not connected{}, but its pod is there and may be at "
                    "work: helper pods wait until it is connected, or deleted for good",
                    node, since)};
  } else {
    if (!absence.none_since) absence.none_since = now;
    // A DaemonSet that is updated takes a moment between the old pod and the new one.
    const bool may_be_between = agents_.contains(node) && now < *absence.none_since + kExpectedFor;
    absence.answer = may_be_between
                         ? Result<void>(Error{ErrorCode::kUnavailable,
                                              "the agent on node " + node + " has just gone"})
                         : Result<void>();
  }
  return absence.answer;
}

/// Nobody will ever tell how their works stand. Where the node is still there the disk knows: if an
/// agent comes back, it tells.
void AgentExecutor::drop_gone_agents(std::string_view volume_name) {
  std::set<std::string> silent;
  {
    MutexLock lock(mutex_);
    const auto it = by_volume_.find(volume_name);
    if (it == by_volume_.end()) return;
    for (const auto& entry : it->second) {
      const auto& node = entry->operation->node;
      if (presence_of(agents_.at(node), clock_.now()) == Presence::kAbsent) silent.insert(node);
    }
  }
  for (const auto& node : silent) {
    const auto gone = surroundings_.is_node_gone(node);
    if (!gone.ok()) continue;
    if (!*gone && !is_known_to_have_no_pod(node)) continue;
    Effects effects;
    {
      MutexLock lock(mutex_);
      const auto agent = agents_.find(node);
      if (agent == agents_.end()) continue;
      if (presence_of(agent->second, clock_.now()) != Presence::kAbsent) continue;
      while (!agent->second.works.empty()) {
        const EntryPtr entry = agent->second.works.begin()->second;
        // A node that comes back brings its agent, which puts back what is left.
        const bool may_be_halved = entry->cancelled && (entry->begun || entry->sent);
        if (!*gone && may_be_halved && entry->operation->kind == operation::Kind::kRemove) {
          effects.not_put_back.emplace_back(
              entry->operation,
              "the directory may not be in its place: the agent that was to put it back is gone. "
              "What is left of it is beside the base path's records, in " +
                  std::string(node::kRecordFolder) + "/gone.…, until an agent comes back");
        }
        drop(agent->second, entry, effects);
      }
      usage_.forget_node(node);
      orphans_.forget_node(node);
      agents_.erase(agent);
    }
    log::info("{} {} is gone, and its agent's records with it",
              *gone ? "node" : "the agent on node", node);
    perform(effects);
  }
}

/// Not by the time that has passed alone.
bool AgentExecutor::is_known_to_have_no_pod(const std::string& node) {
  if (!check_absent(node).ok()) return false;
  MutexLock lock(mutex_);
  const auto known = absences_.find(node);
  return known != absences_.end() && known->second.none_since.has_value();
}

}  // namespace lpp::agent
