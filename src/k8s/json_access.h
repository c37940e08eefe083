// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// Reads objects of the API as they come, where no type of k8s/objects.h holds the field. What is
/// absent or of another type reads as nothing. Pure.
namespace lpp::k8s {

inline const nlohmann::json& member(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(name);
  return it == object.end() ? nothing : *it;
}

/// The elements of an array.
inline const nlohmann::json& elements(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json none = nlohmann::json::array();
  const nlohmann::json& value = member(object, name);
  return value.is_array() ? value : none;
}

inline std::string text(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline int number(const nlohmann::json& object, std::string_view name, int fallback) {
  const nlohmann::json& value = member(object, name);
  return value.is_number_integer() ? value.get<int>() : fallback;
}

}  // namespace lpp::k8s
