// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lpp::helperpod {

/// A small description of JSON objects: which fields may be there, of which type, and which are
/// refused. Constant tables; see pod_schema.cpp.
enum class Kind {
  kAny,  // passed on as it is; the API server checks it
  kString,
  kBool,
  kInteger,
  kQuantity,  // a string or number such as 500m or 1
  kStringMap,
  kObject,
  kList,
};

enum class Rule {
  kAllow,
  kRefuse,      // unless empty, false or unsafe templates are allowed
  kRefuseZero,  // the number 0, unless unsafe templates are allowed
  kReplaced,    // allowed, but the provisioner sets it: a warning
  kDropped,     // means nothing in a template: left out without a word
};

struct Schema;

struct Field {
  std::string_view name;
  const Schema* type;
  Rule rule = Rule::kAllow;
};

struct Schema {
  Kind kind = Kind::kAny;
  std::span<const Field> fields{};  // kObject
  const Schema* item = nullptr;     // kList
  const Schema* others = nullptr;   // kList: items after the first, when they differ
};

/// What a check found. Messages begin with the field's path, e.g. "spec.containers[0].image".
struct Findings {
  std::vector<std::string> errors{};
  std::vector<std::string> warnings{};
};

/// Checks `value` against `schema` and makes it canonical on the way: names of fields that differ
/// only in case become the known ones (as Go's decoder reads them), nulls and dropped fields go,
/// unknown fields go unless `allow_unsafe`. Pure.
void check(nlohmann::json& value, const Schema& schema, const std::string& path, bool allow_unsafe,
           Findings& findings);

/// "text" for messages: quoted, short, valid UTF-8.
std::string shown(const nlohmann::json& value);

}  // namespace lpp::helperpod
