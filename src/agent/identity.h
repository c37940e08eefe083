// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace lpp::agent {

/// Who an agent is, by what the API server says of its token; never by its own words.
struct AgentIdentity {
  std::string node;
  std::string pod;
  TimePoint good_until = TimePoint::max();  // then it is to be asked anew
};

/// Says whose token it is; may ask the API server and wait for it. kUnauthorized: nobody's, or not
/// for us; kForbidden: somebody's who is no agent; else it cannot be told now. Thread-safe.
using Authenticate = std::function<Result<AgentIdentity>(const std::string& token)>;

}  // namespace lpp::agent
