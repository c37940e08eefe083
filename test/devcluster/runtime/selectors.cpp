// SPDX-License-Identifier: Apache-2.0
#include "devcluster/runtime/selectors.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

std::optional<std::int64_t> as_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// One requirement; `value` is null when the label or field is absent.
bool requirement_holds(const json& requirement, const json* value) {
  const std::string op = text_at(requirement, {"operator"});
  const json& values = array_at(requirement, {"values"});
  const bool listed =
      value != nullptr && std::find(values.begin(), values.end(), *value) != values.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  if ((op == "Gt" || op == "Lt") && value != nullptr && value->is_string() && values.size() == 1 &&
      values[0].is_string()) {
    const auto left = as_number(value->get_ref<const std::string&>());
    const auto right = as_number(values[0].get_ref<const std::string&>());
    if (!left || !right) return false;
    return op == "Gt" ? *left > *right : *left < *right;
  }
  return false;
}

bool term_matches(const json& term, const json& node) {
  const json& expressions = array_at(term, {"matchExpressions"});
  const json& fields = array_at(term, {"matchFields"});
  if (expressions.empty() && fields.empty()) return false;  // an empty term matches nothing
  const bool labels_hold = std::all_of(expressions.begin(), expressions.end(), [&](const json& r) {
    return requirement_holds(r, find_at(node, {"metadata", "labels", text_at(r, {"key"})}));
  });
  return labels_hold && std::all_of(fields.begin(), fields.end(), [&](const json& r) {
           return text_at(r, {"key"}) == "metadata.name" &&
                  requirement_holds(r, find_at(node, {"metadata", "name"}));
         });
}

bool tolerates(const json& toleration, const json& taint) {
  const std::string effect = text_at(toleration, {"effect"});
  if (!effect.empty() && effect != text_at(taint, {"effect"})) return false;
  const std::string key = text_at(toleration, {"key"});
  const bool exists = text_at(toleration, {"operator"}) == "Exists";
  if (key.empty()) return exists;
  if (key != text_at(taint, {"key"})) return false;
  return exists || text_at(toleration, {"value"}) == text_at(taint, {"value"});
}

}  // namespace

bool node_selector_matches(const json& selector, const json& node) {
  const json& terms = array_at(selector, {"nodeSelectorTerms"});
  return std::any_of(terms.begin(), terms.end(),
                     [&](const json& term) { return term_matches(term, node); });
}

bool labels_match(const json& wanted, const json& node) {
  const auto items = wanted.items();
  return std::all_of(items.begin(), items.end(), [&](const auto& item) {
    const json* value = find_at(node, {"metadata", "labels", item.key()});
    return value != nullptr && *value == item.value();
  });
}

bool label_selector_matches(const json& selector, const json& object) {
  if (!labels_match(object_at(selector, {"matchLabels"}), object)) return false;
  const json& expressions = array_at(selector, {"matchExpressions"});
  return std::all_of(expressions.begin(), expressions.end(), [&](const json& r) {
    return requirement_holds(r, find_at(object, {"metadata", "labels", text_at(r, {"key"})}));
  });
}

bool tolerates_taints(const json& pod, const json& node) {
  const json& tolerations = array_at(pod, {"spec", "tolerations"});
  const json& taints = array_at(node, {"spec", "taints"});
  return std::all_of(taints.begin(), taints.end(), [&](const json& taint) {
    const std::string effect = text_at(taint, {"effect"});
    if (effect != "NoSchedule" && effect != "NoExecute") return true;
    return std::any_of(tolerations.begin(), tolerations.end(),
                       [&](const json& t) { return tolerates(t, taint); });
  });
}

}  // namespace lpp::devcluster
