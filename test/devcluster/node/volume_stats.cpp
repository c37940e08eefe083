// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/volume_stats.h"

#include <sys/statvfs.h>

#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

namespace {

std::optional<json> stats_of(const Registry& registry, const json& pod, const json& volume,
                             const PathOnNode& resolve) {
  const std::string claim_name(text_at(volume, {"persistentVolumeClaim", "claimName"}));
  const std::string ns(text_at(pod, {"metadata", "namespace"}));
  if (claim_name.empty()) return std::nullopt;
  const ObjectPtr claim = registry.find("persistentvolumeclaims", ns, claim_name);
  if (claim == nullptr) return std::nullopt;
  const std::string name(text_at(*claim, {"spec", "volumeName"}));
  const ObjectPtr object = registry.find("persistentvolumes", "", name);
  if (object == nullptr) return std::nullopt;
  const auto folder = resolve(text_at(*object, {"spec", "local", "path"}));
  struct statvfs space {};
  if (!folder || ::statvfs(folder->c_str(), &space) != 0) return std::nullopt;
  const auto block = space.f_frsize;
  return json{{"name", volume["name"]},
              {"pvcRef", {{"name", claim_name}, {"namespace", ns}}},
              {"capacityBytes", space.f_blocks * block},
              {"availableBytes", space.f_bavail * block},
              {"usedBytes", (space.f_blocks - space.f_bfree) * block},
              {"inodes", space.f_files},
              {"inodesFree", space.f_ffree},
              {"inodesUsed", space.f_files - space.f_ffree}};
}

}  // namespace

json stats_summary(const Registry& registry, const std::string& node, const PathOnNode& resolve) {
  json pods = json::array();
  for (const ObjectPtr& pod : registry.list("pods").items) {
    if (text_at(*pod, {"spec", "nodeName"}) != node) continue;
    if (text_at(*pod, {"status", "phase"}) != "Running") continue;
    json volumes = json::array();
    for (const json& volume : array_at(*pod, {"spec", "volumes"})) {
      if (auto stats = stats_of(registry, *pod, volume, resolve)) volumes.push_back(*stats);
    }
    pods.push_back(
        {{"podRef",
          {{"name", (*pod)["metadata"]["name"]}, {"namespace", (*pod)["metadata"]["namespace"]}}},
         {"volume", std::move(volumes)}});
  }
  return {{"node", {{"nodeName", node}}}, {"pods", std::move(pods)}};
}

}  // namespace lpp::devcluster
