// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/api_client.h"

namespace lpp::app {

/// Whether an agent that is not heard may be at work on a node, by its pods there. A pod does not
/// count when its containers have not been started for a minute, as with an image that cannot be
/// pulled: no agent is in it. That is believed only of a node whose kubelet is heard all the time,
/// for what another one runs nobody knows; and of no pod whose agent was heard. Thread-safe; asks
/// the API server, and must not outlive the client and the clock.
class AgentPods {
 public:
  struct Settings {
    std::string ns{};               // of the agents
    std::string service_account{};  // of the agents: their label is the administrator's to choose
  };
  static constexpr std::chrono::seconds kStartsWithin{60};

  AgentPods(k8s::ApiClient& client, Clock& clock, Settings settings)
      : client_(client), clock_(clock), settings_(std::move(settings)) {}

  /// `heard`: the name of the pod whose agent was heard last there, "" = none. The log says once
  /// why a pod does not count. kForbidden: the pods may not be listed.
  Result<bool> may_work(const std::string& node, const std::string& heard);

  /// The nodes with such a pod, never mind their kubelets and who was heard: for what may be wrong
  /// for a while. One question for all nodes, once in kAskAgain.
  Result<std::set<std::string>> nodes_with_one(const std::stop_token& stop);
  static constexpr std::chrono::seconds kAskAgain{60};

 private:
  struct Waiting {
    TimePoint since{};  // seen, and the kubelet with it
    bool told = false;
  };
  /// By UID.
  using Pods = std::map<std::string, Waiting>;

  Result<std::set<std::string>> list_nodes(const std::stop_token& stop);
  Result<bool> is_ready(const std::string& node);
  bool is_overdue(const std::string& node, const std::map<std::string, nlohmann::json>& pods);

  k8s::ApiClient& client_;
  Clock& clock_;
  const Settings settings_;
  Mutex mutex_;
  std::map<std::string, Pods> waiting_ LPP_GUARDED_BY(mutex_);  // by node
  std::optional<TimePoint> listed_at_ LPP_GUARDED_BY(mutex_);
  Result<std::set<std::string>> listed_ LPP_GUARDED_BY(mutex_) = std::set<std::string>();
};

}  // namespace lpp::app
