// SPDX-License-Identifier: Apache-2.0
#include "config/config.h"

#include <algorithm>

namespace lpp::config {

const std::vector<std::string>* PathConfig::paths_for(std::string_view node) const {
  auto it = node_path_map.find(node);
  if (it == node_path_map.end()) it = node_path_map.find(kDefaultNode);
  return it == node_path_map.end() ? nullptr : &it->second;
}

bool PathConfig::must_be_mounted(std::string_view node, std::string_view path) const {
  const auto* const paths = paths_for(node);
  const bool is_listed = node_path_map.find(node) != node_path_map.end();
  return paths != nullptr && mount_nodes.contains(is_listed ? node : kDefaultNode) &&
         std::find(paths->begin(), paths->end(), path) != paths->end();
}

bool Config::must_be_mounted(std::string_view node, std::string_view path) const {
  return paths.must_be_mounted(node, path) ||
         std::any_of(classes.begin(), classes.end(),
                     [&](const auto& entry) { return entry.second.must_be_mounted(node, path); });
}

const PathConfig* Config::paths_for_class(std::string_view storage_class) const {
  const auto it = classes.find(storage_class);
  if (it != classes.end()) return &it->second;
  return paths.empty() ? nullptr : &paths;
}

}  // namespace lpp::config
