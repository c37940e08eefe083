// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/cluster.h"
#include "operation/operation.h"

/// What a directory that a person names has to do with the rest of the cluster, before it gets a
/// volume by hand. Whatever is not known counts against it.
namespace lpp::cli {

struct Surroundings {
  ClusterView view{};
  config::Config config{};
  std::shared_ptr<const k8s::Store<k8s::Node>> nodes{};
};

/// Reads all of it, or an error: claims, volumes, classes, helper pods, nodes, configuration.
Result<std::unique_ptr<Surroundings>> look_around(Cluster& cluster,
                                                  const Installation& installation);

/// The place as an operation on it: base path, and whether all nodes share it. kInvalid unless the
/// node is registered, and the path clean and below a base path that the configuration has for the
/// node, and none of what is not a volume's. Pure.
Result<operation::Operation> place_on(const std::string& node, const std::string& path,
                                      const Surroundings& around);

/// kConflict when a volume, of whomever, has its directory there, around it or in it, when one has
/// the name `volume_name`, or when the provisioner is working there. `except`: a volume that does
/// not count. Pure.
Result<void> check_nobodys(const operation::Operation& place, const std::string& volume_name,
                           const Surroundings& around, std::string_view except = {});

/// The first volume, of whomever, for which `is_it` is true; nullptr = there is none.
std::shared_ptr<const k8s::PersistentVolume> find_volume_if(
    const ClusterView& view, const std::function<bool(const k8s::PersistentVolume&)>& is_it);
/// A volume of that name, of whomever; nullptr = there is none.
std::shared_ptr<const k8s::PersistentVolume> find_volume(const ClusterView& view,
                                                         const std::string& name);

}  // namespace lpp::cli
