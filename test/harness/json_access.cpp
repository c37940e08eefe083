// SPDX-License-Identifier: Apache-2.0
#include "harness/json_access.h"

#include <algorithm>
#include <utility>

#include "base/json_extent.h"

namespace lpp::testing {
namespace {

constexpr std::size_t kMaxDepth = 200;

}  // namespace

const Json& child(const Json& object, std::string_view key) {
  static const Json null_value;
  if (!object.is_object()) return null_value;
  const auto it = object.find(key);
  return it == object.end() ? null_value : *it;
}

const Json& at_path(const Json& object, Path path) {
  const Json* value = &object;
  for (const auto key : path) value = &child(*value, key);
  return *value;
}

const Json* find_at(const Json& object, Path path) {
  const Json& value = at_path(object, path);
  return value.is_null() ? nullptr : &value;
}

const Json& array_at(const Json& object, Path path) {
  static const Json empty = Json::array();
  const Json& value = at_path(object, path);
  return value.is_array() ? value : empty;
}

const Json& object_at(const Json& object, Path path) {
  static const Json empty = Json::object();
  const Json& value = at_path(object, path);
  return value.is_object() ? value : empty;
}

std::string text_at(const Json& object, Path path, std::string_view fallback) {
  const Json& value = at_path(object, path);
  return value.is_string() ? value.get<std::string>() : std::string(fallback);
}

bool flag_at(const Json& object, Path path, bool fallback) {
  const Json& value = at_path(object, path);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::optional<std::int64_t> number_at(const Json& object, Path path) {
  const Json& value = at_path(object, path);
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

std::int64_t number_at(const Json& object, Path path, std::int64_t fallback) {
  return number_at(object, path).value_or(fallback);
}

bool is_blank(const Json& value) {
  if (value.is_null()) return true;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return (value.is_object() || value.is_array()) && value.empty();
}

std::string name_of(const Json& object) { return text_at(object, {"metadata", "name"}); }
std::string namespace_of(const Json& object) { return text_at(object, {"metadata", "namespace"}); }
std::string uid_of(const Json& object) { return text_at(object, {"metadata", "uid"}); }

std::string key_of(const Json& object) {
  std::string key(namespace_of(object));
  if (!key.empty()) key += '/';
  return key.append(name_of(object));
}

std::string annotation(const Json& object, std::string_view key) {
  return text_at(object, {"metadata", "annotations", key});
}
bool has_annotation(const Json& object, std::string_view key) {
  return find_at(object, {"metadata", "annotations", key}) != nullptr;
}
bool is_deleting(const Json& object) {
  return find_at(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

bool has_finalizer(const Json& object, std::string_view finalizer) {
  const Json& list = array_at(object, {"metadata", "finalizers"});
  return std::any_of(list.begin(), list.end(), [&](const Json& entry) {
    return entry.is_string() && entry.get_ref<const std::string&>() == finalizer;
  });
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

bool set_condition(Json& conditions, std::string_view type, bool status, std::string_view reason,
                   std::string_view message, std::string_view now) {
  if (!conditions.is_array()) conditions = Json::array();
  const std::string_view wanted = status ? "True" : "False";
  Json* found = nullptr;
  for (Json& entry : conditions) {
    if (text_at(entry, {"type"}) == type) found = &entry;
  }
  if (found == nullptr) {
    conditions.push_back(Json{{"type", type}});
    found = &conditions.back();
  } else if (text_at(*found, {"status"}) == wanted && text_at(*found, {"reason"}) == reason &&
             text_at(*found, {"message"}) == message) {
    return false;
  }
  if (text_at(*found, {"status"}) != wanted) (*found)["lastTransitionTime"] = now;
  (*found)["status"] = wanted;
  for (const auto& [key, value] : {std::pair{"reason", reason}, std::pair{"message", message}}) {
    if (value.empty()) {
      found->erase(key);
    } else {
      (*found)[key] = value;
    }
  }
  return true;
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

SplitKey split_key(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

}  // namespace lpp::testing
