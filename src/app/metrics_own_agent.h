// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/agent.h"
#include "agent/agent_client.h"
#include "app/metric_family.h"

namespace lpp::app {

/// The text of an agent's own /metrics; what the controller knows of its agents is in
/// metrics_agents.cpp. As there, nothing is kept for it. Thread-safe.
class OwnAgentMetrics {
 public:
  /// Both must outlive this.
  OwnAgentMetrics(agent::Agent& agent, const agent::AgentClient& client);

  std::string render() const { return render_text(collectors_); }

 private:
  Collectors collectors_{};
};

}  // namespace lpp::app
