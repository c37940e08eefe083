// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "provisioner/claim_decision.h"

/// What was begun for a claim and is not wanted is cleared away: how, and by which questions that
/// the rest of the decision and the step ask, too. Pure.
namespace lpp::provisioner {

bool is_asked_for(const ClaimScene& scene);
bool is_counted(const ClaimScene& scene, const Make& make);

/// Whether what is done with the one directory can change the other: of two attempts the paths need
/// not be equal, for a pattern may have led elsewhere by now.
bool affect_each_other(const operation::Operation& a, const operation::Operation& b);

const DiskThere& disk_there(const ClaimScene& scene, const operation::Operation& place);

/// Whether the make is what the claim waits for, or what it has got.
bool is_wanted(const ClaimScene& scene, const Make& make);

/// It was begun before its agent began anew, or by another process. Where a volume is by now it
/// must not go on: what it would set is older than what the volume has.
bool waits_for_word(const Make& make);

/// What was begun and is not wanted, on whichever node. It keeps nothing waiting that is wanted,
/// unless that is in the same place.
std::optional<ClaimDecision> clear_away(const ClaimScene& scene);

/// What is not taken back for now because its disk is not there, and why; see clear_away().
struct HeldByDisk {
  std::shared_ptr<const operation::Operation> operation{};
  std::string why{};
};
std::vector<HeldByDisk> held_by_disks(const ClaimScene& scene);

}  // namespace lpp::provisioner
