// SPDX-License-Identifier: Apache-2.0
#include "harness/yaml_objects.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace lpp::testing {

namespace {

using nlohmann::json;

template <typename Number>
bool parse_number(const std::string& text, Number& number) {
  const char* first = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(first, last, number);
  return first != last && end == last && code == std::errc{};
}

json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const bool may_be_number = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (!may_be_number) return text;
  std::int64_t integer = 0;
  if (parse_number(text, integer)) return integer;
  double number = 0;
  if (parse_number(text, number) && std::isfinite(number)) return number;
  return text;
}

// Throws YAML exceptions; the depth of real manifests is far below the limit.
json convert(const YAML::Node& node, int depth) {
  if (depth > 100) throw YAML::Exception(node.Mark(), "nested too deeply");
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      if (node.Tag() == "?" || node.Tag().empty()) return plain_scalar(node.Scalar());
      return node.Scalar();
    case YAML::NodeType::Sequence: {
      json array = json::array();
      for (const YAML::Node& item : node) array.push_back(convert(item, depth + 1));
      return array;
    }
    case YAML::NodeType::Map: {
      json object = json::object();
      for (const auto& entry : node) {
        const std::string key = entry.first.Scalar();
        if (object.contains(key)) {
          throw YAML::Exception(entry.first.Mark(), "key \"" + key + "\" is there twice");
        }
        object[key] = convert(entry.second, depth + 1);
      }
      return object;
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return {};
}

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
  try {
    for (const YAML::Node& document : YAML::LoadAll(std::string(yaml))) {
      json object = convert(document, 0);
      if (object.is_null()) continue;
      if (!object.is_object()) {
        throw YAML::Exception(document.Mark(), "a document is not an object");
      }
      add(std::move(object), objects);
    }
  } catch (const YAML::Exception& error) {
    const auto line = error.mark.is_null() ? 0 : error.mark.line + 1;
    return invalid(std::string(name) + ":" + std::to_string(line) + ": " + error.msg);
  }
  return objects;
}

Result<std::vector<json>> read_yaml_objects(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Error{.code = ErrorCode::kNotFound, .message = file + ": cannot be read"};
  return parse_yaml_objects(text.str(), file);
}

}  // namespace lpp::testing
