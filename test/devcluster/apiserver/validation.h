// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "devcluster/apiserver/resources.h"
#include "devcluster/apiserver/status.h"

/// Checks of whole objects as far as they matter to a volume provisioner and its users. Not a full
/// copy of the real server's validation. Pure functions.
namespace lpp::devcluster {

/// What a typed decoder would refuse with 400 ("metadata must be an object"); "" when fine.
std::string shape_problem(const nlohmann::json& object);

/// Names, labels, annotations, finalizers and the fields of the kind. Defaults are applied before.
FieldErrors validate(const ResourceInfo& info, const nlohmann::json& object);

/// What must not change. Both objects are complete; `next` passed validate().
FieldErrors validate_update(const ResourceInfo& info, const nlohmann::json& current,
                            const nlohmann::json& next);

/// Pod Security: "" or why a pod violates the level that its namespace enforces.
std::string pod_security_problem(const nlohmann::json& ns, const nlohmann::json& pod);

}  // namespace lpp::devcluster
