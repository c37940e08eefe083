// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "devcluster/node/sandbox.h"
#include "devcluster/node/volumes.h"

namespace lpp::devcluster {

/// What a container is made from. References must outlive the call.
struct ContainerSource {
  const Registry& registry;
  const nlohmann::json& pod;
  const nlohmann::json& container;
  const MountedVolumes& volumes;
  std::string image_root;    // folder of make_image_root()
  std::string own_image{};   // instead: the root file system of another image; its users are root
  std::string state_folder;  // of this container; must exist
  bool can_change_user = true;  // false: everything runs as the sandbox's root
};

/// The file of the container's state folder that it sees as its termination log.
std::string termination_file(const std::string& state_folder);

/// Builds the sandbox of one container as the kubelet would: environment with references to
/// fields, ConfigMaps and Secrets, $(NAME) expansion, mounts with subPath, user, capabilities.
/// Errors are what a real node reports as CreateContainerConfigError.
Result<SandboxSpec> make_container(const ContainerSource& source);

/// "registry.example.com/me/mine" for "registry.example.com/me/mine:1@sha256:...".
std::string image_repository(std::string_view image);

/// True for the images that stand for the busybox root: busybox and rancher's copies of it from
/// any registry with any tag, and the repositories in `others`.
bool image_is_known(std::string_view image, const std::set<std::string>& others);

}  // namespace lpp::devcluster
