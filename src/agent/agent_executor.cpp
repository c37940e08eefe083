// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_executor.h"

#include <algorithm>

#include "agent/executor_names.h"
#include "agent/work.h"
#include "base/log.h"
#include "base/strings.h"
#include "operation/record.h"

// Its beginning, its end and its records. Operations are in agent_operations.cpp, what is told of
// them in agent_progress.cpp, what agents say in agent_sessions.cpp.

namespace lpp::agent {

using operation::Id;
using operation::Operation;

AgentExecutor::AgentExecutor(Clock& clock, operation::PathLedger& ledger, Settings settings,
                             Surroundings surroundings)
    : clock_(clock),
      ledger_(ledger),
      settings_(std::move(settings)),
      surroundings_(std::move(surroundings)),
      load_(clock, settings_.most_per_node, settings_.most_removals) {}

AgentExecutor::~AgentExecutor() { end(Duration::zero()); }

void AgentExecutor::on_presence(std::function<void(const std::string&)> changed) {
  presence_changed_ = std::move(changed);
}

void AgentExecutor::begin(operation::Owner owner) {
  owner_.set(std::move(owner));
  MutexLock lock(mutex_);
  active_ = true;
  all_expected_ = true;
  begun_ = clock_.now();
}

/// Another process may lead: what it does with what is on record is not known here.
void AgentExecutor::end(Duration /*limit*/) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    active_ = false;
    for (auto& [node, agent] : agents_) {
      if (agent.held) effects.answers.emplace_back(std::move(agent.held->answer), not_active());
      for (const auto& [name, entry] : agent.works) {
        ledger_.remove(entry->operation);
        (void)load_.ended(*entry->operation, name);
      }
    }
    agents_.clear();
    usage_.forget_all();
    orphans_.forget_all();
    by_volume_.clear();
    absences_.clear();
  }
  owner_.clear();
  perform(effects);
}

void AgentExecutor::perform(const Effects& effects) const {
  for (const auto& [answer, orders] : effects.answers) answer(orders);
  for (const auto& node : effects.nodes) {
    if (presence_changed_) presence_changed_(node);
  }
  for (const auto& [removal, why] : effects.not_put_back) {
    surroundings_.not_put_back(*removal, why);
  }
  wake(effects.woken);
  owner_.call([&](const operation::Owner& owner) {
    for (const auto& node : effects.sights) {
      if (owner.wake_node) owner.wake_node(node);
    }
  });
}

void AgentExecutor::wake(const std::vector<Woken>& woken) const {
  owner_.call([&](const operation::Owner& owner) {
    for (const auto& [operation, is_ours] : woken) {
      const bool is_told = !is_ours && owner.wake_told;
      (is_told ? owner.wake_told : owner.wake)(*operation);
    }
  });
}

void AgentExecutor::node_changed(std::string_view node) {
  Effects effects;
  {
    MutexLock lock(mutex_);
    const auto it = agents_.find(std::string(node));
    if (it == agents_.end()) return;
    for (const auto& [name, entry] : it->second.works) effects.wake(*entry);
  }
  wake(effects.woken);
}

AgentExecutor::EntryPtr AgentExecutor::add(NodeAgent& agent,
                                           std::shared_ptr<const Operation> operation) {
  auto entry = std::make_shared<Entry>();
  entry->operation = std::move(operation);
  entry->since = clock_.now();
  const std::string name = name_of(entry->operation->id());
  ledger_.add(entry->operation);
  load_.began(*entry->operation, name);
  agent.works.emplace(name, entry);
  by_volume_[entry->operation->volume_name].push_back(entry);
  return entry;
}

void AgentExecutor::drop(NodeAgent& agent, const EntryPtr& entry, Effects& effects) {
  const auto operation = entry->operation;
  const std::string name = name_of(operation->id());
  std::erase_if(agent.orders, [&](const Pending& pending) {
    return pending.entry == entry && pending.order.number > agent.last_given;
  });
  ledger_.remove(operation);
  effects.wake(load_.ended(*operation, name));
  effects.wake(*entry);
  agent.works.erase(name);
  const auto index = by_volume_.find(operation->volume_name);
  std::erase(index->second, entry);
  if (index->second.empty()) by_volume_.erase(index);
}

std::vector<AgentExecutor::EntryPtr> AgentExecutor::find(const Id& id) const {
  std::vector<EntryPtr> found;
  const auto it = by_volume_.find(id.volume_name);
  if (it == by_volume_.end()) return found;
  for (const auto& entry : it->second) {
    if (entry->operation->id() == id) found.push_back(entry);
  }
  return found;
}

}  // namespace lpp::agent
