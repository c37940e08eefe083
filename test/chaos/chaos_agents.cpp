// SPDX-License-Identifier: Apache-2.0
// The part of node agents in a chaos run.

#include "chaos/chaos_run.h"

namespace lpp::testing {

Result<void> ChaosRun::start_agents() {
  LPP_RETURN_IF_ERROR(agents_->take_ca(), "agents");
  return end_faults_of_agents();
}

void ChaosRun::trouble_machine(const std::string& machine) {
  const auto trouble = troubles_.find(machine);
  const ClusterFaults::NodeTrouble now =
      trouble == troubles_.end() ? ClusterFaults::NodeTrouble() : trouble->second;
  cluster_.trouble_node(known_name(machine), now);
  if (agents_ != nullptr && agents_->has(machine)) agents_->set_dead(machine, now.dead);
}

/// Its agent goes with it, and its agent's pod.
Result<void> ChaosRun::machine_goes(const std::string& machine) {
  if (agents_ == nullptr || !agents_->has(machine)) return {};
  LPP_RETURN_IF_ERROR(keep_disks_of(machine), "agents");
  return agents_->uninstall(machine);
}

Result<void> ChaosRun::machine_comes(const std::string& machine) {
  if (agents_ == nullptr || !agents_->has(machine)) return {};
  agents_->set_dead(machine, false);
  return agents_->start(machine, known_name(machine));
}

Result<void> ChaosRun::end_faults_of_agents() {
  if (agents_ == nullptr) return {};
  std::map<std::string, std::string> names;
  for (const auto& machine : agents_->machines()) names[machine] = known_name(machine);
  return agents_->end_faults(names);
}

Result<void> ChaosRun::agent_step(const Step& step) {
  const auto machines = agents_->machines();
  const std::string& machine = machines[step.a % machines.size()];
  switch (step.kind) {
    case StepKind::kKillAgent:
      agents_->kill(machine);
      // Most come back at once, as the kubelet sees to it.
      if (step.b % 3 == 0 || model_.gone_nodes.contains(machine)) return {};
      return agents_->start(machine, known_name(machine));
    case StepKind::kStartAgent:
      if (model_.gone_nodes.contains(machine)) return {};
      return agents_->start(machine, known_name(machine));
    case StepKind::kRemoveAgent: return machine_goes(machine);
    case StepKind::kFreezeAgent: agents_->freeze(machine); return {};
    case StepKind::kThawAgent: agents_->thaw(machine); return {};
    case StepKind::kCutAgent: agents_->cut(machine); return {};
    case StepKind::kPartitionAgent: agents_->partition(machine, step.b % 2 == 0); return {};
    default: agents_->heal(machine); return {};
  }
}

}  // namespace lpp::testing
