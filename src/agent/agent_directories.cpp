// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "agent/agent_executor.h"
#include "agent/work.h"
#include "base/paths.h"

// Which base paths agents are to look at, and what they tell of single directories there: how full
// they are, and that they are there.

namespace lpp::agent {

namespace {

/// What an agent was not asked for is none of ours.
bool is_below_any(const std::string& path, const std::vector<std::string>& bases) {
  return std::any_of(bases.begin(), bases.end(),
                     [&](const auto& base) { return strictly_below(path, base); });
}

}  // namespace

void AgentExecutor::note_uses(const std::string& node, NodeAgent& agent, const Tell& tell,
                              bool everything) {
  for (const Use& use : tell.uses) {
    if (!use.usage) {
      usage_.forget(node, use.path);
      continue;
    }
    if (!is_below_any(use.path, agent.base_paths)) continue;
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

void AgentExecutor::keep_below_bases(const NodeAgent& agent, std::vector<Listed>& directories) {
  std::set<std::string_view> seen;
  std::vector<Listed> kept;
  kept.reserve(directories.size());
  for (Listed& one : directories) {
    if (!is_below_any(one.path, agent.base_paths) || seen.contains(one.path)) continue;
    kept.push_back(std::move(one));
    seen.insert(kept.back().path);  // it stays where it is: there is room for all
  }
  directories = std::move(kept);
}

AgentExecutor::WorkPlaces AgentExecutor::work_places(const NodeAgent& agent) {
  WorkPlaces places;
  for (const auto& [name, entry] : agent.works) {
    const auto& operation = *entry->operation;
    places.paths.insert(operation.path);
    if (const auto place = place_of(operation); place.ok()) places.ids.insert(place->volume_id);
  }
  return places;
}

bool AgentExecutor::WorkPlaces::has(const Listed& directory) const {
  const std::string& path = directory.path;
  // What no record tells of shows by its name only whose it is.
  if (!base_of_leftover(directory).empty() && ids.contains(directory.id)) return true;
  for (std::string_view above = path; !above.empty(); above = above.substr(0, above.rfind('/'))) {
    if (paths.contains(above)) return true;
  }
  const auto below = paths.lower_bound(path + '/');
  return below != paths.end() && below->starts_with(path + '/');
}

std::vector<OrphanBoard::Entry> AgentExecutor::orphans() const {
  auto entries = orphans_.all();
  const auto there = present_nodes();
  std::map<std::string, WorkPlaces> works;  // by node
  {
    MutexLock lock(mutex_);
    for (auto& entry : entries) {
      const auto agent = agents_.find(entry.node);
      if (agent == agents_.end() || !there.contains(entry.node)) continue;
      for (const Base& base : agent->second.bases) {
        if (strictly_below(entry.listed.path, base.path)) entry.disk = base.identity;
      }
      const auto [it, is_new] = works.try_emplace(entry.node);
      if (is_new) it->second = work_places(agent->second);
    }
  }
  std::erase_if(entries, [&](const auto& entry) {
    const auto at = works.find(entry.node);
    return at == works.end() || at->second.has(entry.listed);
  });
  return entries;
}

void AgentExecutor::bases_changed() {
  std::map<std::string, std::vector<std::string>> wanted;
  {
    MutexLock lock(mutex_);
    for (const auto& [node, agent] : agents_) wanted[node];
  }
  for (auto& [node, base_paths] : wanted) base_paths = surroundings_.base_paths(node);
  Effects effects;
  {
    MutexLock lock(mutex_);
    for (auto& [node, base_paths] : wanted) {
      const auto it = agents_.find(node);
      if (it == agents_.end() || it->second.base_paths == base_paths) continue;
      it->second.base_paths = base_paths;
      if (it->second.was_doubted) {
        end_session(it->second, effects);
        continue;
      }
      (void)order(it->second,
                  {.order = {.what = Order::What::kBases, .base_paths = std::move(base_paths)}},
                  effects);
    }
  }
  perform(effects);
}

}  // namespace lpp::agent
