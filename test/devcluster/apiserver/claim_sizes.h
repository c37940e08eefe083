// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "devcluster/apiserver/status.h"

/// What the API server says when claims grow. Pure functions.
namespace lpp::devcluster {

/// Admission: "", or why the claim must not ask for more. `storage_class` is the one that it names,
/// null if there is none.
std::string expansion_problem(const nlohmann::json& current, const nlohmann::json& next,
                              const nlohmann::json& storage_class);

/// A claim may ask for less than before, but for more than it has.
void validate_request_update(const nlohmann::json& current, const nlohmann::json& next,
                             FieldErrors& errors);

/// What an expansion writes down in a claim's status.
void validate_claim_status(const nlohmann::json& claim, FieldErrors& errors);

/// As the status comes back: quantities in canonical form, and nothing that is empty.
void tidy_claim_status(nlohmann::json& status);

}  // namespace lpp::devcluster
