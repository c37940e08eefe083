// SPDX-License-Identifier: Apache-2.0
#include "devcluster/runtime/json_access.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lpp::devcluster::fields {

using nlohmann::json;

const json* find_at(const json& object, Path path) {
  const json* at = &object;
  for (const std::string_view step : path) {
    if (!at->is_object()) return nullptr;
    const auto next = at->find(step);
    if (next == at->end()) return nullptr;
    at = &*next;
  }
  return at->is_null() ? nullptr : at;
}

const json& array_at(const json& object, Path path) {
  static const json empty = json::array();
  const json* at = find_at(object, path);
  return at != nullptr && at->is_array() ? *at : empty;
}

const json& object_at(const json& object, Path path) {
  static const json empty = json::object();
  const json* at = find_at(object, path);
  return at != nullptr && at->is_object() ? *at : empty;
}

std::string_view text_at(const json& object, Path path, std::string_view fallback) {
  const json* at = find_at(object, path);
  return at != nullptr && at->is_string() ? std::string_view(at->get_ref<const std::string&>())
                                          : fallback;
}

std::string_view text_at(const json& object, Path path) { return text_at(object, path, {}); }

bool flag_at(const json& object, Path path, bool fallback) {
  const json* at = find_at(object, path);
  return at != nullptr && at->is_boolean() ? at->get<bool>() : fallback;
}

std::int64_t number_at(const json& object, Path path, std::int64_t fallback) {
  const json* at = find_at(object, path);
  return at != nullptr && at->is_number_integer() ? at->get<std::int64_t>() : fallback;
}

std::string_view name_of(const json& object) { return text_at(object, {"metadata", "name"}); }
std::string_view namespace_of(const json& object) {
  return text_at(object, {"metadata", "namespace"});
}
std::string_view uid_of(const json& object) { return text_at(object, {"metadata", "uid"}); }

std::string key_of(const json& object) {
  std::string key(namespace_of(object));
  if (!key.empty()) key += '/';
  return key.append(name_of(object));
}

std::string_view annotation(const json& object, std::string_view key) {
  return text_at(object, {"metadata", "annotations", key});
}
bool has_annotation(const json& object, std::string_view key) {
  return find_at(object, {"metadata", "annotations", key}) != nullptr;
}
bool is_deleting(const json& object) {
  return find_at(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

bool has_finalizer(const json& object, std::string_view finalizer) {
  const json& list = array_at(object, {"metadata", "finalizers"});
  return std::any_of(list.begin(), list.end(), [&](const json& entry) {
    return entry.is_string() && entry.get_ref<const std::string&>() == finalizer;
  });
}

bool set_condition(json& conditions, std::string_view type, bool status, std::string_view reason,
                   std::string_view message, std::string_view now) {
  if (!conditions.is_array()) conditions = json::array();
  const std::string_view wanted = status ? "True" : "False";
  json* found = nullptr;
  for (json& entry : conditions) {
    if (text_at(entry, {"type"}) == type) found = &entry;
  }
  if (found == nullptr) {
    conditions.push_back(json{{"type", type}});
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

SplitKey split_key(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

}  // namespace lpp::devcluster::fields
