// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lpp::config {

struct JsonText {
  nlohmann::json value;                 // of equal keys the last one counts
  std::vector<std::string> warnings{};  // keys given twice, text after the value
};

/// The first JSON value of a text that a person wrote: bounded in size and depth, with line and
/// column in errors. Text after the value is accepted with a warning. Pure; never throws.
Result<JsonText> parse_json_text(std::string_view text);

/// A value for messages: quoted, short, valid UTF-8.
std::string shown(const nlohmann::json& value);

}  // namespace lpp::config
