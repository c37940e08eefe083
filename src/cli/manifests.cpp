// SPDX-License-Identifier: Apache-2.0
#include "cli/manifests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "k8s/json_access.h"
#include "text/yaml_documents.h"
#include "text/yaml_to_json.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

/// The line of the first thing that says something, for people who look for the object.
std::size_t first_line(const text::YamlPart& document) {
  std::size_t line = document.line;
  for (const std::string_view text : split(document.text, '\n')) {
    const std::string_view content = trim(text);
    if (!content.empty() && content.front() != '#') return line;
    ++line;
  }
  return document.line;
}

void add(nlohmann::json object, const std::string& place, std::vector<std::string> warnings,
         std::vector<ManifestObject>& out) {
  const auto items = object.find("items");
  if (text(object, "kind").ends_with("List") && items != object.end() && items->is_array()) {
    for (auto& item : *items) {
      if (item.is_object()) add(std::move(item), place, {}, out);
    }
    return;
  }
  out.push_back({std::move(object), place, std::move(warnings)});
}

}  // namespace

Result<std::vector<ManifestObject>> read_manifest(std::string_view text, const std::string& name) {
  std::vector<ManifestObject> out;
  for (const text::YamlPart& document : text::yaml_documents(text)) {
    auto read = text::yaml_to_json(document.in_place());
    if (!read.ok()) return std::move(read).error().wrap(name);
    if (read->value.is_null()) continue;
    const std::string line = std::to_string(first_line(document));
    if (!read->value.is_object()) {
      return invalid("line " + line + ": is not a Kubernetes object").wrap(name);
    }
    add(std::move(read->value), fmt::format("{}:{}", name, line), std::move(read->warnings), out);
  }
  return out;
}

std::string kind_and_name(const nlohmann::json& object) {
  const auto& meta = member(object, "metadata");
  const std::string ns = text(meta, "namespace");
  return text(object, "kind") + " " + (ns.empty() ? "" : ns + "/") + text(meta, "name");
}

}  // namespace lpp::cli
