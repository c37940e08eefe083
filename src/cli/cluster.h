// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.h"
#include "cli/text.h"
#include "config/config.h"
#include "k8s/api_client.h"
#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/operation.h"
#include "provisioner/served_names.h"

namespace lpp::cli {

/// Flags of all commands that look at a cluster.
std::span<const Flag> connection_flags();
bool asks_for_cluster(const FlagReader& flags);  // any of them is given
Result<ConnectionRequest> connection_request(const FlagReader& flags);
/// What is wrong with them becomes the reader's error.
void check_connection_flags(FlagReader& flags);
std::span<const Flag> installation_flags();
/// A command's own flags, and both of these: of a command that needs a cluster.
std::array<FlagGroup, 3> cluster_command_flags(std::span<const Flag> own);
/// -o of a command that prints a table unless told otherwise.
inline constexpr Flag kOutputFlag{.name = "output",
                                  .short_name = 'o',
                                  .placeholder = "FORMAT",
                                  .fallback_note = "a table",
                                  .help = "form of the output",
                                  .choices = "json|yaml"};
/// -o of a command that prints text for people unless told otherwise.
inline constexpr Flag kMachineOutputFlag{.name = "output",
                                         .short_name = 'o',
                                         .placeholder = "FORMAT",
                                         .help = "form of the output",
                                         .choices = "json|yaml"};

/// What the daemon's flags say of agents, and how a Service finds its pods.
struct InstalledAgents {
  bool on = false;                // --agents
  std::string service{};          // --agents-service
  std::string service_account{};  // --agents-service-account
  int port = 0;                   // --agents-port
  nlohmann::json pod_labels{};    // of the daemon's pods
  nlohmann::json pod_ports{};     // of the daemon's container
};

/// How the daemon is installed: from its Deployment, the flags, or the defaults.
struct Installation {
  std::string provisioner_name{};
  std::string capacity_provisioner_name{};  // served besides; "" = none
  std::string ns{};                         // of the ConfigMap and the helper pods
  std::string daemon_ns{};                  // of the daemon's own pods
  std::string config_map{};
  std::string service_account{};  // the daemon runs as
  k8s::ObjectKey lease{};
  bool allow_unsafe_template = false;
  std::string config_flag{};  // --config of the daemon, as it stands there
  std::string deployment{};   // "" = none was found
  std::string image{};
  std::string helper_image{};         // of helper pods whose template names none
  std::vector<std::string> others{};  // Deployments that the flags could mean, too
  int replicas = 0;
  int ready = 0;
  InstalledAgents agents{};

  provisioner::ServedNames names() const { return {provisioner_name, capacity_provisioner_name}; }
};

/// An open connection, and lists over it. One thread.
class Cluster {
 public:
  /// By connection_flags(). Errors say what was tried, or which flag is wrong (kInvalid).
  /// `patience`: of each call, unless --request-timeout says otherwise.
  static Result<std::unique_ptr<Cluster>> open(
      Context& context, const FlagReader& flags,
      std::optional<std::chrono::milliseconds> patience = {});

  const std::string& source() const { return connection_.source; }
  const std::string& default_namespace() const { return connection_.default_namespace; }
  k8s::ApiClient& api() { return client_; }
  k8s::Transport& transport() { return *connection_.transport; }

  /// The time limit for one call: --request-timeout, or what is usual for this one.
  std::chrono::milliseconds patience(std::chrono::milliseconds usual) const {
    return request_timeout_.value_or(usual);
  }

  /// The server's version, e.g. "v1.31.0": whether it can be reached, whoever asks.
  Result<std::string> version();

  /// Every object of a kind, page by page. Errors name the kind.
  Result<std::vector<nlohmann::json>> list(const k8s::Resource& resource, std::string_view ns = {},
                                           k8s::ListOptions options = {});

 private:
  Cluster(Connection connection, Clock& clock,
          std::optional<std::chrono::milliseconds> request_timeout);

