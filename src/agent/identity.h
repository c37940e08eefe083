#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace lpp::agent {

/// Who an agent is, as the API server vouches for it.
struct AgentIdentity {
  std::string node;
  std::string pod;
  bool operator==(const AgentIdentity&) const = default;
};

/// Whose token it is. May block on the API server; callable from any thread. kUnauthorized: nobody's;
/// kForbidden: somebody else's, the message says whose or what is missing; kUnavailable: it could not
/// be found out now.
using Authenticate = std::function<Result<AgentIdentity>(const std::string& token)>;

}  // namespace lpp::agent
