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

/// With the feature gate RecoverVolumeExpansionFailure off: a claim never asks for less.
void validate_request_never_less(const nlohmann::json& current, const nlohmann::json& next,
                                 FieldErrors& errors);
/// With that gate off: what the claim did not have before is dropped without a word.
void drop_expansion_marks(const nlohmann::json& current, nlohmann::json& status);

/// What an expansion writes down in a claim's status.
void validate_claim_status(const nlohmann::json& claim, FieldErrors& errors);

/// As the status comes back: quantities in canonical form, and nothing that is empty.
void tidy_claim_status(nlohmann::json& status);

}  // namespace lpp::devcluster
