// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/protocol.h"
#include "base/result.h"

/// Which version of the protocol a controller and an agent speak: hello says the newest that the
/// agent knows, welcome the newest that both know, and that one is spoken in the session. Each
/// refuses what is older than it knows, and names it.
namespace lpp::agent {

/// That is understood still. When kProtocol rises this stays one behind at least.
inline constexpr int kOldestProtocol = 1;

/// What a controller speaks with an agent that speaks `theirs` at most: the newest that both know.
/// kInvalid: that is older than `oldest`.
Result<int> spoken_with(int theirs, int newest = kProtocol, int oldest = kOldestProtocol);
/// Whether an agent can go on with what its controller has chosen; kInvalid: it cannot.
Result<void> check_spoken(const Welcome& welcome, int newest = kProtocol,
                          int oldest = kOldestProtocol);

}  // namespace lpp::agent
