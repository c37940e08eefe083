// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_pages.h"
#include "k8s/json_access.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

namespace lpp::cli {

using k8s::member, k8s::number, k8s::text;

namespace {

constexpr std::chrono::seconds kPatience{2};  // for each pod
constexpr int kHealthPort = 8080;

/// 0 = the pod is not one of the daemon, or does not run.
int health_port_of(const nlohmann::json& pod) {
  const nlohmann::json& spec = member(pod, "spec");
  const std::string name = daemon_container(spec);
  if (name.empty() || text(member(pod, "status"), "phase") != "Running") return 0;
  for (const auto& container : member(spec, "containers")) {
    if (text(container, "name") != name) continue;
    for (const auto& port : member(container, "ports")) {
      if (text(port, "name") == "health") return number(port, "containerPort", kHealthPort);
    }
  }
  return kHealthPort;
}

}  // namespace

Result<void> ask_daemon_pods(Cluster& cluster, const std::string& ns, std::string_view path,
                             const std::function<void(const nlohmann::json& page)>& take) {
  LPP_ASSIGN_OR_RETURN(const auto pods, cluster.list(k8s::kPods, ns), "look for the provisioner");
  k8s::ApiClient client = cluster.api().with({.call_timeout = std::min<std::chrono::milliseconds>(
                                                  cluster.patience(kPatience), kPatience)});
  std::optional<Error> failed =
      Error{ErrorCode::kNotFound, "no pod of the provisioner runs in namespace " + ns};
  bool answered = false;
  for (const auto& pod : pods) {
    const int port = health_port_of(pod);
    const k8s::ObjectKey key{ns, text(member(pod, "metadata"), "name")};
    if (port <= 0 || key.name.empty()) continue;
    const auto page = client.pod_page(key, port, path);
    if (page.ok()) {
      answered = true;
      take(*page);
      continue;
    }
    failed = Error(page.error()).wrap("ask pod " + key.to_string());
    if (page.error().is(ErrorCode::kForbidden)) return *failed;
  }
  if (!answered) return *failed;
  return {};
}

}  // namespace lpp::cli
