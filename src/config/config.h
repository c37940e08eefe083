// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lpp::config {

/// The node name that stands for every node without an entry of its own.
inline constexpr std::string_view kDefaultNode = "DEFAULT_PATH_FOR_NON_LISTED_NODES";

/// Where volumes of one class (or of all classes) may be put. Exactly one of the two members is in
/// use: paths per node, or one path that all nodes share. Paths are absolute and lexically clean.
struct PathConfig {
  std::map<std::string, std::vector<std::string>, std::less<>> node_path_map{};
  /// Entries of node_path_map whose paths must be roots of mounted file systems: requireMount.
  std::set<std::string, std::less<>> mount_nodes{};
  std::string shared_file_system_path{};

  bool shared() const { return !shared_file_system_path.empty(); }
  bool empty() const { return node_path_map.empty() && !shared(); }

  /// The paths for a node: its own entry, else the default entry, else nullptr. A listed node with
  /// an empty list has no usable path and does not fall back.
  const std::vector<std::string>* paths_for(std::string_view node) const;
  /// Whether a path of the node must be the root of a mounted file system.
  bool must_be_mounted(std::string_view node, std::string_view path) const;
};

/// config.json, canonical and validated (rule B2). Immutable once published.
struct Config {
  std::uint64_t generation = 0;  // counts the configurations published by this process
  std::chrono::seconds cmd_timeout{120};
  std::string setup_command{};
  std::string teardown_command{};
  std::string resize_command{};
  PathConfig paths{};                                        // of classes without an entry
  std::map<std::string, PathConfig, std::less<>> classes{};  // storageClassConfigs

  /// The class's own paths, else the common ones; nullptr when neither exists.
  const PathConfig* paths_for_class(std::string_view storage_class) const;
  /// Whether any class says so of a path of the node.
  bool must_be_mounted(std::string_view node, std::string_view path) const;
};

}  // namespace lpp::config
