#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace lpp::config {

struct ParsedConfig {
  Config config;
  std::vector<std::string> warnings;  // accepted, but worth a log line
};

/// Parses and validates a whole config.json. `name` (a file name or "ConfigMap ns/name") begins
/// each message; syntax errors give line and column, others the JSON path, e.g. "config.json:
/// nodePathMap[1].paths[0]: must be an absolute path, is "data"". All errors found are reported,
/// joined by "; ". Pure; never throws.
Result<ParsedConfig> parse_config(std::string_view text, std::string_view name);

}  // namespace lpp::config
