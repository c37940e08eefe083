// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/orphans.h"
#include "cli/surroundings.h"

/// What must be certain before a directory is removed that no volume shows. Pure functions.
namespace lpp::cli {

/// kConflict or kInvalid says what speaks against it, and what to do: it is not on record, is
/// shared, has a volume or claim of its name or UID, overlaps one or another record, or a pod on
/// the node uses it. `pods`: all of the node. `except`: the volume that a sweep has made for it.
Result<operation::Operation> check_sweepable(const Orphan& orphan,
                                             const std::vector<Orphan>& orphans,
                                             const Surroundings& around,
                                             const std::vector<nlohmann::json>& pods,
                                             std::string_view except = {});

/// The volume by which it goes: of a claim in namespace `ns` that there never is, so that the
/// control plane calls it released. It retains the directory until its policy is changed.
Result<nlohmann::json> sweep_volume(const operation::Operation& place, const Orphan& orphan,
                                    const Surroundings& around, const std::string& ns);

}  // namespace lpp::cli
