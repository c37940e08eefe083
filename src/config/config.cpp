#include "config/config.h"

namespace lpp::config {

const std::vector<std::string>* PathConfig::paths_for(std::string_view node) const {
  auto it = node_path_map.find(node);
  if (it == node_path_map.end()) it = node_path_map.find(kDefaultNode);
  return it == node_path_map.end() ? nullptr : &it->second;
}

const PathConfig* Config::paths_for_class(std::string_view storage_class) const {
  const auto it = classes.find(storage_class);
  if (it != classes.end()) return &it->second;
  return paths.empty() ? nullptr : &paths;
}

}  // namespace lpp::config
