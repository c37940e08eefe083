#pragma once

#include <string>

namespace lpp::agent {

/// Who an agent is, by what the API server says of its token; never by its own words.
struct AgentIdentity {
  std::string node;
  std::string pod;
};

}  // namespace lpp::agent