  Connection connection_;
  std::optional<std::chrono::milliseconds> request_timeout_;
  k8s::ApiClient client_;
};

inline constexpr k8s::Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};

/// Every Deployment that runs this program's `start`, in the order of their names.
std::vector<Installation> installations(const std::vector<nlohmann::json>& deployments,
                                        const Context& context);

/// The words after `command` where the container runs it with this program; nullopt = it does not.
std::optional<std::vector<std::string>> program_arguments(const nlohmann::json& container,
                                                          std::string_view command);

/// Name of the container of a pod's spec that runs `start`; "" = none does.
std::string daemon_container(const nlohmann::json& pod_spec);

/// The installation that the flags mean: of the Deployments found the one that fits them, with what
/// is not known filled in from flags and defaults. Deployments that may not be listed count as
/// none. Of several one of ours goes before those of the other program of that name, which K3s and
/// kind bring, and one that runs before one that is stopped; a note says which it is.
Installation find_installation(Cluster& cluster, Context& context, const FlagReader& flags);
/// The same, without a note.
Installation choose_installation(const std::vector<Installation>& found, const FlagReader& flags);
/// The note.
void tell_which(const Installation& chosen, Context& context);

/// An Event, as far as it is shown.
struct EventNote {
  std::string type{};
  std::string reason{};
  std::string message{};
  std::string component{};
  std::string kind{};  // of the object it is about
  k8s::ObjectKey about{};
  std::string uid{};
  WallTime time{};  // of the last time
  int count = 1;
};
EventNote event_note(const nlohmann::json& event);

struct HelperPod {
  k8s::Pod pod{};
  operation::Operation operation{};
};

/// What commands know of a cluster. Filled by load() or from manifests; read by pure functions.
struct ClusterView {
  provisioner::ServedNames names{};
  std::string provisioner_namespace{};
  k8s::StoreWriter<k8s::PersistentVolumeClaim> claims{};
  k8s::StoreWriter<k8s::PersistentVolume> volumes{};      // of this provisioner
  k8s::StoreWriter<k8s::PersistentVolume> directories{};  // and those made by hand
  /// Of other provisioners, with what concerns ours: see reduced_to_place().
  k8s::StoreWriter<k8s::PersistentVolume> others{};
  std::vector<std::string> unreadable_volumes{};  // their names
  k8s::StoreWriter<k8s::StorageClass> classes{};
  k8s::StoreWriter<k8s::Node> nodes{};
  bool nodes_known = false;
  /// False where the right to list them is missing and a part of the answer was asked for.
  bool classes_known = true;
  bool volumes_known = true;
  std::vector<HelperPod> helper_pods{};
  std::vector<std::string> unreadable_helper_pods{};  // their names
  std::vector<EventNote> events{};                    // about claims and volumes, newest first
  std::vector<nlohmann::json> waiting_pods{};         // Pending, with the claims that they use
  std::optional<config::Config> config{};
  /// What could not be read, and what is therefore missing.
  std::vector<std::string> notes{};
};

/// What load() is to read besides claims, volumes and classes, which it must be able to read.
struct LoadOptions {
  std::string ns{};  // of the claims; "" = all
  /// Volumes and classes may be forbidden: permissions in the one namespace suffice for a part.
  bool part_suffices = false;
  bool helper_pods = true;
  bool events = true;
  bool nodes = true;
  bool waiting_pods = true;
  bool config = false;
};
Result<void> load(Cluster& cluster, const Installation& installation, const LoadOptions& options,
                  ClusterView& view);

/// The configuration in force, from --config of the daemon or the ConfigMap that was loaded; the
/// error says why it is not known.
Result<config::Config> config_in_force(const Installation& installation, const ClusterView& view);

/// Puts objects of any kind into the view; what is of no use there is left out. Unreadable ones are
/// noted.
void add_object(const nlohmann::json& object, ClusterView& view);

}  // namespace lpp::cli
