// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

#include "places/places.h"

namespace lpp::testing {

/// The daemon that is tested: of this build, or of another one that uses this build's test beds.
inline std::string daemon_program() {
  const char* const other = std::getenv("LPP_DAEMON");  // NOLINT(concurrency-mt-unsafe): read only
  return other != nullptr ? other : built("src/local-path-provisioner");
}

/// Sanitizers make the daemon several times slower.
inline bool is_sanitized() {
  return std::getenv("LPP_SANITIZED") != nullptr;  // NOLINT(concurrency-mt-unsafe): read only
}

}  // namespace lpp::testing
