// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace lpp::testing {

/// The series of a text in Prometheus' format: "name value-of-label value-of-label" and the value.
/// Labels must hold no quotes.
inline std::map<std::string, double> series_of(const std::string& text) {
  std::map<std::string, double> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::string key = line.substr(0, line.find_first_of("{ "));
    std::size_t at = 0;
    while ((at = line.find("=\"", at)) != std::string::npos) {
      const auto end = line.find('"', at + 2);
      key += " " + line.substr(at + 2, end - at - 2);
      at = end;
    }
    out[key] = std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return out;
}

}  // namespace lpp::testing
