// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/node/node_disk.h"

namespace lpp::devcluster {

/// A pod's volume, ready to be bound into its containers.
struct MountedVolume {
  std::string source;  // on this machine
  bool read_only = false;
};

/// Volumes of one pod by name.
using MountedVolumes = std::map<std::string, MountedVolume>;

/// Everything that mounting needs. References must outlive the call.
struct MountContext {
  const Registry& registry;
  const NodeDisk& disk;
  const nlohmann::json& node;  // the Node object: labels for node affinity
  std::string state_folder;    // of this pod; files and emptyDirs are made below it
};

/// Mounts all volumes of the pod, or says with the kubelet's words which one cannot be. Repeatable:
/// what exists is kept, files of ConfigMaps and Secrets are written anew.
Result<MountedVolumes> mount_volumes(const nlohmann::json& pod, const MountContext& context);

/// True if the volume's node affinity allows the node (or there is none).
bool node_affinity_allows(const nlohmann::json& persistent_volume, const nlohmann::json& node);

/// The value of a downward API field ("metadata.name", "metadata.labels['a']", ...).
Result<std::string> pod_field(const nlohmann::json& pod, std::string_view path);

}  // namespace lpp::devcluster
