// SPDX-License-Identifier: Apache-2.0
#include "agent/protocol_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/log.h"

namespace lpp::agent {

Result<int> spoken_with(int theirs, int newest, int oldest) {
  if (theirs >= oldest) return std::min(theirs, newest);
  return invalid(fmt::format(
      "the agent speaks version {} of the protocol, this controller {} at least: update the agent",
      theirs, oldest));
}

Result<void> check_spoken(const Welcome& welcome, int newest, int oldest) {
  if (welcome.protocol >= oldest && welcome.protocol <= newest) return {};
  return invalid(fmt::format(
      "the controller ({}) speaks version {} of the protocol, this agent {}: {}",
      log::quoted(welcome.program), welcome.protocol,
      oldest == newest ? std::to_string(newest) : fmt::format("{} to {}", oldest, newest),
      welcome.protocol < oldest ? "update the controller" : "update the agent"));
}

}  // namespace lpp::agent
