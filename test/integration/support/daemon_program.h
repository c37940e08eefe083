// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>

#include "fakes/setting.h"
#include "places/places.h"

namespace lpp::testing {

/// The daemon that is tested: of this build, or of another one that uses this build's test beds.
inline std::string daemon_program() {
  return setting("LPP_DAEMON").value_or(built("src/local-path-provisioner"));
}

/// Sanitizers make the daemon several times slower.
inline bool is_sanitized() { return setting("LPP_SANITIZED").has_value(); }

}  // namespace lpp::testing
