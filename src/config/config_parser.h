// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
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

/// The same for a report: every message by itself, without the name in front.
struct ConfigInspection {
  std::optional<Config> config{};  // nothing when there are errors
  std::vector<std::string> errors{};
  std::vector<std::string> warnings{};
};
ConfigInspection inspect_config(std::string_view text);

/// The keys that a config.json, an entry of storageClassConfigs and one of nodePathMap may have.
std::span<const std::string_view> top_level_keys();
std::span<const std::string_view> class_entry_keys();
std::span<const std::string_view> node_entry_keys();

}  // namespace lpp::config
