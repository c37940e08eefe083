// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "agent/agent_executor.h"
#include "agent/work.h"
#include "base/paths.h"

// What agents tell of single directories: how full they are, and that they are there.

namespace lpp::agent {

void AgentExecutor::note_uses(const std::string& node, Agent& agent, const Tell& tell,
                              bool everything) {
  for (const Use& use : tell.uses) {
    if (!use.usage) {
      usage_.forget(node, use.path);
      continue;
    }
    // What it was not asked for is none of ours.
    const auto& asked = agent.base_paths;
    if (std::none_of(asked.begin(), asked.end(),
                     [&](const auto& base) { return strictly_below(use.path, base); })) {
      continue;
    }
    usage_.note(node, use.path, *use.usage);
    if (everything && agent.used.size() < operation::UsageBoard::kMostOfNode) {
      agent.used.insert(use.path);
    }
  }
  if (everything && tell.last) usage_.keep_only(node, std::exchange(agent.used, {}));
}

std::set<std::string> AgentExecutor::present_nodes() const {
  std::set<std::string> there;
  MutexLock lock(mutex_);
  for (const auto& [node, agent] : agents_) {
    if (presence_of(agent, clock_.now()) != Presence::kAbsent) there.insert(node);
  }
  return there;
}

std::vector<operation::UsageBoard::Entry> AgentExecutor::usage() const {
  auto entries = usage_.all();
  const auto there = present_nodes();
  std::erase_if(entries, [&](const auto& entry) { return !there.contains(entry.node); });
  return entries;
}

void AgentExecutor::keep_below_bases(const Agent& agent, std::vector<Listed>& directories) {
  const auto& asked = agent.base_paths;
  std::erase_if(directories, [&](const Listed& one) {
    return std::none_of(asked.begin(), asked.end(),
                        [&](const auto& base) { return strictly_below(one.path, base); });
  });
}

bool AgentExecutor::works_at(const Agent& agent, const Listed& directory) {
  // What no record tells of shows by its name only whose it is.
  const bool is_leftover =
      directory.path.find(std::string("/") + node::kRecordFolder + "/") != std::string::npos;
  return std::any_of(agent.works.begin(), agent.works.end(), [&](const auto& item) {
    const auto& operation = *item.second->operation;
    if (overlaps(operation.path, directory.path)) return true;
    if (!is_leftover) return false;
    const auto place = place_of(operation);
    return place.ok() && place->volume_id == directory.id;
  });
}

std::vector<OrphanBoard::Entry> AgentExecutor::orphans() const {
  auto entries = orphans_.all();
  const auto there = present_nodes();
  MutexLock lock(mutex_);
  std::erase_if(entries, [&](const auto& entry) {
    const auto agent = agents_.find(entry.node);
    return agent == agents_.end() || !there.contains(entry.node) ||
           works_at(agent->second, entry.listed);
  });
  for (auto& entry : entries) {
    for (const Base& base : agents_.at(entry.node).bases) {
      if (strictly_below(entry.listed.path, base.path)) entry.disk = base.identity;
    }
  }
  return entries;
}

}  // namespace lpp::agent
