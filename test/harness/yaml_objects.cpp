// SPDX-License-Identifier: Apache-2.0
#include "harness/yaml_objects.h"

#include <nlohmann/json.hpp>

#include "harness/rendering.h"
#include "text/yaml_documents.h"
#include "text/yaml_to_json.h"

namespace lpp::testing {

namespace {

using nlohmann::json;

void add(json document, std::vector<json>& objects) {
  const auto kind = document.find("kind");
  const auto items = document.find("items");
  if (kind != document.end() && *kind == "List" && items != document.end() && items->is_array()) {
    for (json& item : *items) objects.push_back(std::move(item));
    return;
  }
  objects.push_back(std::move(document));
}

}  // namespace

Result<std::vector<json>> parse_yaml_objects(std::string_view yaml, std::string_view name) {
  std::vector<json> objects;
  for (const text::YamlPart& document : text::yaml_documents(yaml)) {
    auto read = text::yaml_to_json(document.in_place());
    if (!read.ok()) return read.error().wrap(std::string(name));
    if (!read->warnings.empty()) return invalid(std::string(name) + ": " + read->warnings.front());
    if (read->value.is_null()) continue;
    if (!read->value.is_object()) {
      return invalid(std::string(name) + ":" + std::to_string(document.line) +
                     ": a document is not an object");
    }
    add(std::move(read->value), objects);
  }
  return objects;
}

Result<std::vector<json>> read_yaml_objects(const std::string& file) {
  const auto text = rendering(file);
  if (!text.ok()) return text.error();
  return parse_yaml_objects(*text, file);
}

}  // namespace lpp::testing
