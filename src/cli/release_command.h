// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace lpp::cli {

/// `release`: lets the claims go whose node was deleted from the cluster.
extern const Command kReleaseCommand;

}  // namespace lpp::cli
