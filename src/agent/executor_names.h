// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <chrono>
#include <string>

#include "agent/protocol.h"
#include "base/result.h"
#include "operation/operation.h"

// Of the parts of AgentExecutor.

namespace lpp::agent {

/// So long an agent may take to come: after we have begun to lead, and after it was lost.
inline constexpr std::chrono::seconds kExpectedFor{10};

/// An agent that has its orders polls again at once; one that does not is lost.
inline constexpr std::chrono::seconds kSilence{15};

/// Different ids have different ones: only the last part may hold anything.
inline std::string name_of(const operation::Id& id) {
  return fmt::format("{}/{}/{}/{}", static_cast<int>(id.kind), id.attempt, id.volume_name.size(),
                     id.volume_name + id.owner_uid);
}

/// What of a base path decides whether something can be made or removed there; see
/// Executor::sight(). Not the words of a problem, which may change all the time.
inline std::string sight_of(const Base& base) {
  return base.problem.empty() ? base.identity : base.identity + "?";
}

/// Another process may lead.
inline Error not_active() {
  return {.code = ErrorCode::kUnavailable,
          .message = "this process does not lead",
          .reason = "not_leading"};
}

}  // namespace lpp::agent
