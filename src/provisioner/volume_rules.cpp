// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_rules.h"

#include <algorithm>

#include "base/paths.h"
#include "config/base_path.h"
#include "provisioner/names.h"
#include "provisioner/path_safety.h"

namespace lpp::provisioner {

namespace {

using k8s::find;

template <typename Visit>
void for_each_base(const config::Config& config, const Visit& visit) {
  const auto visit_paths = [&](const config::PathConfig& paths) {
    if (paths.shared()) visit(paths.shared_file_system_path);
    for (const auto& [node, bases] : paths.node_path_map) {
      for (const std::string& base : bases) visit(base);
    }
  };
  visit_paths(config.paths);
  for (const auto& [name, paths] : config.classes) visit_paths(paths);
}

/// The paths of all versions do unless a class allowed unsafe patterns: a folder's name holds the
/// volume's, or <namespace>/<claim> is on the way.
bool names_its_volume(const k8s::PersistentVolume& volume) {
  if (volume.path.find(volume.meta.name) != std::string::npos) return true;
  const std::string claim = "/" + volume.claim.to_string() + "/";
  return (volume.path + "/").find(claim) != std::string::npos;
}

}  // namespace

bool is_ours(const k8s::PersistentVolume& volume, const ServedNames& names) {
  for (const std::string_view key : {kProvisionedBy, kMigratedTo}) {
    const std::string* name = find(volume.meta.annotations, key);
    if (name != nullptr && names.has(*name)) return true;
  }
  return false;
}

bool made_by_hand(const k8s::PersistentVolume& volume) {
  return !volume.path.empty() && find(volume.meta.annotations, kProvisionedBy) == nullptr &&
         find(volume.meta.annotations, kMigratedTo) == nullptr;
}

k8s::PersistentVolume reduced_to_place(const k8s::PersistentVolume& volume) {
  k8s::PersistentVolume place;
  place.meta.name = volume.meta.name;
  place.meta.uid = volume.meta.uid;
  place.meta.resource_version = volume.meta.resource_version;
  place.claim = volume.claim;
  place.claim_uid = volume.claim_uid;
  place.source = volume.source;
  place.path = config::clean_path(volume.path);
  place.node_affinity = volume.node_affinity;
  if (find(volume.meta.annotations, kVolumeDisk) == nullptr) return place;
  place.meta.creation_timestamp = volume.meta.creation_timestamp;
  for (const std::string_view key : {kVolumeDisk, kVolumeBasePath, kVolumeSelectedNode}) {
    const std::string* const value = find(volume.meta.annotations, key);
    if (value != nullptr) place.meta.annotations.emplace(key, *value);
  }
  return place;
}

bool has_finalizer(const k8s::PersistentVolume& volume) {
  const auto& finalizers = volume.meta.finalizers;
  return std::find(finalizers.begin(), finalizers.end(), kFinalizer) != finalizers.end();
}

bool shares_directory(const k8s::PersistentVolume& volume, const operation::Operation& operation,
                      const k8s::Store<k8s::Node>& nodes) {
  if (volume.path.empty() || !overlaps(volume.path, operation.path)) return false;
  return operation.node.empty() || operation.shared || may_be_on(volume, operation.node, nodes);
}

std::vector<std::shared_ptr<const k8s::PersistentVolume>> overlapping_volumes(
    const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes,
    const operation::Operation& operation, const ServedNames& names, std::string_view except) {
  const auto is_in_the_way = [&](const k8s::PersistentVolume& volume) {
    if (volume.meta.name == except) return false;
    const bool around = operation.base_path.empty()
                            ? strictly_below(operation.path, volume.path)
                            : is_at_or_below(operation.base_path, volume.path);
    if (around && !is_ours(volume, names)) return false;
    return shares_directory(volume, operation, nodes);
  };
  auto found = volumes.query([&](const k8s::PersistentVolume::Index& by_path) {
    return by_path.all_overlapping(operation.path);
  });
  std::erase_if(found, [&](const auto& volume) { return !is_in_the_way(*volume); });
  return found;
}

std::shared_ptr<const k8s::PersistentVolume> overlapping_volume(
    const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes,
    const operation::Operation& operation, const ServedNames& names, std::string_view except) {
  const auto found = overlapping_volumes(volumes, nodes, operation, names, except);
  return found.empty() ? nullptr : found.front();
}

std::string base_path_on(std::string_view node, std::string_view path,
                         const config::Config& config) {
  std::string longest;
  const auto look = [&](const std::string& base) {
    if (strictly_below(path, base) && base.size() > longest.size()) longest = base;
  };
  const auto look_at = [&](const config::PathConfig& paths) {
    if (paths.shared()) look(paths.shared_file_system_path);
    const auto* const bases = paths.paths_for(node);
    if (bases != nullptr) std::for_each(bases->begin(), bases->end(), look);
  };
  look_at(config.paths);
  for (const auto& [name, paths] : config.classes) look_at(paths);
  return longest;
}

std::string base_path_of(std::string_view node, std::string_view path,
                         const config::Config& config) {
  std::string longest = node.empty() ? std::string() : base_path_on(node, path, config);
  if (!longest.empty()) return longest;
  for_each_base(config, [&](const std::string& base) {
    if (strictly_below(path, base) && base.size() > longest.size()) longest = base;
  });
  return longest;
}

std::string base_path_of(std::string_view node, const k8s::PersistentVolume& volume,
                         const config::Config& config) {
  const auto* const made_in = k8s::find(volume.meta.annotations, kVolumeBasePath);
  const bool is_path = made_in != nullptr && made_in->size() > 1 && made_in->starts_with('/');
  if (is_path && strictly_below(volume.path, *made_in)) {
    return *made_in;
  }
  return base_path_of(node, volume.path, config);
}

bool is_on_shared_filesystem(std::string_view path, const config::Config& config) {
  const auto below = [&](const config::PathConfig& paths) {
    return paths.shared() && strictly_below(path, paths.shared_file_system_path);
  };
  return below(config.paths) || std::any_of(config.classes.begin(), config.classes.end(),
                                            [&](const auto& entry) { return below(entry.second); });
}

Result<void> check_place(const k8s::PersistentVolume& volume, const config::Config& config,
                         const std::string& what) {
  const std::string refusing = "refusing to " + what;
  const std::string& path = volume.path;
  LPP_RETURN_IF_ERROR(check_volume_path(path), refusing);
  std::string in_the_way;
  for_each_base(config, [&](const std::string& base) {
    if (is_at_or_below(base, path)) in_the_way = base;
  });
  if (!in_the_way.empty()) {
    return invalid(refusing + " path \"" + path +
                   "\": it is or contains the configured base path " + in_the_way);
  }
  if (!base_path_of({}, path, config).empty()) return {};
  // The configuration may have changed since the volume was made. Then its path must look like one,
  // for anybody who may create volumes can make one that points anywhere.
  LPP_RETURN_IF_ERROR(check_not_a_system_path(path), refusing);
  if (!names_its_volume(volume)) {
    return invalid(
        refusing + " path \"" + path +
        "\": it is below none of the configured base paths and names neither the volume " +
        "nor its claim; configure its base path again, or " + what + " it by hand");
  }
  return {};
}

}  // namespace lpp::provisioner
