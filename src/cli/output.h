// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lpp::cli {

/// A value as JSON or YAML, with a line break at the end. Text that is not UTF-8 is repaired. Pure.
std::string to_json_text(const nlohmann::json& value);
std::string to_yaml_text(const nlohmann::json& value);

/// The one that `format` ("json" or "yaml") names.
std::string machine_text(const nlohmann::json& value, std::string_view format);

}  // namespace lpp::cli
