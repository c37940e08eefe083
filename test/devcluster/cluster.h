// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/server.h"
#include "devcluster/controllers/controllers.h"
#include "devcluster/node/nodes.h"

/// A Kubernetes cluster in one process, for trying and testing: an in-memory API server good enough
/// for kubectl, the control loops that the life of a volume needs, and nodes that really run pods
/// (as processes over a static busybox, see sandbox.h). Nothing outlives it but the folder.
namespace lpp::devcluster {

struct ClusterOptions {
  /// Everything on disk is below it: "nodes/<name>" are the nodes' disks. Made if missing; "" is a
  /// temporary folder that goes with the cluster.
  std::string folder{};
  std::vector<std::string> nodes{"node-1", "node-2"};
  int port = 0;  // of the API server; 0: any free one
  /// Image repositories that stand for busybox besides its own.
  std::set<std::string> known_images{};
  /// Images of their own: repository -> folder with the root file system, which outlives the
  /// cluster.
  std::map<std::string, std::string> images{};
  std::string shared_path{};  // where every node has mounted one and the same folder; "" = nowhere
  Duration restart_back_off = std::chrono::seconds(10);
  bool run_controllers = true;  // from the beginning
  ApiServer::Options server{};  // `port` above wins
  Registry::Options registry{};
};

/// Owns all parts. Thread-safe except for stop().
class Cluster {
 public:
  /// A cluster that is ready for requests, or what is missing on this machine.
  static Result<std::unique_ptr<Cluster>> start(ClusterOptions options = {});
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// Ends connections, kills all pods, ends all threads. Repeatable.
  void stop();

  /// For a cluster that began without them; once.
  void start_controllers() { controllers_->start(); }

  const std::string& folder() const { return folder_; }
  /// The administrator's kubeconfig file.
  const std::string& kubeconfig() const { return kubeconfig_; }
  /// Writes a kubeconfig with a new token of the ServiceAccount; returns its path.
  Result<std::string> service_account_kubeconfig(const std::string& ns, const std::string& name);
  /// The folder that is "/" on the node; "" for an unknown one.
  std::string disk_root(const std::string& node) const { return nodes_->disk_root(node); }

  Registry& registry() { return registry_; }
  ApiServer& server() { return *server_; }
  FaultRules& faults() { return server_->faults(); }
  Nodes& nodes() { return *nodes_; }

  /// Creates an object directly in the registry; one that exists is replaced.
  Result<void> apply(const nlohmann::json& object);
  /// "12:00:01 Warning ProvisioningFailed: text" for each event about the object, oldest first.
  std::vector<std::string> events_about(const std::string& kind, const std::string& ns,
                                        const std::string& name) const;

 private:
  explicit Cluster(ClusterOptions options);
  Result<void> start_parts();

  const ClusterOptions options_;
  std::string folder_;
  bool temporary_ = false;
  std::string kubeconfig_;
  SystemClock clock_;
  Registry registry_;
  std::unique_ptr<ApiServer> server_;
  std::unique_ptr<Controllers> controllers_;
  std::unique_ptr<Nodes> nodes_;
};

}  // namespace lpp::devcluster
