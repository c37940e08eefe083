// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace lpp::cli {

/// `sweep`: has directories removed that no volume shows.
extern const Command kSweepCommand;

}  // namespace lpp::cli
