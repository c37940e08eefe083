// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <unordered_map>

#include "agent/identity.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "k8s/api_client.h"

namespace lpp::agent {

/// Says whose token it is, by the API server's word (TokenReview with our audience): an agent is
/// the account of the agents, in a pod, on a node. What was answered is remembered for two minutes,
/// or until the token ends. Thread-safe; blocks while the API server is asked. The client must
/// outlive it.
class TokenReviewer {
 public:
  struct Settings {
    std::string ns{};               // of the agents
    std::string service_account{};  // of the agents
  };
  static constexpr std::size_t kRemembered = 2000;  // half of them refusals at most

  TokenReviewer(k8s::ApiClient& client, Clock& clock, Settings settings)
      : client_(client), clock_(clock), settings_(std::move(settings)) {}

  /// kUnauthorized: not a token, or one that the API server does not know, or not for us.
  /// kForbidden: of somebody who is no agent, or of a pod without a node. Any other error: it
  /// cannot be told now.
  Result<AgentIdentity> check(const std::string& token);

 private:
  struct Known {
    std::string digest{};
    Result<AgentIdentity> answer;
    TimePoint until{};
  };
  using Entries = std::list<Known>;  // newest first

  Result<AgentIdentity> ask(const std::string& token);
  Result<AgentIdentity> identify(const nlohmann::json& user);
  Result<std::string> node_of_pod(const std::string& pod, const std::string& uid);
  void remember(std::string digest, Result<AgentIdentity>& answer, const std::string& token);

  k8s::ApiClient& client_;
  Clock& clock_;
  const Settings settings_;
  Mutex mutex_;
  Entries entries_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entries::iterator> index_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::agent
