// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent_executor.h"
#include "agent/executor_names.h"
#include "agent/work.h"
#include "base/log.h"
#include "base/strings.h"
#include "operation/record.h"

// How far agents are, as those see it who wait for it.

namespace lpp::agent {

using operation::Progress;
using operation::Recorded;

std::vector<Recorded> AgentExecutor::recorded(std::string_view volume_name) {
  drop_gone_agents(volume_name);
  std::vector<Recorded> all;
  MutexLock lock(mutex_);
  const auto it = by_volume_.find(volume_name);
  if (it == by_volume_.end()) return {};
  for (const auto& entry : it->second) all.push_back({entry->operation, progress_of(*entry)});
  return all;
}

Progress AgentExecutor::lost(const Operation& operation) const {
  return {.state = State::kFailed,
          .message = "the agent on node " + operation.node +
                     " has it on record no more, though it had not ended",
          .reason = "RecordRemoved"};
}

Presence AgentExecutor::presence_of(const NodeAgent& agent, TimePoint now) const {
  if (!active_) return Presence::kAbsent;
  const bool speaks = !agent.session.empty() && (agent.held || now < agent.heard + kSilence);
  if (speaks && agent.complete) return Presence::kConnected;
  return now < expected_until(agent, now) ? Presence::kExpected : Presence::kAbsent;
}

/// One that says hello over and over, and never what it has, is as good as none.
TimePoint AgentExecutor::expected_until(const NodeAgent& agent, TimePoint now) const {
  // Its silence is noted with the next look at time.
  const TimePoint lost = agent.shown == Presence::kConnected ? now : agent.lost;
  return std::max({begun_, lost, agent.tells_since}) + kExpectedFor;
}

Presence AgentExecutor::presence(const std::string& node) const {
  MutexLock lock(mutex_);
  const TimePoint now = clock_.now();
  if (const auto it = agents_.find(node); it != agents_.end()) return presence_of(it->second, now);
  return active_ && now < begun_ + kExpectedFor ? Presence::kExpected : Presence::kAbsent;
}

AgentState AgentExecutor::state_of(const std::string& node, const NodeAgent& agent) const {
  constexpr std::size_t kMostWords = 3;
  std::vector<std::string> words;
  for (const auto& [name, one] : agent.left_out) {
    if (words.size() < kMostWords) words.push_back(one.words);
  }
  return {.node = node,
          .pod = agent.pod,
          .program = agent.program,
          .presence = presence_of(agent, clock_.now()),
          .since = agent.since,
          .bases = agent.bases,
          .works = agent.works.size(),
          .left_out = agent.left_out.size(),
          .left_out_words = std::move(words),
          .rival = rival_of(agent)};
}

std::vector<AgentState> AgentExecutor::agents() const {
  std::vector<AgentState> all;
  MutexLock lock(mutex_);
  for (const auto& [node, agent] : agents_) all.push_back(state_of(node, agent));
  return all;
}

std::vector<AgentWork> AgentExecutor::oldest_works(const std::string& node) const {
  constexpr std::size_t kMost = 5;
  const TimePoint now = clock_.now();
  MutexLock lock(mutex_);
  const auto it = agents_.find(node);
  if (it == agents_.end()) return {};
  std::vector<EntryPtr> entries;
  for (const auto& [name, entry] : it->second.works) entries.push_back(entry);
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, entries.size()));
  std::partial_sort(entries.begin(), end, entries.end(),
                    [](const auto& a, const auto& b) { return a->since < b->since; });
  entries.erase(end, entries.end());
  std::vector<AgentWork> oldest;
  oldest.reserve(entries.size());
  for (const auto& entry : entries) {
    oldest.push_back(
        {entry->operation, progress_of(*entry).state, now - entry->since, entry->gone});
  }
  return oldest;
}

/// What was told of a directory before its agent was lost, or its disk, may not be so any more.
void AgentExecutor::doubt(const NodeAgent& agent, const Entry& entry, Progress& progress) const {
  using Standing = Progress::Standing;
  const Operation& make = *entry.operation;
  if (make.kind != operation::Kind::kMake) return;
  const Presence there = presence_of(agent, clock_.now());
  if (there != Presence::kConnected) {
    const bool is_expected = there == Presence::kExpected;
    progress.standing = is_expected ? Standing::kAwaited : Standing::kDoubtful;
    if (is_expected) progress.changes_at = expected_until(agent, clock_.now());
    return;
  }
  const Base* const base = find_base(agent.bases, make.base_path);
  if (base == nullptr) return;
  // A disk gets its identity with the first make, which an earlier look has not seen.
  const bool is_known = !base->identity.empty() || agent.bases_told > entry.over_since;
  const bool is_other = !progress.disk.empty() && is_known && base->identity != progress.disk;
  if (!is_other && base->problem.empty()) return;
  progress.standing = Standing::kAwaited;
  if (progress.state != State::kSucceeded) return;  // it tells why
  progress.message = fmt::format(
      "{} is made, but the agent on node {} does not see {} as it was then: {}", make.path,
      make.node, make.base_path,
      is_other ? fmt::format("disk {} was there, and now there is {}; mount it again, or restart "
                             "the agent if it has been replaced",
                             progress.disk,
                             base->identity.empty() ? "none that is known" : base->identity)
               : base->problem);
}

