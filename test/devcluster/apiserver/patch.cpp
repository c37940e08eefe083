// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/patch.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "devcluster/apiserver/status.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

constexpr std::string_view kDeletePrefix = "$deleteFromPrimitiveList/";
constexpr std::string_view kOrderPrefix = "$setElementOrder/";

/// Merge key of a list of objects, by the name of the field that holds it; "" for lists that are
/// replaced as a whole.
std::string_view merge_key(std::string_view field, const Json& element) {
  static const std::map<std::string_view, std::string_view> keys = {
      {"containers", "name"},
      {"initContainers", "name"},
      {"ephemeralContainers", "name"},
      {"volumes", "name"},
      {"env", "name"},
      {"imagePullSecrets", "name"},
      {"secrets", "name"},
      {"drivers", "name"},
      {"volumeMounts", "mountPath"},
      {"volumeDevices", "devicePath"},
      {"conditions", "type"},
      {"addresses", "type"},
      {"hostAliases", "ip"},
      {"podIPs", "ip"},
      {"hostIPs", "ip"},
      {"ownerReferences", "uid"},
      {"taints", "key"},
      {"topologySpreadConstraints", "topologyKey"},
  };
  if (field == "ports") return element.contains("containerPort") ? "containerPort" : "port";
  const auto it = keys.find(field);
  return it == keys.end() ? std::string_view() : it->second;
}

Json merge_value(std::string_view field, const Json* current, const Json& patch);

/// A patch's value where nothing was before: directives and nulls go.
Json without_directives(std::string_view field, const Json& patch) {
  if (patch.is_object()) return merge_value(field, nullptr, patch);
  if (!patch.is_array()) return patch;
  Json out = Json::array();
  for (const auto& element : patch) {
    if (!element.is_object()) {
      out.push_back(element);
    } else if (!element.contains("$patch")) {
      out.push_back(merge_value({}, nullptr, element));
    }
  }
  return out;
}

std::size_t find_by_key(const Json& list, std::string_view key, const Json& value) {
  std::size_t i = 0;
  while (i < list.size() && child(list[i], key) != value) ++i;
  return i;
}

Json merge_object_list(std::string_view field, const Json& current, const Json& patch) {
  for (const auto& element : patch) {
    if (text_at(element, {"$patch"}) == "replace") return without_directives(field, patch);
  }
  Json out = current;
  for (const auto& element : patch) {
    const auto key = merge_key(field, element);
    const auto at = find_by_key(out, key, child(element, key));
    if (text_at(element, {"$patch"}) == "delete") {
      if (at < out.size()) out.erase(at);
    } else if (at < out.size()) {
      out[at] = merge_value({}, &out[at], element);
    } else {
      out.push_back(merge_value({}, nullptr, element));
    }
  }
  return out;
}

Json merge_primitive_set(const Json& current, const Json& patch) {
  Json out = current;
  for (const auto& element : patch) {
    if (std::find(out.begin(), out.end(), element) == out.end()) out.push_back(element);
  }
  return out;
}

Json merge_value(std::string_view field, const Json* current, const Json& patch) {
  if (patch.is_object()) {
    return strategic_merge(current != nullptr && current->is_object() ? *current : Json::object(),
                           patch);
  }
  if (!patch.is_array() || current == nullptr || !current->is_array() || patch.empty()) {
    return without_directives(field, patch);
  }
  if (patch.front().is_object() && !merge_key(field, patch.front()).empty()) {
    return merge_object_list(field, *current, patch);
  }
  if (field == "finalizers") return merge_primitive_set(*current, patch);
  return without_directives(field, patch);
}

void retain_keys(Json& object, const Json& keys) {
  for (auto it = object.begin(); it != object.end();) {
    const bool keep = std::find(keys.begin(), keys.end(), Json(it.key())) != keys.end();
    it = keep ? std::next(it) : object.erase(it);
  }
}

/// Elements named by `order` come in that order; what it does not name follows as it was.
void set_order(std::string_view field, Json& list, const Json& order) {
  if (!list.is_array() || !order.is_array()) return;
  Json sorted = Json::array();
  std::set<std::size_t> used;
  for (const auto& wanted : order) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto key = wanted.is_object() ? merge_key(field, wanted) : std::string_view();
      const bool same =
          wanted.is_object() ? child(list[i], key) == child(wanted, key) : list[i] == wanted;
      if (same && used.insert(i).second) sorted.push_back(list[i]);
    }
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!used.contains(i)) sorted.push_back(list[i]);
  }
  list = std::move(sorted);
}

void delete_from_list(Json& list, const Json& values) {
  if (!list.is_array() || !values.is_array()) return;
  for (const auto& value : values) {
    for (std::size_t i = list.size(); i-- > 0;) {
      if (list[i] == value) list.erase(i);
    }
  }
}

Reply patched(Json object) { return Reply{200, std::make_shared<const Json>(std::move(object))}; }

Reply apply_json_patch(const Json& current, const Json& patch) {
  if (!patch.is_array()) {
    return bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  }
  try {
    return patched(current.patch(patch));
  } catch (const Json::parse_error& error) {  // an operation that is not well-formed
    return bad_request(error.what());
  } catch (const Json::exception& error) {  // a failed test, a missing path
    const std::string why = std::string(
                                "the server rejected our request due to an error in our "
                                "request: ") +
                            error.what();
    return make_status(422, "Invalid", why);
  }
}

}  // namespace

Json strategic_merge(const Json& current, const Json& patch) {
  if (!patch.is_object()) return patch;
  const std::string directive = text_at(patch, {"$patch"});
  if (directive == "delete") return Json::object();
  Json out = directive == "replace" || !current.is_object() ? Json::object() : current;
  const Json* retained = nullptr;
  for (const auto& [key, value] : patch.items()) {
    if (key == "$patch" || key.starts_with(kOrderPrefix)) continue;
    if (key == "$retainKeys") {
      retained = &value;
    } else if (key.starts_with(kDeletePrefix)) {
      const auto it = out.find(key.substr(kDeletePrefix.size()));
      if (it != out.end()) delete_from_list(*it, value);
    } else if (value.is_null() || text_at(value, {"$patch"}) == "delete") {
      out.erase(key);
    } else {
      const auto it = out.find(key);
      out[key] = merge_value(key, it == out.end() ? nullptr : &*it, value);
    }
  }
  if (retained != nullptr && retained->is_array()) retain_keys(out, *retained);
  for (const auto& [key, value] : patch.items()) {
    if (!key.starts_with(kOrderPrefix)) continue;
    const std::string field = key.substr(kOrderPrefix.size());
    const auto it = out.find(field);
    if (it != out.end()) set_order(field, *it, value);
  }
  return out;
}

Reply apply_patch(const Json& current, PatchType type, const Json& patch) {
  if (type == PatchType::kJson) return apply_json_patch(current, patch);
  if (!patch.is_object()) {
    return bad_request("error decoding patch: json: cannot unmarshal into an object");
  }
  if (type == PatchType::kMerge) {
    Json out = current;
    out.merge_patch(patch);
    return patched(std::move(out));
  }
  return patched(strategic_merge(current, patch));
}

}  // namespace lpp::devcluster
