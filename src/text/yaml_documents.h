// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lpp::text {

/// One of the documents of a YAML text.
struct YamlPart {
  std::string text{};
  std::size_t line = 1;  // of its first line

  /// With empty lines in front, so that a reader counts lines as the whole text does.
  std::string in_place() const { return std::string(line - 1, '\n') + text; }
};

/// All of them, also empty ones. Pure.
std::vector<YamlPart> yaml_documents(std::string_view text);

}  // namespace lpp::text
