// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_to_json.h"

#include <yaml-cpp/yaml.h>

#include <optional>

#include "base/json_extent.h"
#include "base/strings.h"
#include "text/yaml_scalar.h"

namespace lpp::text {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxText = 1024UL * 1024;  // what a ConfigMap can hold
constexpr std::size_t kMaxNodes = 50'000;        // aliases count each time they are used
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxWarnings = 20;

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

[[noreturn]] void fail(const YAML::Node& node, const std::string& what) {
  throw YAML::RepresentationException(node.Mark(), what);
}

/// One conversion. Throws only YAML::Exception.
class Converter {
 public:
  json convert(const YAML::Node& node, std::size_t depth) {
    if (depth > kMaxDepth) fail(node, "is nested too deeply (or contains itself)");
    if (++nodes_ > kMaxNodes) fail(node, "has too many nodes (aliases count each time)");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return nullptr;
      case YAML::NodeType::Scalar: return scalar(node);
      case YAML::NodeType::Sequence: return sequence(node, depth);
      case YAML::NodeType::Map: break;
    }
    return mapping(node, depth);
  }

  std::vector<std::string> warnings;

 private:
  static json scalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (!is_utf8(text)) fail(node, "text is not valid UTF-8");
    std::string_view tag = node.Tag();
    if (tag.substr(0, kTagPrefix.size()) == kTagPrefix) tag.remove_prefix(kTagPrefix.size());
    if (tag == "binary") fail(node, "binary values are not supported");
    const bool typed = tag == "?" || tag.empty() || tag == "int" || tag == "float" ||
                       tag == "bool" || tag == "null";
    if (!typed) return text;
    auto value = plain_scalar(text);
    if (!value.has_value()) fail(node, "a number that is not finite cannot be used");
    return *std::move(value);
  }

  json sequence(const YAML::Node& node, std::size_t depth) {
    json list = json::array();
    for (const auto& item : node) list.push_back(convert(item, depth + 1));
    return list;
  }

  /// Keys are strings in JSON; others get their canonical text, as in Kubernetes.
  static std::string key_text(const YAML::Node& key) {
    if (key.IsNull()) return "null";
    if (!key.IsScalar()) fail(key, "a key must be a plain value");
    const json value = scalar(key);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  static bool is_merge(const YAML::Node& key) {
    return key.IsScalar() && key.Scalar() == "<<" && key.Tag() != "!";
  }

  json mapping(const YAML::Node& node, std::size_t depth) {
    json object = json::object();
    json merged = json::object();
    for (const auto& entry : node) {
      if (is_merge(entry.first)) {
        merge(entry.second, depth, merged);
        continue;
      }
      const std::string key = key_text(entry.first);
      json value = convert(entry.second, depth + 1);
      if (object.contains(key) && warnings.size() < kMaxWarnings) {
        warnings.push_back("line " + std::to_string(entry.first.Mark().line + 1) + ": key \"" +
                           std::string(truncate_utf8(key, 60)) +
                           "\" is given twice; the last one counts");
      }
      object[key] = std::move(value);
    }
    for (auto& [key, value] : merged.items()) {
      if (!object.contains(key)) object[key] = std::move(value);
    }
    return object;
  }

  /// "<<: *a" or "<<: [*a, *b]": earlier maps win over later ones.
  void merge(const YAML::Node& source, std::size_t depth, json& merged) {
    const json value = convert(source, depth + 1);
    const auto add = [&](const json& map) {
      if (!map.is_object()) fail(source, "a merge key needs a mapping or a list of mappings");
      for (const auto& [key, member] : map.items()) {
        if (!merged.contains(key)) merged[key] = member;
      }
    };
    if (value.is_array()) {
      for (const auto& map : value) add(map);
    } else {
      add(value);
    }
  }

  std::size_t nodes_ = 0;
};

/// JSON proper, which a YAML reader does not read in full (tabs, surrogate pairs). nullopt: not
/// JSON.
std::optional<json> as_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return std::nullopt;
  if (first_json_value(text, kMaxDepth).too_deep_at) return std::nullopt;
  // Without the parser's callback, which makes the time grow with the square of a list's length.
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string place(const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  return "line " + std::to_string(mark.line + 1) + ", column " + std::to_string(mark.column + 1) +
         ": ";
}

}  // namespace

Result<YamlDocument> yaml_to_json(std::string_view text) {
  if (text.size() > kMaxText) {
    return invalid("text of " + std::to_string(text.size()) + " bytes is too long; at most " +
                   std::to_string(kMaxText) + " are read");
  }
  if (text.find('\0') != std::string_view::npos) return invalid("text holds a NUL byte");
  try {
    if (auto value = as_json(text); value.has_value()) return YamlDocument{*std::move(value)};
    Converter converter;
    json value = converter.convert(YAML::Load(std::string(text)), 0);
    return YamlDocument{std::move(value), std::move(converter.warnings)};
  } catch (const YAML::Exception& e) {
    const std::string_view what = e.msg;
    return invalid(place(e.mark) +
                   std::string(truncate_utf8(is_utf8(what) ? what : "bad text", 300)));
  } catch (const std::exception& e) {
    return invalid(std::string("cannot be read as YAML: ") + e.what());
  }
}

}  // namespace lpp::text
