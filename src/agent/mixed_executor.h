// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/agent_executor.h"
#include "base/clock.h"
#include "base/sync.h"
#include "operation/executor.h"
#include "operation/owner_slot.h"

namespace lpp::agent {

/// Lets the agents work where they are, and another executor everywhere else: on nodes without an
/// agent, below base paths that an agent does not see (unless a certain disk has to be there), and
/// for shared file systems. What is on record stays with the executor that has it, to its end.
/// Nothing new begins on a node whose agent is expected, because it may have something on record,
/// or whose agent is not heard but has a pod. Thread-safe; both must outlive it.
class MixedExecutor final : public operation::Executor {
 public:
  using Operation = operation::Operation;

  MixedExecutor(AgentExecutor& agents, operation::Executor& others);

  void begin(operation::Owner owner) override;
  void end(Duration limit) override;
  std::vector<operation::Recorded> recorded(std::string_view volume_name) override;
  operation::Admission admit(const Operation& operation) override;
  Result<Start> start(const Operation& operation) override;
  Result<void> cancel(const operation::Id& id) override;
  Result<bool> forget(const operation::Id& id, When when) override;
  operation::Progress lost(const Operation& operation) const override;
  Result<bool> can_resize(const Operation& operation) override;
  std::string sight(const std::string& node, const std::string& base_path) const override;
  std::string why_unfit(const std::string& node, const std::string& base_path) const override;
  void node_changed(std::string_view node) override;

 private:
  /// Whoever is to do it now; kUnavailable as long as its node's agent is expected, or may be at
  /// work unheard.
  Result<operation::Executor*> choose(const Operation& operation) const;
  void wait(const Operation& operation);
  void presence_changed(const std::string& node);

  AgentExecutor& agents_;
  operation::Executor& others_;
  operation::OwnerSlot owner_;
  Mutex mutex_;
  /// Who was not admitted since the agent is expected, by node.
  std::map<std::string, std::vector<std::shared_ptr<const Operation>>> waiting_
      LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::agent
