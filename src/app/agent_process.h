// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/options.h"
#include "node/kernel.h"

namespace lpp::app {

/// Runs a node's agent until a signal ends it: makes that run end, a removal stops where it is.
/// Returns the process's exit code: 0 after a signal, 1 when it cannot start. For main(), after
/// block_signals(). All it does with directories goes through that kernel.
int run_agent_until_signal(const AgentOptions& options, node::Kernel& kernel);

}  // namespace lpp::app
