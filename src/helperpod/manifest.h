// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

#include "helperpod/template.h"
#include "k8s/objects.h"
#include "operation/operation.h"

namespace lpp::helperpod {

/// Label on every helper pod, and the selector by which we watch only ours.
inline constexpr std::string_view kManagedByLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kProvisionerLabel = "local.path.provisioner/provisioner";
inline constexpr std::string_view kActionLabel = "local.path.provisioner/action";

/// What was ordered, and that what is not removed is put back when the pod is told to end.
inline constexpr const char* kOperationAnnotation = "local.path.provisioner/operation";
inline constexpr const char* kPutsBackAnnotation = "local.path.provisioner/puts-back";

/// What does not come from the template or the operation.
struct ManifestSettings {
  std::string provisioner_name{};  // its hash is the value of kProvisionerLabel
  std::string ns{};
  std::string service_account{};
  std::string config_map{};     // holds the scripts
  std::string helper_image{};   // used when the template names none
  std::string setup_command{};  // "" = /bin/sh /script/setup
  std::string teardown_command{};
  std::string resize_command{};
  bool beside_agents = false;  // agents may have begun what a helper pod goes on with
  /// Where agents may have worked: tells this cluster from others. "" = nobody knows; nullopt: no
  /// agents, and nothing is compared.
  std::optional<std::string> cluster{};
  std::chrono::seconds deadline{120};  // activeDeadlineSeconds
  std::size_t most_per_node = 0;       // helper pods at work at once; 0 = no limit
};

/// "local.path.provisioner/provisioner=<hash>": selects the helper pods of this provisioner.
std::string label_selector(std::string_view provisioner_name);

/// The second name of our own program, under which it does the work of helper pods: setupCommand,
/// teardownCommand and resizeCommand have no room for the word `node`.
inline constexpr std::string_view kNodeProgram = "local-path-node";

/// The script for a resize, by its key in the ConfigMap. It is there only if somebody wrote one.
inline constexpr std::string_view kResizeScript = "resize";
/// With this exit code it says that the directory cannot have the size.
inline constexpr int kInfeasibleExitCode = 3;
/// Of a script that has looked at the base path: this one of this node cannot serve it, as it has
/// no limits, is not mounted or is on another disk.
inline constexpr int kUnfitExitCode = 4;

/// Name of the helper pod for an operation on a volume: the same after a restart, valid for any
/// template and volume name, different for different volumes, actions and attempts.
std::string pod_name(std::string_view template_name, operation::Kind kind,
                     std::string_view volume_name, int attempt = 1);

/// The helper pod for an operation (rule B6.2), with the operation in its annotations.
/// kInvalid when the operation's path has no parent directory or leaf name, or when something of
/// the template stands in the way, such as a mount of ours with another meaning. Pure.
Result<nlohmann::json> make_pod(const Template& pod_template, const operation::Operation& operation,
                                const ManifestSettings& settings);

/// Reads the operation back from a helper pod's annotations; kInvalid when it is not one of ours.
Result<operation::Operation> operation_of(const k8s::Pod& pod);

/// Whether it puts back what it has not removed when it is told to end.
bool puts_back(const k8s::Pod& pod);

/// Whether a pod, as JSON, is a helper pod of rancher/local-path-provisioner: those have the names
/// of ours, none of our labels, and their own arguments. Pure.
bool is_of_former_program(const nlohmann::json& pod);

}  // namespace lpp::helperpod
