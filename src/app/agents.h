// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "agent/agent_executor.h"
#include "agent/agent_server.h"
#include "agent/certificates.h"
#include "agent/mixed_executor.h"
#include "agent/token_reviewer.h"
#include "app/agent_pods.h"
#include "app/disk_news.h"
#include "app/options.h"
#include "app/subjects.h"
#include "base/sync.h"
#include "config/config.h"
#include "config/published.h"
#include "k8s/api_client.h"
#include "k8s/event_recorder.h"
#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/path_ledger.h"
#include "operation/space.h"
#include "provisioner/capacity_publisher.h"
#include "provisioner/named_disks.h"

namespace lpp::app {

/// The base paths of a node in the configuration, of every class; shared ones are nobody's.
std::vector<std::string> base_paths_of(const config::Config& config, const std::string& node);

/// What --agents adds to the daemon: agents work where they are, and `others` everywhere else.
/// Thread-safe; everything passed in must outlive it.
class Agents {
 public:
  struct Parts {
    const Options& options;
    const std::string& identity;  // of this process
    Clock& clock;
    k8s::ApiClient& client;
    k8s::ApiClient& leader_client;  // for what only the leader may write
    operation::PathLedger& ledger;
    operation::Executor& others;
    const config::Published<config::Config>& config;
    const k8s::Store<k8s::Node>& nodes;
    const k8s::Store<k8s::PersistentVolume>& volumes;
    const k8s::Store<k8s::PersistentVolumeClaim>& claims;
    k8s::EventSink& events;
    operation::SpaceBoard& space;
    std::function<bool()> leads;
  };
  explicit Agents(const Parts& parts);
  ~Agents();

  /// Opens the port, and serves agents once there is a certificate.
  Result<void> start();
  void stop();
  void config_changed() { agents_.bases_changed(); }

  operation::Executor& executor() { return mixed_; }
  /// Whether a node gets new volumes as it stands.
  provisioner::CapacityPublisher::IsServed is_served();
  AgentsSubject subject() const;
  std::vector<agent::AgentWork> oldest_works(const std::string& node) const {
    return agents_.oldest_works(node);
  }
  OrphansSubject orphans() const;
  /// Tells this cluster from others; "" = not known.
  std::string cluster() const;

 private:
  agent::AgentExecutor::Surroundings surroundings();
  Result<bool> is_node_gone(const std::string& node);
  Result<bool> has_agent_pod(const std::string& node);
  void tell_not_put_back(const operation::Operation& removal, const std::string& why) const;
  void tell_left_out(const std::string& node, const agent::LeftOut& what) const;
  OrphanScene scene(bool idle = true) const {
    return {parts_.volumes, parts_.claims, parts_.nodes, idle ? &parts_.ledger : nullptr};
  }
  /// Whether another attempt may tell more.
  bool learn_cluster();
  void keep_certificate(const std::stop_token& stop);

  const Parts parts_;
  provisioner::NamedDisks named_disks_{parts_.volumes, parts_.nodes};
  DiskNews disk_news_{parts_.events, parts_.nodes};
  agent::AgentExecutor agents_;
  agent::MixedExecutor mixed_;
  AgentPods pods_;
  agent::TokenReviewer reviewer_;
  agent::Certificates certificates_;
  std::unique_ptr<agent::AgentServer> server_;
  std::atomic<const agent::AgentServer*> counted_ = nullptr;  // pages are shown before it starts
  std::atomic<agent::WallTime> certificate_ends_ = agent::WallTime();  // of what is shown; 0 = none
  mutable Mutex mutex_;
  std::string cluster_ LPP_GUARDED_BY(mutex_);  // "" = not known
  std::string cluster_trouble_{};               // of the keeper's thread: what was logged
  std::jthread keeper_;
};

}  // namespace lpp::app
