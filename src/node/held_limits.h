// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "node/volumes.h"

namespace lpp::node {

/// Ids of volumes with limits on record that nothing holds them to now, as on a disk that has come
/// back mounted without its quota. Pure.
std::vector<std::string> limits_not_held(const BaseUsage& usage);

/// Those of them that do not hold because of what was done to the directory. Pure.
std::vector<std::string> limits_taken_off(const BaseUsage& usage);

}  // namespace lpp::node
