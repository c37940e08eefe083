// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::testing {

/// The Kubernetes objects of a multi-document YAML text, as JSON, in their order. Empty documents
/// are skipped and the items of a List are unpacked. Scalars are typed as kubectl does: quoted ones
/// are strings, plain ones null, bool, integer, number or string. `name` (a file) begins each error
/// message. Pure; never throws.
Result<std::vector<nlohmann::json>> parse_yaml_objects(std::string_view yaml,
                                                       std::string_view name);

/// The same for a file; an unreadable file is kNotFound.
Result<std::vector<nlohmann::json>> read_yaml_objects(const std::string& file);

}  // namespace lpp::testing
