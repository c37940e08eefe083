// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// Reading of API objects that may lack anything: no call throws, a wrong type reads as absent.
/// Pure functions; returned views and pointers live as long as the object. A namespace of its own,
/// because the API server has helpers with the same names and other results.
namespace lpp::devcluster::fields {

using Path = std::initializer_list<std::string_view>;

/// The value at the path, or null.
const nlohmann::json* find_at(const nlohmann::json& object, Path path);
/// The value at the path if it is an array (an object), else an empty one.
const nlohmann::json& array_at(const nlohmann::json& object, Path path);
const nlohmann::json& object_at(const nlohmann::json& object, Path path);
/// The string at the path, else "".
std::string_view text_at(const nlohmann::json& object, Path path);
/// The string at the path, else the fallback.
std::string_view text_at(const nlohmann::json& object, Path path, std::string_view fallback);
bool flag_at(const nlohmann::json& object, Path path, bool fallback = false);
std::int64_t number_at(const nlohmann::json& object, Path path, std::int64_t fallback = 0);

std::string_view name_of(const nlohmann::json& object);
std::string_view namespace_of(const nlohmann::json& object);
std::string_view uid_of(const nlohmann::json& object);
/// "namespace/name", or the name alone for cluster-scoped objects.
std::string key_of(const nlohmann::json& object);
std::string_view annotation(const nlohmann::json& object, std::string_view key);
bool has_annotation(const nlohmann::json& object, std::string_view key);
bool is_deleting(const nlohmann::json& object);
bool has_finalizer(const nlohmann::json& object, std::string_view finalizer);

/// Sets (or replaces) the entry of that type in a list of conditions. lastTransitionTime changes
/// only with the status. True when anything changed.
bool set_condition(nlohmann::json& conditions, std::string_view type, bool status,
                   std::string_view reason, std::string_view message, std::string_view now);

/// "a/b" -> {"a", "b"}; "b" -> {"", "b"}.
struct SplitKey {
  std::string ns;
  std::string name;
};
SplitKey split_key(std::string_view key);

}  // namespace lpp::devcluster::fields
