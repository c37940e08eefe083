// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/findings.h"
#include "cli/manifests.h"
#include "config/config.h"

/// What `check` says of node agents. Without them helper pods do the work, so all of it is a
/// warning.
namespace lpp::cli {

/// What agents need beside the daemon, in its namespace. nullopt = not known; a null = there is
/// none.
struct AgentObjects {
  std::optional<std::vector<nlohmann::json>> daemon_sets{};
  std::optional<nlohmann::json> service{};  // --agents-service
  std::optional<nlohmann::json> account{};  // --agents-service-account
  std::optional<nlohmann::json> shown{};    // the ConfigMap with the certificates
  std::vector<nlohmann::json> policies{};   // NetworkPolicies that are known
  std::vector<std::string> missing{};       // roles that the files lack
};

/// From manifests that hold the daemon's Deployment: what is not in them is not there, but for
/// roles in files without any. Pure.
AgentObjects agents_in(const std::vector<ManifestObject>& objects,
                       const Installation& installation);

/// From the cluster; what may not be read becomes a warning.
AgentObjects agents_in(Cluster& cluster, const Installation& installation, Findings& findings);

/// A StorageClass whose directories get a limit.
bool has_limits(const nlohmann::json& storage_class);

/// For a daemon with --agents. `limited`: the classes with limits. Without a configuration paths
/// are not looked at. Pure.
void check_agents(const Installation& installation, const AgentObjects& seen,
                  const config::Config* config, const std::vector<std::string>& limited,
                  Findings& findings);

}  // namespace lpp::cli
