// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lpp::devcluster {

/// A resource quantity as the API server stores it: the largest suffix of its family with a whole
/// number ("1024Mi" is "1Gi", "0.5" is "500m"). Exponents, and binary ones that are not whole
/// bytes, come back as they are, and so does what is no quantity. Pure.
std::string canonical_quantity(std::string_view text);

/// "1Gi" as a number of bytes, good enough for comparing sizes; 0 for what cannot be read.
long double quantity_value(std::string_view text);

/// Every member of a ResourceList ({"storage": "1024Mi", ...}) in canonical form.
void canonicalize_quantities(nlohmann::json& list);

}  // namespace lpp::devcluster
