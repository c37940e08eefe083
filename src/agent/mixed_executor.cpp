// SPDX-License-Identifier: Apache-2.0
#include "agent/mixed_executor.h"

#include <algorithm>

namespace lpp::agent {

using operation::Admission;
using operation::Id;
using operation::Operation;
using operation::Progress;
using operation::Recorded;

namespace {

bool has(operation::Executor& executor, const Operation& operation) {
  const auto all = executor.recorded(operation.volume_name);
  return std::any_of(all.begin(), all.end(), [&](const Recorded& one) {
    return one.operation->kind == operation.kind && one.operation->attempt == operation.attempt;
  });
}

}  // namespace

MixedExecutor::MixedExecutor(AgentExecutor& agents, operation::Executor& others)
    : agents_(agents), others_(others) {
  agents_.on_presence([this](const std::string& node) { presence_changed(node); });
}

void MixedExecutor::begin(operation::Owner owner) {
  owner_.set(owner);
  agents_.begin(owner);
  others_.begin(std::move(owner));
}

void MixedExecutor::end(Duration limit) {
  agents_.end(limit);
  others_.end(limit);
  owner_.clear();
  MutexLock lock(mutex_);
  waiting_.clear();
}

/// An agent that was away may have what was begun anew elsewhere in the meantime, under the same
/// number. Then the one counts that may still act.
std::vector<Recorded> MixedExecutor::recorded(std::string_view volume_name) {
  auto all = others_.recorded(volume_name);
  for (auto& one : agents_.recorded(volume_name)) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Recorded& other) {
      return other.operation->id() == one.operation->id();
    });
    if (same == all.end()) {
      all.push_back(std::move(one));
    } else if (same->progress.over() && !one.progress.over()) {
      *same = std::move(one);
    }
  }
  return all;
}

Result<operation::Executor*> MixedExecutor::choose(const Operation& operation) const {
  operation::Executor* other = &others_;
  if (operation.shared || operation.node.empty()) return other;
  if (agents_.presence(operation.node) == Presence::kConnected) {
    if (agents_.sees(operation.node, operation.base_path)) return &agents_;
    if (auto may = agents_.may_be_done_unseen(operation); !may.ok()) return std::move(may).error();
    return other;
  }
  if (auto absent = agents_.check_absent(operation.node); !absent.ok()) {
    return std::move(absent).error();
  }
  return other;
}

Admission MixedExecutor::admit(const Operation& operation) {
  if (const auto executor = choose(operation); executor.ok()) return (*executor)->admit(operation);
  wait(operation);
  // It may have come in between, and then nobody would be woken.
  if (const auto executor = choose(operation); executor.ok()) return (*executor)->admit(operation);
  // Who waits for a moment only is not told why; else start() tells it.
  return agents_.presence(operation.node) == Presence::kExpected ? Admission() : Admission([] {});
}

void MixedExecutor::wait(const Operation& operation) {
  MutexLock lock(mutex_);
  auto& waiting = waiting_[operation.node];
  const bool waits = std::any_of(waiting.begin(), waiting.end(), [&](const auto& other) {
    return other->volume_name == operation.volume_name && other->kind == operation.kind;
  });
  if (!waits) waiting.push_back(std::make_shared<const Operation>(operation));
}

void MixedExecutor::presence_changed(const std::string& node) {
  std::vector<std::shared_ptr<const Operation>> woken;
  {
    MutexLock lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (!node.empty() && it->first != node) {
        ++it;
        continue;
      }
      woken.insert(woken.end(), it->second.begin(), it->second.end());
      it = waiting_.erase(it);
    }
  }
  for (const auto& operation : woken) owner_.wake(*operation);
}

Result<operation::Executor::Start> MixedExecutor::start(const Operation& operation) {
  if (has(agents_, operation)) return agents_.start(operation);
  if (!has(others_, operation)) {
    const auto executor = choose(operation);
    if (!executor.ok()) return executor.error();
    if (*executor == &agents_) return agents_.start(operation);
  }
  if (operation.kind != operation::Kind::kMake) return others_.start(operation);
  Operation make = operation;
  make.disk = agents_.disks_named(operation);
  return others_.start(make);
}

Result<void> MixedExecutor::cancel(const Id& id) {
  LPP_RETURN_IF_ERROR(agents_.cancel(id), "agents");
  return others_.cancel(id);
}

Result<bool> MixedExecutor::forget(const Id& id, When when) {
  LPP_ASSIGN_OR_RETURN(const bool by_agents, agents_.forget(id, when), "agents");
  LPP_ASSIGN_OR_RETURN(const bool by_others, others_.forget(id, when), "other executor");
  return by_agents && by_others;
}

Progress MixedExecutor::lost(const Operation& operation) const {
  const bool is_agents = !operation.shared && !operation.node.empty() &&
                         agents_.presence(operation.node) != Presence::kAbsent;
  const bool sees = agents_.presence(operation.node) != Presence::kConnected ||
                    agents_.sees(operation.node, operation.base_path);
  return is_agents && sees ? agents_.lost(operation) : others_.lost(operation);
}

Result<bool> MixedExecutor::can_resize(const Operation& operation) {
  const auto executor = choose(operation);
  if (!executor.ok()) return executor.error();
  return (*executor)->can_resize(operation);
}

std::string MixedExecutor::sight(const std::string& node, const std::string& base_path) const {
  return agents_.sight(node, base_path);
}

std::string MixedExecutor::why_unfit(const std::string& node, const std::string& base_path) const {
  return agents_.why_unfit(node, base_path);
}

void MixedExecutor::node_changed(std::string_view node) {
  agents_.node_changed(node);
  others_.node_changed(node);
}

}  // namespace lpp::agent
