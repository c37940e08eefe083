// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/result.h"

namespace lpp::testing {

/// The manifest that a file of test/chart stands for: its text, or, of a `.diff`, that of the
/// `.yaml` beside it that its line "--- NAME" names, with the difference made. kNotFound when one
/// of them cannot be read; an error when they do not fit together. Never throws.
inline Result<std::string> rendering(const std::filesystem::path& file) {
  const auto read = [](const std::filesystem::path& path) -> Result<std::string> {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (in) return text.str();
    return Error{.code = ErrorCode::kNotFound, .message = path.string() + ": cannot be read"};
  };
  const auto lines_of = [](const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
    return lines;
  };
  auto whole = read(file);
  if (!whole.ok() || file.extension() != ".diff") return whole;
  const auto lines = lines_of(*whole);  // the first is a comment, as it is of the other
  const std::string name = lines.size() < 3 ? "" : lines[1].substr(4, lines[1].size() - 5);
  LPP_ASSIGN_OR_RETURN(const std::string usual, read(file.parent_path() / (name + ".yaml")),
                       file.string());
  const auto base = lines_of(usual);

  std::string text;
  std::size_t at = 1;
  const auto keep_until = [&](std::size_t end) {
    while (at < end && at < base.size()) text += base[at++];
  };
  for (std::size_t i = 3; i < lines.size(); ++i) {
    const std::string rest = lines[i].substr(1);
    if (lines[i].starts_with("@@ -")) {  // where it begins, or before that if it takes nothing away
      const bool takes_none = rest.substr(0, rest.find(" +")).ends_with(",0");
      keep_until(std::strtoul(rest.c_str() + 3, nullptr, 10) + (takes_none ? 1 : 0));
    } else if (lines[i].starts_with("+")) {
      text += rest;
    } else if (at >= base.size() || base[at] != rest) {
      return invalid(file.string() + ": line " + std::to_string(i + 1) + " is not in " + name);
    } else if (lines[i].starts_with("-")) {
      ++at;
    } else {
      keep_until(at + 1);
    }
  }
  keep_until(base.size());
  return text;
}

}  // namespace lpp::testing
