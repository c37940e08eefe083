// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/findings.h"
#include "config/config.h"

/// The checks of `check`. All but check_cluster() are pure.
namespace lpp::cli {

/// config.json; the configuration if it is valid.
std::optional<config::Config> check_config(const std::string& place, std::string_view text,
                                           Findings& findings);

/// helperPod.yaml.
void check_template(const std::string& place, std::string_view text, bool allow_unsafe,
                    Findings& findings);

/// A ConfigMap of ours: both texts and the scripts. `config` is set if it holds a valid one.
void check_config_map(const nlohmann::json& config_map, const std::string& place, bool allow_unsafe,
                      std::optional<config::Config>& config, Findings& findings);

/// Helper pods that are to run scripts in our own image, which has no shell. `place`: of the
/// configuration; the template is the ConfigMap's.
void check_helper_image(const Installation& installation, const nlohmann::json& config_map,
                        const config::Config& config, const std::string& place, Findings& findings);

/// A StorageClass of ours; without a configuration only what does not depend on it. `agents`: they
/// know what scripts may not.
void check_class(const nlohmann::json& storage_class, const std::string& place,
                 const config::Config* config, Findings& findings, bool agents = false);

/// The namespace of the helper pods: does Pod Security admission let them in?
void check_namespace(const nlohmann::json& ns, const std::string& place, Findings& findings);

/// Nodes of which classes get no path, and entries for nodes that do not exist.
void check_nodes(const config::Config& config, const std::set<std::string>& nodes,
                 const std::vector<std::string>& classes, const std::string& place,
                 Findings& findings);

/// A right that the daemon needs.
struct Right {
  enum class Name { kAny, kConfigMap, kLease, kAgentsSecret, kAgentsConfigMap, kKubeSystem };
  std::string_view group;
  std::string_view resource;  // "pods" or "pods/log"
  std::string_view verb;
  bool in_namespace = false;     // in the provisioner's namespace only
  std::string_view otherwise{};  // what does not work without it; "" = nothing works
  Name name = Name::kAny;        // only of the object that is called so
};

/// All of them: those that deploy/local-path-storage.yaml grants.
std::vector<Right> needed_rights();

/// With --agents besides: those that deploy/agents/rbac.yaml grants.
std::vector<Right> agent_rights();

/// The running cluster: the installation, its rights, namespace and ConfigMap, classes, nodes, and
/// what is stuck. A configuration and classes from files go before those of the cluster.
struct FileChecks {
  std::optional<config::Config> config{};
  bool has_config = false;  // config may still be nothing: then it is not valid
};
void check_cluster(Cluster& cluster, Context& context, const FlagReader& flags,
                   const FileChecks& files, Findings& findings);

/// `check`.
extern const Command kCheckCommand;

}  // namespace lpp::cli
