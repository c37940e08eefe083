// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "devcluster/apiserver/resources.h"

/// What the API server fills in when an object leaves it out. Pure functions.
namespace lpp::devcluster {

/// Defaults of spec and data fields; on create and on every update, as in the real decoder.
void apply_defaults(const ResourceInfo& info, nlohmann::json& object);

/// What only creation sets: the first status, and the finalizers of claims and volumes.
void prepare_for_create(const ResourceInfo& info, nlohmann::json& object);

}  // namespace lpp::devcluster
