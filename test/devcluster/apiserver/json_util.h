// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

/// Reading JSON that came from outside without exceptions: what is absent or of another type than
/// expected reads as null, "" or nothing. Stateless functions.
namespace lpp::devcluster {

using Json = nlohmann::json;

/// The member, or a null when `object` is no object or has no such member.
const Json& child(const Json& object, std::string_view key);
const Json& at_path(const Json& object, std::initializer_list<std::string_view> keys);

/// The string at the path; "" when there is none.
std::string text_at(const Json& object, std::initializer_list<std::string_view> keys);
std::optional<std::int64_t> number_at(const Json& object,
                                      std::initializer_list<std::string_view> keys);
bool true_at(const Json& object, std::initializer_list<std::string_view> keys);

/// True for null, "", {} and [].
bool is_blank(const Json& value);

/// The member as an object, created (or replaced when it is no object).
Json& object_in(Json& parent, const char* key);

/// Sets object[key] unless it is there already (null counts as absent).
void set_default(Json& object, const char* key, Json value);

/// Compact text; bytes that are not UTF-8 are replaced.
std::string dump(const Json& value);

/// Empty for text that is no JSON, or nested deeper than an API server would take.
std::optional<Json> parse_json(std::string_view text);

std::string namespace_of(const Json& object);
std::string name_of(const Json& object);

}  // namespace lpp::devcluster
