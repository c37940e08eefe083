// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

/// Reading of JSON that may lack anything: no call throws, and what is of another type than asked
/// for reads as absent. Stateless functions; pointers and references live as long as the object.
namespace lpp::testing {

using Json = nlohmann::json;
using Path = std::initializer_list<std::string_view>;

/// The member, or a null when `object` is no object or has no such member.
const Json& child(const Json& object, std::string_view key);
/// The value at the path, or a null.
const Json& at_path(const Json& object, Path path);
/// The value at the path; nullptr when it is absent or a null.
const Json* find_at(const Json& object, Path path);
/// The value at the path if it is an array (an object), else an empty one.
const Json& array_at(const Json& object, Path path);
const Json& object_at(const Json& object, Path path);
/// The string at the path, else the fallback.
std::string text_at(const Json& object, Path path, std::string_view fallback = {});
bool flag_at(const Json& object, Path path, bool fallback = false);
/// The whole number at the path.
std::optional<std::int64_t> number_at(const Json& object, Path path);
std::int64_t number_at(const Json& object, Path path, std::int64_t fallback);

/// True for null, "", {} and [].
bool is_blank(const Json& value);

std::string name_of(const Json& object);
std::string namespace_of(const Json& object);
std::string uid_of(const Json& object);
/// "namespace/name", or the name alone for cluster-scoped objects.
std::string key_of(const Json& object);
std::string annotation(const Json& object, std::string_view key);
bool has_annotation(const Json& object, std::string_view key);
bool is_deleting(const Json& object);
bool has_finalizer(const Json& object, std::string_view finalizer);

/// The member as an object, created (or replaced when it is no object).
Json& object_in(Json& parent, const char* key);

/// Sets object[key] unless it is there already (null counts as absent).
void set_default(Json& object, const char* key, Json value);

/// Sets (or replaces) the entry of that type in a list of conditions. lastTransitionTime changes
/// only with the status. True when anything changed.
bool set_condition(Json& conditions, std::string_view type, bool status, std::string_view reason,
                   std::string_view message, std::string_view now);

/// Compact text; bytes that are not UTF-8 are replaced.
std::string dump(const Json& value);

/// Empty for text that is no JSON, or nested deeper than an API server would take.
std::optional<Json> parse_json(std::string_view text);

/// "a/b" -> {"a", "b"}; "b" -> {"", "b"}.
struct SplitKey {
  std::string ns;
  std::string name;
};
SplitKey split_key(std::string_view key);

}  // namespace lpp::testing
