// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "devcluster/apiserver/registry.h"

/// The patch formats of the API. Pure functions.
namespace lpp::devcluster {

/// Patched objects come back as {200, object}; a patch that cannot be applied as its Status.
Reply apply_patch(const nlohmann::json& current, PatchType type, const nlohmann::json& patch);

/// Strategic merge after k8s.io/apimachinery/pkg/util/strategicpatch: merge keys for the lists
/// that have them, $patch, $deleteFromPrimitiveList, $setElementOrder and $retainKeys.
nlohmann::json strategic_merge(const nlohmann::json& current, const nlohmann::json& patch);

}  // namespace lpp::devcluster
