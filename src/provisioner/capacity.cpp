// SPDX-License-Identifier: Apache-2.0
#include "provisioner/capacity.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "provisioner/base_paths.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"

namespace lpp::provisioner {

using nlohmann::json;

namespace {

/// The paths of the node that a volume of the class may get; nothing when there is none.
std::vector<std::string> paths_of(const k8s::StorageClass& storage_class,
                                  const config::PathConfig& config, const std::string& node) {
  const auto* const paths = config.paths_for(node);
  if (paths == nullptr) return {};
  const std::string* const wanted = k8s::find(storage_class.parameters, kNodePathParameter);
  if (wanted == nullptr || wanted->empty()) return *paths;
  const bool has_it = std::find(paths->begin(), paths->end(), *wanted) != paths->end();
  return has_it ? std::vector<std::string>{*wanted} : std::vector<std::string>();
}

/// Whichever path a class chooses first: where it does not fit, the others are tried. So the best
/// one decides.
void take_best(const k8s::StorageClass& storage_class, const std::string& node,
               const std::vector<std::string>& paths, const CapacityScene& scene,
               Capacity& capacity) {
  for (const std::string& path : paths) {
    if (scene.unfit.contains({node, path})) continue;
    const auto it = scene.rooms.find({node, path});
    if (it == scene.rooms.end()) {
      capacity.bytes = kUnknownRoom;
      capacity.known = false;
      return;
    }
    capacity.bytes = std::max(capacity.bytes, room_for(storage_class, it->second));
  }
}

json labels_of(std::string_view provisioner) {
  json labels = json::object();
  labels[std::string(kCapacityLabel)] = provisioner;
  return labels;
}

/// "5Mi", as the API server gives it back, and people read it; other numbers as they are.
std::string size_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 7> kSuffixes{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  std::size_t at = 0;
  while (bytes != 0 && bytes % 1024 == 0 && at + 1 < kSuffixes.size()) {
    bytes /= 1024;
    ++at;
  }
  return std::to_string(bytes) + std::string(kSuffixes[at]);
}

}  // namespace

std::string Capacity::object_name(std::string_view provisioner) const {
  return "local-path-" +
         short_hash(std::string(provisioner) + "/" + storage_class + "/" + hostname);
}

std::int64_t room_for(const k8s::StorageClass& storage_class, const PathRoom& room) {
  const auto limits = limits_of(storage_class);
  const auto* const kept = std::get_if<operation::Limits>(&limits);
  if (kept == nullptr) return kUnknownRoom;
  const auto& [space, promised, promises] = room;
  const std::int64_t taken = kept->overcommit ? 0 : not_used_yet(space, promises, promised);
  const std::int64_t reserve =
      kept->reserve.empty() ? 0 : reserved_bytes(kept->reserve, space.size).value_or(0);
  // Each is at least 0, so that no difference of two wraps around.
  const std::int64_t left = space.free - std::min(space.free, taken);
  return left - std::min(left, reserve);
}

std::set<CapacityScene::Place> places_of(const CapacityScene& scene) {
  std::set<CapacityScene::Place> places;
  for (const auto& storage_class : scene.classes) {
    if (storage_class->provisioner != scene.provisioner) continue;
    const auto* const config = scene.config->paths_for_class(storage_class->meta.name);
    if (config == nullptr || config->shared()) continue;
    for (const auto& node : scene.nodes) {
      for (const auto& path : paths_of(*storage_class, *config, node->meta.name)) {
        places.emplace(node->meta.name, path);
      }
    }
  }
  return places;
}

std::vector<Capacity> wanted_capacities(const CapacityScene& scene) {
  std::vector<Capacity> wanted;
  if (scene.provisioner.empty() || scene.config == nullptr) return wanted;
  for (const auto& storage_class : scene.classes) {
    if (storage_class->provisioner != scene.provisioner) continue;
    const std::string& name = storage_class->meta.name;
    const auto* const config = scene.config->paths_for_class(name);
    const auto limits = limits_of(*storage_class);
    if (config == nullptr || config->shared() || std::holds_alternative<Refusal>(limits)) {
      wanted.push_back({.storage_class = name, .bytes = kUnknownRoom, .known = false});
      continue;
    }
    for (const auto& node : scene.nodes) {
      // By another label the scheduler cannot be told which one it is.
      const std::string* const hostname = k8s::find(node->meta.labels, kHostnameLabel);
      if (hostname == nullptr || hostname->empty()) continue;
      const auto paths = paths_of(*storage_class, *config, node->meta.name);
      if (paths.empty()) continue;
      Capacity capacity{.storage_class = name, .hostname = *hostname, .node = node->meta.name};
      take_best(*storage_class, node->meta.name, paths, scene, capacity);
      wanted.push_back(std::move(capacity));
    }
  }
  return wanted;
}

bool is_worth_writing(std::int64_t published, std::int64_t wanted) {
  if (published == wanted) return false;
  const std::int64_t change = std::max(published, wanted) - std::min(published, wanted);
  return change >= published / 100;
}

json capacity_patch(std::int64_t bytes) {
  const std::string text = size_text(std::max<std::int64_t>(bytes, 0));
  return {{"capacity", text}, {"maximumVolumeSize", text}};
}

json capacity_object(const Capacity& capacity, std::string_view provisioner, std::string_view ns) {
  json object{{"apiVersion", "storage.k8s.io/v1"},
              {"kind", "CSIStorageCapacity"},
              {"metadata",
               {{"name", capacity.object_name(provisioner)},
                {"namespace", ns},
                {"labels", labels_of(provisioner)}}},
              {"storageClassName", capacity.storage_class}};
  // An empty selector is every node; none at all would be no node.
  object["nodeTopology"] = json::object();
  if (!capacity.hostname.empty()) {
    object["nodeTopology"]["matchLabels"][std::string(kHostnameLabel)] = capacity.hostname;
  }
  object.update(capacity_patch(capacity.bytes));
  return object;
}

json driver_object(std::string_view provisioner) {
  // Volumes are of the types local and hostPath: of all this only storageCapacity is ever looked
  // at. preventPodSchedulingIfMissing stays unset, for no node has such a driver.
  return {{"apiVersion", "storage.k8s.io/v1"},
          {"kind", "CSIDriver"},
          {"metadata", {{"name", provisioner}, {"labels", labels_of(provisioner)}}},
          {"spec",
           {{"storageCapacity", true},
            {"attachRequired", false},
            {"podInfoOnMount", false},
            {"fsGroupPolicy", "None"},
            {"volumeLifecycleModes", json::array({"Persistent"})}}}};
}

std::map<FreshSpace::Place, operation::Space> FreshSpace::look(const operation::SpaceBoard& board,
                                                               TimePoint now) {
  std::map<Place, Heard> heard;
  std::map<Place, operation::Space> fresh;
  for (const auto& entry : board.all()) {
    const Place place{entry.node, entry.base_path};
    const auto before = heard_.find(place);
    const bool is_news = before == heard_.end() || before->second.told != entry.told;
    const Heard& last = heard[place] = is_news ? Heard{entry.told, now} : before->second;
    if (now - last.at < kToldCounts) fresh[place] = entry.space;
  }
  heard_ = std::move(heard);
  return fresh;
}

}  // namespace lpp::provisioner
