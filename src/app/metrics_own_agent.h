// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/agent.h"
#include "agent/agent_client.h"

namespace lpp::app {

/// The text of an agent's own /metrics; what the controller knows of its agents is in
/// metrics_agents.cpp. As there, nothing is kept for it. Thread-safe.
std::string own_agent_metrics(agent::Agent& agent, const agent::AgentClient& client);

}  // namespace lpp::app
