// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "harness/kube.h"

namespace lpp::testing {

/// Asks for a token of an account (TokenRequest); `pod`: bound to that pod, "" = to none.
Result<std::string> request_token(Kube& admin, const k8s::ObjectKey& account,
                                  const std::vector<std::string>& audiences,
                                  const std::string& pod = {});

/// What an agent on the node shows the controller: a token of the account of the agents, bound to
/// a pod of that account on that node. Account and pod are made if they are missing.
Result<std::string> agent_token(Kube& admin, const std::string& ns, const std::string& node,
                                std::string pod = "");

inline constexpr const char* kAgentAccount = "local-path-provisioner-agent";

}  // namespace lpp::testing
