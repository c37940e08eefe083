// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/command.h"

namespace lpp::app {

/// `start` with its flags, by group, without the global ones.
const cli::Command& start_command();

/// `agent`, as well.
const cli::Command& agent_command();

/// `start`, `agent` and the commands of src/cli, as the help lists them.
std::vector<const cli::Command*> all_commands();

}  // namespace lpp::app
