// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/json_util.h"

#include <cstdint>

#include "base/json_extent.h"

namespace lpp::devcluster {
namespace {

constexpr std::size_t kMaxDepth = 200;

}  // namespace

const Json& child(const Json& object, std::string_view key) {
  static const Json null_value;
  if (!object.is_object()) return null_value;
  const auto it = object.find(key);
  return it == object.end() ? null_value : *it;
}

const Json& at_path(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json* value = &object;
  for (const auto key : keys) value = &child(*value, key);
  return *value;
}

std::string text_at(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json& value = at_path(object, keys);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::int64_t> number_at(const Json& object,
                                      std::initializer_list<std::string_view> keys) {
  const Json& value = at_path(object, keys);
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

bool true_at(const Json& object, std::initializer_list<std::string_view> keys) {
  const Json& value = at_path(object, keys);
  return value.is_boolean() && value.get<bool>();
}

bool is_blank(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return (value.is_object() || value.is_array()) && value.empty();
}

Json& object_in(Json& parent, const char* key) {
  if (!parent.is_object()) parent = Json::object();
  Json& value = parent[key];
  if (!value.is_object()) value = Json::object();
  return value;
}

void set_default(Json& object, const char* key, Json value) {
  Json& slot = object[key];
  if (slot.is_null()) slot = std::move(value);
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Json> parse_json(std::string_view text) {
  if (first_json_value(text, kMaxDepth).too_deep_at) return std::nullopt;
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string namespace_of(const Json& object) { return text_at(object, {"metadata", "namespace"}); }
std::string name_of(const Json& object) { return text_at(object, {"metadata", "name"}); }

}  // namespace lpp::devcluster
