// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "provisioner/claim_decision.h"

namespace lpp::provisioner {

/// What is to be done for the binding of a claim whose own volume is there; nothing when it is
/// bound, or not for us to bind. Pure.
std::optional<ClaimDecision> decide_binding(const ClaimScene& scene);

/// Notes since when the claim is Lost, and since when its volume is there though nobody has asked
/// for it.
void note_waits(ClaimScene& scene);

}  // namespace lpp::provisioner
