// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::testing {

/// The Kubernetes objects of a multi-document YAML text, as JSON, in their order. Empty documents
/// are skipped and the items of a List are unpacked. Read as src/text reads YAML, with scalars
/// typed as kubectl does; what that warns of, such as a key given twice, is an error here. `name`
/// (a file) begins each error message. Pure; never throws.
Result<std::vector<nlohmann::json>> parse_yaml_objects(std::string_view yaml,
                                                       std::string_view name);

/// The same for a file, or what a difference to one stands for (rendering.h); an unreadable file is
/// kNotFound.
Result<std::vector<nlohmann::json>> read_yaml_objects(const std::string& file);

}  // namespace lpp::testing
