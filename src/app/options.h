// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/log.h"
#include "cli/command.h"
#include "provisioner/served_names.h"

namespace lpp::app {

/// Client-side limit of API calls, as --kube-client-qps and --kube-client-burst ask for it.
struct ClientThrottle {
  double qps = 5;
  int burst = 10;
  bool operator==(const ClientThrottle&) const = default;
};

/// --leader-elect…: Kubernetes' names. Checked: lease > renew deadline > 1.2 x retry period.
struct LeaderElection {
  bool enabled = false;  // our manifest and chart switch it on
  std::chrono::seconds lease_duration{15};
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry_period{2};
  std::string resource_name{};       // from the provisioner's name unless given
  std::string resource_namespace{};  // the daemon's namespace unless given
  bool operator==(const LeaderElection&) const = default;
};

/// Everything `start` was told by flags and environment, checked (rule B1). A plain value.
struct Options {
  bool debug = false;
  log::Level log_level = log::Level::kInfo;  // kDebug with --debug
  log::Format log_format = log::Format::kText;
  std::string config{};  // file if it ends in .json, else JSON text; "" = the ConfigMap's key
  std::string provisioner_name{};
  /// Whose classes' free space the scheduler is told; "" = nobody's.
  std::string capacity_provisioner_name{};
  std::string namespace_name{};
  std::string helper_image{};
  std::string kubeconfig{};
  std::string configmap_name{};
  std::string service_account_name{};
  std::string helper_pod_file{};    // "" = the ConfigMap's key helperPod.yaml
  std::string config_mount_path{};  // CONFIG_MOUNT_PATH: helperPod.yaml is re-read from there
  int worker_threads = 16;
  int helper_pods_per_node = 50;      // 0 = no limit
  int provisioning_retry_count = 15;  // 0 = for ever
  int deletion_retry_count = 15;      // 0 = for ever
  bool agents = false;                // node agents are served
  int agents_port = 8443;             // 0 = any free port
  std::string agents_service{};       // under which they reach us
  std::string agents_service_account{};
  bool bind_claims = true;  // else only the control plane's binder does
  bool allow_unsafe_helper_pod_template = false;
  std::optional<ClientThrottle> client_throttle{};  // nullopt = no limit on our side
  int health_port = 8080;                           // 0 = any free port
  bool metrics = true;                              // /metrics, /usage and /orphans on that port
  bool statusz = true;                              // /statusz on that port
  LeaderElection leader_election{};
  std::vector<std::string> warnings{};  // accepted, but worth a log line

  provisioner::ServedNames served_names() const {
    return {provisioner_name, capacity_provisioner_name};
  }
};

/// Everything `agent` was told by flags and environment, checked. A plain value.
struct AgentOptions {
  log::Level log_level = log::Level::kInfo;
  log::Format log_format = log::Format::kText;
  std::vector<std::string> controllers{};  // URLs
  std::string ca_file{};
  std::string token_file{};
  std::string root{};                       // absolute
  std::chrono::seconds usage_interval{60};  // 0 = the usage of volumes is not told
  std::chrono::seconds sweep_after{3600};   // 0 = nothing is swept
  std::string node_name{};
  int health_port = 0;           // 0 = none
  std::string health_address{};  // "" = all
  bool operator==(const AgentOptions&) const = default;
};

/// The command line asked for text only (exit code 0: stdout), or was wrong (2: stderr).
struct PrintAndExit {
  std::string text{};
  int exit_code = 0;
};

/// What to do: one alternative per command.
using Invocation = std::variant<Options, AgentOptions, PrintAndExit, cli::Call>;

using cli::GetEnv;

/// Reads the command line as rule B1.1 says: `--f v`, `--f=v` and `-f v`; a flag wins
/// over its environment variable, that over the default; a boolean flag takes a value only by `=`.
/// `arguments` begin after the program's name; `program` is what messages call it. Pure; never
/// throws.
Invocation parse_command_line(const std::vector<std::string>& arguments, const GetEnv& getenv,
                              std::string_view program = "local-path-provisioner");

/// What the user called, from argv[0]: "local-path-provisioner" or "kubectl local-path".
std::string program_name(std::string_view argv0);

/// Reads the process's environment.
GetEnv process_environment();

/// The same for main() with the process's environment.
Invocation parse_command_line(int argc, const char* const* argv);

}  // namespace lpp::app
