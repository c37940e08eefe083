// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_documents.h"

#include "base/strings.h"

namespace lpp::text {

namespace {

/// "---" or "..." at the beginning of a line ends a document, wherever it stands.
bool is_marker(std::string_view line, std::string_view marker) {
  return line.starts_with(marker) && (line.size() == marker.size() || line[marker.size()] == ' ' ||
                                      line[marker.size()] == '\t' || line[marker.size()] == '\r');
}

}  // namespace

std::vector<YamlPart> yaml_documents(std::string_view text) {
  std::vector<YamlPart> out(1);
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (is_marker(line, "---")) {
      // What stands behind the dashes belongs to the document.
      out.push_back({.text = "   " + std::string(line.substr(3)) + "\n", .line = number});
    } else if (is_marker(line, "...")) {
      out.push_back({.line = number + 1});
    } else if (!line.starts_with('%')) {
      out.back().text.append(line) += '\n';
    } else {
      out.back().text += '\n';  // a directive
    }
  }
  return out;
}

}  // namespace lpp::text
