// SPDX-License-Identifier: Apache-2.0
#include "cli/surroundings.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"
#include "node/volume.h"
#include "provisioner/node_lost.h"
#include "provisioner/path_safety.h"
#include "provisioner/volume_rules.h"

namespace lpp::cli {

namespace {

Error in_the_way(std::string message) { return {ErrorCode::kConflict, std::move(message)}; }

std::string described(const k8s::PersistentVolume& volume) {
  std::string text = "volume " + volume.meta.name;
  if (!volume.claim.name.empty()) text += " (of claim " + volume.claim.to_string() + ")";
  return text;
}

}  // namespace

Result<std::unique_ptr<Surroundings>> look_around(Cluster& cluster,
                                                  const Installation& installation) {
  auto around = std::make_unique<Surroundings>();
  const LoadOptions options{.helper_pods = true,
                            .events = false,
                            .nodes = false,
                            .waiting_pods = false,
                            .config = installation.config_flag.find('{') == std::string::npos};
  LPP_RETURN_IF_ERROR(load(cluster, installation, options, around->view), "look around");
  LPP_ASSIGN_OR_RETURN(around->config, config_in_force(installation, around->view), "look around");
  if (!around->view.unreadable_volumes.empty()) {
    return in_the_way("volume " + around->view.unreadable_volumes.front() +
                      " cannot be read: nobody knows where its directory is");
  }
  if (!around->view.unreadable_helper_pods.empty()) {
    return in_the_way("helper pod " + around->view.unreadable_helper_pods.front() +
                      " cannot be read: nobody knows on which directory it works");
  }
  if (!around->view.notes.empty()) return in_the_way(around->view.notes.front());
  LPP_ASSIGN_OR_RETURN(around->nodes, provisioner::ask_for_nodes(cluster.api()), "look around");
  return around;
}

Result<operation::Operation> place_on(const std::string& node, const std::string& path,
                                      const Surroundings& around) {
  if (auto clean = provisioner::check_volume_path(path); !clean.ok()) return clean.error();
  if (around.nodes->get({"", node}) == nullptr) {
    return invalid("node " + node + " is not registered in the cluster");
  }
  for (const auto part : split(path, '/')) {
    if (part == node::kRecordFolder) {
      return invalid("path " + path + " belongs to the provisioner's own records");
    }
  }
  operation::Operation place;
  place.node = node;
  place.path = path;
  place.shared = provisioner::is_on_shared_filesystem(path, around.config);
  place.base_path = provisioner::base_path_on(node, path, around.config);
  if (place.base_path.empty()) {
    return invalid("path " + path +
                   " lies below no base path that the configuration has for node " + node);
  }
  k8s::PersistentVolume volume;
  volume.path = path;
  const auto usable = provisioner::check_place(volume, around.config, "use");
  if (!usable.ok()) return usable.error();
  return place;
}

std::shared_ptr<const k8s::PersistentVolume> find_volume_if(
    const ClusterView& view, const std::function<bool(const k8s::PersistentVolume&)>& is_it) {
  for (const auto* const volumes : {&view.directories, &view.others}) {
    for (const auto& volume : volumes->list()) {
      if (is_it(*volume)) return volume;
    }
  }
  return nullptr;
}

std::shared_ptr<const k8s::PersistentVolume> find_volume(const ClusterView& view,
                                                         const std::string& name) {
  if (auto volume = view.directories.get({"", name})) return volume;
  return view.others.get({"", name});
}

Result<void> check_nobodys(const operation::Operation& place, const std::string& volume_name,
                           const Surroundings& around, std::string_view except) {
  const ClusterView& view = around.view;
  if (const auto same = find_volume(view, volume_name); same != nullptr && volume_name != except) {
    return in_the_way(described(*same) + " is there already, at " +
                      (same->path.empty() ? "no path of a node" : same->path));
  }
  for (const auto* const volumes : {&view.directories, &view.others}) {
    const auto other =
        provisioner::overlapping_volume(*volumes, *around.nodes, place, view.names, except);
    if (other == nullptr) continue;
    return in_the_way("path " + place.path + " overlaps the directory " + other->path + " of " +
                      described(*other) + ", which is or may be on node " + place.node);
  }
  for (const HelperPod& pod : view.helper_pods) {
    const operation::Operation& other = pod.operation;
    const bool same_node =
        other.node.empty() || other.shared || place.shared || other.node == place.node;
    if (!same_node || !overlaps(other.path, place.path)) continue;
    return in_the_way("helper pod " + pod.pod.meta.key().to_string() + " is working at " +
                      other.path + " for volume " + other.volume_name + "; try again later");
  }
  return {};
}

}  // namespace lpp::cli
