// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace lpp::devcluster {

/// A node's file system: a folder of this machine that pods see as "/" of their node. Symbolic
/// links are followed as the node would follow them and never lead out of the folder.
/// Stateless; thread-safe.
class NodeDisk {
 public:
  /// A file system that several nodes have mounted: `folder` of this machine, which must exist, is
  /// at `path` of each.
  struct Shared {
    std::string path{};  // "" = none
    std::string folder{};
  };
  /// `root` must exist.
  explicit NodeDisk(std::string root) : NodeDisk(std::move(root), Shared{}) {}
  NodeDisk(std::string root, Shared shared);

  const std::string& root() const { return root_; }

  /// The path on this machine of what `path` names on the node. kNotFound if there is nothing.
  Result<std::string> resolve(std::string_view path) const;
  /// Makes the folder and its parents where missing (mode 0755) and resolves it.
  Result<std::string> make_folders(std::string_view path) const;

  /// Checks and prepares a hostPath volume of the given type ("", "Directory", ...) the way the
  /// kubelet and the container runtime do; the error is the kubelet's text.
  Result<std::string> host_path(std::string_view path, std::string_view type) const;

 private:
  /// The way from the shared file system's root; nullopt for what is not on it.
  std::optional<std::string> on_shared(std::string_view path) const;

  std::string root_;
  Shared shared_;
};

}  // namespace lpp::devcluster
