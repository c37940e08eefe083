// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lpp::text {

/// Type and value of a plain (unquoted) scalar by the rules of gopkg.in/yaml.v2, which Kubernetes'
/// YAML reader uses: YAML 1.1 booleans and nulls, decimal, 0x, 0o, 0b and leading-zero octal
/// integers with optional underscores, floats; anything else is a string. nullopt for infinity and
/// not-a-number, which JSON cannot hold. Pure.
std::optional<nlohmann::json> plain_scalar(const std::string& text);

/// True for well-formed UTF-8.
bool is_utf8(std::string_view text);

}  // namespace lpp::text
