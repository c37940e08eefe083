// SPDX-License-Identifier: Apache-2.0
// config.json: an accepted configuration has only paths in which a volume can be strictly below its
// base; a refused one says why and names the file.

#include "config/config_parser.h"

#include "base/paths.h"
#include "property.h"
#include "provisioner/path_safety.h"

namespace {

using lpp::fuzz::require;

void check_paths(const lpp::config::PathConfig& paths) {
  const auto check = [](const std::string& base) {
    require(!base.empty() && base.front() == '/', "a base path is absolute");
    require(base != "/", "the root is no base path");
    const std::string volume = base + "/pvc-1_ns_claim";
    require(lpp::strictly_below(volume, base), "a volume is strictly below its base path");
    require(lpp::provisioner::check_volume_path(volume).ok() || volume.size() > 4'000,
            "a volume of an accepted base path is safe to make");
  };
  for (const auto& [node, list] : paths.node_path_map) {
    for (const auto& base : list) check(base);
  }
  if (paths.shared()) check(paths.shared_file_system_path);
  require(!paths.shared() || paths.node_path_map.empty(), "shared or per node, not both");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = lpp::fuzz::text_of(data, size);
  const auto parsed = lpp::config::parse_config(text, "config.json");
  const auto inspected = lpp::config::inspect_config(text);
  require(parsed.ok() == inspected.errors.empty(), "both readers agree");
  if (!parsed.ok()) {
    require(parsed.error().message.starts_with("config.json: "), "an error names the file");
    return 0;
  }
  const auto& config = parsed->config;
  require(config.cmd_timeout.count() > 0, "the time limit is positive");
  check_paths(config.paths);
  for (const auto& [name, entry] : config.classes) check_paths(entry);
  return 0;
}