/// What was made there may not be there any more, or again.
void AgentExecutor::saw_bases(const std::string& node, NodeAgent& agent, std::vector<Base> bases,
                              Effects& effects) {
  const auto same_sight = [](const Base& a, const Base& b) {
    return a.path == b.path && sight_of(a) == sight_of(b);
  };
  const auto is_as_before = [&](const Base& a, const Base& b) {
    return same_sight(a, b) && a.problem == b.problem;
  };
  const auto all = [&](const auto& equal) {
    return std::equal(agent.bases.begin(), agent.bases.end(), bases.begin(), bases.end(), equal);
  };
  const bool same = all(is_as_before);
  if (!all(same_sight)) effects.sights.push_back(node);
  agent.bases = std::move(bases);
  agent.bases_told = clock_.now();
  for (const Base& base : agent.bases) {
    const std::string& disk = base.identity.empty() ? base.seen : base.identity;
    if (disk.empty()) continue;
    agent.had_disk.insert(base.path);
    agent.seen_disks[base.path] = disk;
  }
  if (same) return;
  for (const auto& [name, entry] : agent.works) {
    if (entry->progress.over()) effects.wake(*entry);
  }
}

/// The first make gives a disk its identity, and its volume may name that before a look tells it.
/// Where a look has seen one before, that there is none now is what is new.
void AgentExecutor::learn_disk(NodeAgent& agent, const Entry& made) {
  for (Base& base : agent.bases) {
    const bool is_its_base = base.path == made.operation->base_path && base.problem.empty();
    if (!is_its_base || !base.identity.empty() || made.progress.disk.empty()) continue;
    if (!agent.had_disk.insert(base.path).second) continue;
    base.identity = made.progress.disk;
    agent.seen_disks[base.path] = base.identity;
  }
}

Progress AgentExecutor::progress_of(const Entry& entry) const {
  const TimePoint now = clock_.now();
  const Operation& operation = *entry.operation;
  const NodeAgent& agent = agents_.at(operation.node);
  const auto cmd_timeout = surroundings_.cmd_timeout();
  const Presence there = presence_of(agent, now);
  const std::string away = fmt::format("the agent on node {} is not connected since {}",
                                       operation.node, format_rfc3339(agent.lost_wall));
  if (entry.cancelled) {
    Progress progress{.state = State::kEnding};
    const TimePoint limit = *entry.cancelled + cmd_timeout;
    if (now < limit) {
      progress.changes_at = limit;
    } else {
      progress.reason = there == Presence::kAbsent ? "AgentAway" : "StuckEnding";
      progress.message = fmt::format(
          "{} of {} was cancelled, but {}", to_string(operation.kind), operation.path,
          there == Presence::kAbsent
              ? away
              : fmt::format("the agent on node {} does not say that it has ended", operation.node));
    }
    return progress;
  }
  Progress progress = entry.progress;
  if (progress.over()) {
    doubt(agent, entry, progress);
    return progress;
  }
  progress.outdated = entry.outdated || entry.suspended;
  if (there == Presence::kAbsent) {
    progress.reason = "AgentAway";
    progress.message = away;
  } else if (there == Presence::kExpected) {
    progress.changes_at = expected_until(agent, now);
  }
  // A large tree takes as long as it takes, as long as somebody works on it.
  if (removes(operation.kind) && there != Presence::kAbsent) return progress;
  const TimePoint late_at =
      (removes(operation.kind) ? std::max(entry.since, agent.lost) : entry.since) + cmd_timeout;
  if (now < late_at) {
    progress.changes_at = std::min(late_at, progress.changes_at.value_or(late_at));
    return progress;
  }
  progress.state = State::kLate;
  progress.changes_at.reset();
  if (progress.reason.empty()) progress.reason = "Timeout";
  progress.message = fmt::format(
      "{} of {} did not {} within {} s: {}", to_string(operation.kind), operation.path,
      entry.begun ? "end" : "begin", cmd_timeout.count(),
      progress.message.empty() ? fmt::format("is node {} up?", operation.node) : progress.message);
  return progress;
}

}  // namespace lpp::agent
