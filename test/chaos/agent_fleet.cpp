// SPDX-License-Identifier: Apache-2.0
#include "chaos/agent_fleet.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include "chaos/tolerate.h"
#include "harness/agent_account.h"
#include "harness/file_text.h"
#include "harness/http_get.h"
#include "harness/installation.h"
#include "harness/process_probe.h"
#include "harness/sanitizer_report.h"

namespace lpp::testing {

namespace {

constexpr std::size_t kTail = 4000;

}  // namespace

Result<std::unique_ptr<AgentFleet>> AgentFleet::create(TestBed& bed, const Options& options) {
  std::unique_ptr<AgentFleet> fleet(new AgentFleet(bed, options));
  for (std::size_t i = 0; i < options.replicas; ++i) fleet->ports_.push_back(free_port());
  for (const auto& machine : options.machines) {
    Agent agent{.root = bed.on_disk(machine, ""),
                .log_file = options.folder + "/agent-" + machine + ".log"};
    for (const int port : fleet->ports_) {
      LPP_ASSIGN_OR_RETURN(auto line, TcpRelay::start(port), "agents");
      agent.lines.push_back(std::move(line));
    }
    fleet->agents_[machine] = std::move(agent);
  }
  return fleet;
}

AgentFleet::~AgentFleet() {
  for (auto& [machine, agent] : agents_) agent.process.reset();
}

std::vector<std::string> AgentFleet::daemon_args(std::size_t replica) const {
  return {"--agents", "--agents-port", std::to_string(ports_.at(replica))};
}

Result<void> AgentFleet::take_ca() {
  const k8s::ObjectKey key{kDaemonNamespace, "local-path-provisioner-agents-ca"};
  return wait_until(
      "the agents' certificate is there",
      [&]() -> std::string {
        const auto map = bed_.admin().get(k8s::kConfigMaps, key);
        if (!map.ok()) return map.error().message;
        const std::string pem = (*map)["data"].value("ca.crt", "");
        if (pem.empty()) return "it is empty";
        std::ofstream(options_.folder + "/ca.crt") << pem;
        return "";
      },
      bed_.patience());
}

std::vector<std::string> AgentFleet::machines() const {
  std::vector<std::string> names;
  for (const auto& [machine, agent] : agents_) names.push_back(machine);
  return names;
}

Result<void> AgentFleet::start(const std::string& machine, const std::string& node) {
  Agent& agent = agents_.at(machine);
  if (agent.process != nullptr || agent.dead) return {};
  LPP_ASSIGN_OR_RETURN(const std::string token, agent_token(bed_.admin(), kDaemonNamespace, node),
                       "agent on " + node);
  agent.node = node;
  // As the mounts of its pod do.
  for (const auto& base : bed_.base_paths()) {
    std::error_code error;
    std::filesystem::create_directories(agent.root + base, error);
    if (error) return Error{.message = "agent on " + node + ": " + base + ": " + error.message()};
  }
  const std::string token_file = options_.folder + "/agent-" + machine + ".token";
  std::ofstream(token_file) << token;
  std::string controllers;
  for (const auto& line : agent.lines) {
    controllers +=
        (controllers.empty() ? "" : ",") + ("https://127.0.0.1:" + std::to_string(line->port()));
  }
  LPP_ASSIGN_OR_RETURN(agent.process,
                       AgentProcess::start({.program = options_.program,
                                            .controller = controllers,
                                            .ca_file = options_.folder + "/ca.crt",
                                            .token_file = token_file,
                                            .root = agent.root,
                                            .args = {"--node-name", node, "--debug"},
                                            .log_file = agent.log_file}),
                       "agent on " + node);
  agent.frozen = false;
  return {};
}

void AgentFleet::kill(const std::string& machine) {
  Agent& agent = agents_.at(machine);
  agent.process.reset();
  agent.frozen = false;
}

Result<void> AgentFleet::uninstall(const std::string& machine) {
  kill(machine);
  Agent& agent = agents_.at(machine);
  if (agent.node.empty()) return {};
  const std::string pod = "agent-" + std::exchange(agent.node, "");
  return tolerate(bed_.admin().remove(k8s::kPods, {kDaemonNamespace, pod}, 0));
}

void AgentFleet::freeze(const std::string& machine) {
  Agent& agent = agents_.at(machine);
  agent.frozen = true;
  if (agent.process == nullptr) return;
  (void)testing::freeze(agent.process->pid());
}

void AgentFleet::let_run(Agent& agent) {
  if (agent.process != nullptr && !agent.frozen && !agent.dead) agent.process->signal(SIGCONT);
}

void AgentFleet::thaw(const std::string& machine) {
  Agent& agent = agents_.at(machine);
  agent.frozen = false;
  let_run(agent);
}

void AgentFleet::set_dead(const std::string& machine, bool dead) {
  Agent& agent = agents_.at(machine);
  agent.dead = dead;
  if (!dead) return let_run(agent);
  if (agent.process == nullptr) return;
  (void)testing::freeze(agent.process->pid());
}

void AgentFleet::cut(const std::string& machine) {
  for (const auto& line : agents_.at(machine).lines) line->cut();
}

void AgentFleet::partition(const std::string& machine, bool told) {
  for (const auto& line : agents_.at(machine).lines) {
    if (!told) {
      line->hold(true);
      continue;
    }
    line->refuse(true);
    line->cut();
  }
}

void AgentFleet::heal(const std::string& machine) {
  for (const auto& line : agents_.at(machine).lines) {
    line->refuse(false);
    line->hold(false);
  }
}

Result<void> AgentFleet::end_faults(const std::map<std::string, std::string>& nodes_by_machine) {
  for (auto& [machine, agent] : agents_) {
    heal(machine);
    thaw(machine);
    LPP_RETURN_IF_ERROR(start(machine, nodes_by_machine.at(machine)), "agents");
  }
  return {};
}

Result<void> AgentFleet::check() {
  for (const auto& [machine, agent] : agents_) {
    if (agent.process != nullptr && !agent.process->alive()) {
      return Error{.message = "the agent on " + machine + " ended by itself"};
    }
    const std::string report = sanitizer_report(text_of(agent.log_file));
    if (!report.empty()) return Error{.message = report};
  }
  return {};
}

std::string AgentFleet::log_tails() const {
  std::string all;
  for (const auto& [machine, agent] : agents_) {
    std::string text = text_of(agent.log_file);
    if (text.size() > kTail) text = text.substr(text.size() - kTail);
    all += "\nthe end of " + agent.log_file + ":\n" + text;
  }
  return all;
}

}  // namespace lpp::testing
