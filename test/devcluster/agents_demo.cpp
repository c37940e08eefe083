// SPDX-License-Identifier: Apache-2.0
#include "devcluster/agents_demo.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "devcluster/json_names.h"
#include "devcluster/runtime/wait.h"
#include "harness/agent_account.h"
#include "harness/http_get.h"
#include "harness/installation.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

// What the DaemonSet mounts; the same as in config.json.
constexpr const char* kBasePath = "/opt/local-path-provisioner";
constexpr const char* kAuthority = "local-path-provisioner-agents-ca";

}  // namespace

AgentsDemo::AgentsDemo(DemoOptions options)
    : Demo(std::move(options)), port_(testing::free_port()) {}

std::vector<std::string> AgentsDemo::daemon_arguments() const {
  return {"--agents", "--agents-port", std::to_string(port_)};
}

Result<void> AgentsDemo::start_others() {
  LPP_RETURN_IF_ERROR(take_certificate(), "certificate");
  for (const ObjectPtr& node : cluster().registry().all("nodes", "")) {
    LPP_RETURN_IF_ERROR(start_agent(name_of(*node)), "agent");
  }
  for (const auto& [node, agent] : agents_) {
    LPP_RETURN_IF_ERROR(agent->wait_connected(kPatience), node);
  }
  const int most = agents_.empty() ? 0 : agents_.begin()->second->resident_kib();
  say("an agent on each of the " + std::to_string(agents_.size()) +
      " nodes is connected, without any permission in the cluster; one takes " +
      std::to_string(most / 1024) + " MiB");
  return {};
}

/// The kubelet would mount it into the agents' pods.
Result<void> AgentsDemo::take_certificate() {
  std::string pem;
  const ObjectRef map{"configmaps", testing::kDaemonNamespace, kAuthority};
  const auto holds_it = [&](const json* object) {
    pem = object == nullptr ? "" : text_at(*object, {"data", "ca.crt"});
    return !pem.empty();
  };
  LPP_RETURN_IF_ERROR(expect("it is in its ConfigMap", map, holds_it), "of the agents");
  std::ofstream(cluster().folder() + "/ca.crt") << pem;
  return {};
}

Result<void> AgentsDemo::start_agent(const std::string& node) {
  const std::string token_file = cluster().folder() + "/" + node + ".token";
  LPP_ASSIGN_OR_RETURN(const std::string token,
                       testing::agent_token(kube(), testing::kDaemonNamespace, node), "token");
  std::ofstream(token_file) << token;
  const std::string root = cluster().disk_root(node);
  std::filesystem::create_directories(root + kBasePath);
  auto agent =
      testing::AgentProcess::start({.program = options().daemon,
                                    .controller = "https://127.0.0.1:" + std::to_string(port_),
                                    .ca_file = cluster().folder() + "/ca.crt",
                                    .token_file = token_file,
                                    .root = root,
                                    .args = {"--node-name", node},
                                    .log_file = cluster().folder() + "/agent-" + node + ".log"});
  if (!agent.ok()) return std::move(agent).error();
  agents_[node] = *std::move(agent);
  return {};
}

Result<void> AgentsDemo::show() {
  LPP_RETURN_IF_ERROR(Demo::show(), "volume");
  if (!helper_pods().empty()) return invalid("there is a helper pod, beside the agents");
  say("from claim to Bound it took " + std::to_string(bound_after().count()) +
      " ms, the scheduler and the binder included; no helper pod was made");
  return {};
}

}  // namespace lpp::devcluster
