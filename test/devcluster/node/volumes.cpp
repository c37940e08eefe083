// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/volumes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "devcluster/json_names.h"
#include "devcluster/runtime/selectors.h"
#include "k8s/base64.h"

namespace lpp::devcluster {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct ProjectedFile {
  std::string path;
  std::string content;
  mode_t mode = 0644;
};

Error setup_error(std::string_view volume, const std::string& why) {
  return invalid("MountVolume.SetUp failed for volume \"" + std::string(volume) + "\" : " + why);
}

bool safe_relative(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  const auto parts = split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") == parts.end();
}

/// The files of a ConfigMap or Secret source: all keys, or the chosen items.
Result<std::vector<ProjectedFile>> key_files(const Registry& registry, std::string_view ns,
                                             std::string_view resource, std::string_view name,
                                             const json& source, mode_t default_mode) {
  const bool secret = resource == "secrets";
  const std::string_view kind = secret ? "secret" : "configmap";
  const bool optional = flag_at(source, {"optional"});
  std::vector<ProjectedFile> files;
  const ObjectPtr object = registry.find(resource, ns, name);
  if (object == nullptr) {
    if (optional) return files;
    return Error{.code = ErrorCode::kNotFound,
                 .message = std::string(kind) + " \"" + std::string(name) + "\" not found"};
  }
  std::map<std::string, std::string> values;
  for (const auto& [key, value] : object_at(*object, {"data"}).items()) {
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      values[key] = secret ? k8s::base64_decode(text).value_or("") : text;
    }
  }
  for (const auto& [key, value] : object_at(*object, {"binaryData"}).items()) {
    if (value.is_string())
      values[key] = k8s::base64_decode(value.get_ref<const std::string&>()).value_or("");
  }
  const json& items = array_at(source, {"items"});
  if (items.empty()) {
    for (auto& [key, value] : values) files.push_back({key, std::move(value), default_mode});
    return files;
  }
  for (const json& item : items) {
    const std::string key(text_at(item, {"key"}));
    const auto value = values.find(key);
    if (value == values.end()) {
      if (optional) continue;
      return invalid("references non-existent " + std::string(secret ? "secret" : "config") +
                     " key: " + key);
    }
    files.push_back({text_at(item, {"path"}), value->second,
                     static_cast<mode_t>(number_at(item, {"mode"}, default_mode))});
  }
  return files;
}

Result<std::vector<ProjectedFile>> downward_files(const json& pod, const json& source,
                                                  mode_t default_mode) {
  std::vector<ProjectedFile> files;
  for (const json& item : array_at(source, {"items"})) {
    const std::string field = text_at(item, {"fieldRef", "fieldPath"});
    LPP_ASSIGN_OR_RETURN(std::string value, pod_field(pod, field), "downwardAPI");
    files.push_back({text_at(item, {"path"}), std::move(value),
                     static_cast<mode_t>(number_at(item, {"mode"}, default_mode))});
  }
  return files;
}

/// Writes the files into a new folder and points "..data" at it, as the kubelet does; the names
/// that containers see are links through "..data".
Result<void> write_files(const std::string& folder, const std::vector<ProjectedFile>& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  std::string version;
  for (int i = 0; version.empty(); ++i) {
    const std::string candidate = "..version_" + std::to_string(i);
    if (!fs::exists(fs::path(folder) / candidate)) version = candidate;
  }
  for (const ProjectedFile& file : files) {
    if (!safe_relative(file.path)) return invalid("invalid path in volume: \"" + file.path + '"');
    const fs::path target = fs::path(folder) / version / file.path;
    fs::create_directories(target.parent_path(), error);
    std::ofstream out(target, std::ios::binary);
    out << file.content;
    out.close();
    if (!out || chmod(target.c_str(), file.mode) != 0) {
      return invalid("write " + file.path + ": " + std::generic_category().message(errno));
    }
  }
  fs::create_directories(folder + '/' + version, error);
  fs::remove(folder + "/..data_tmp", error);
  fs::create_directory_symlink(version, folder + "/..data_tmp", error);
  fs::rename(folder + "/..data_tmp", folder + "/..data", error);
  if (error) return invalid("..data: " + error.message());
  for (const ProjectedFile& file : files) {
    const std::string first(split(file.path, '/').front());
    fs::create_symlink(fs::path("..data") / first, fs::path(folder) / first, error);
  }
  return {};
}

Result<MountedVolume> mount_claim(const json& pod, const json& source,
                                  const MountContext& context) {
  const std::string claim_name(text_at(source, {"claimName"}));
  const ObjectPtr claim =
      context.registry.find("persistentvolumeclaims", namespace_of(pod), claim_name);
  if (claim == nullptr) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "persistentvolumeclaim \"" + claim_name + "\" not found"};
  }
  const std::string volume_name(text_at(*claim, {"spec", "volumeName"}));
  if (is_deleting(*claim)) return invalid("PVC is being deleted");
  if (text_at(*claim, {"status", "phase"}) != "Bound" || volume_name.empty()) {
    return invalid("PVC is not bound");
  }
  const ObjectPtr volume = context.registry.find("persistentvolumes", "", volume_name);
  if (volume == nullptr) {
    return Error{.code = ErrorCode::kNotFound,
                 .message = "persistentvolume \"" + volume_name + "\" not found"};
  }
  if (text_at(*volume, {"spec", "claimRef", "uid"}) != uid_of(*claim)) {
    return invalid("PVC " + key_of(*claim) + " UID does not match the claimRef of " + volume_name);
  }
  if (!node_affinity_allows(*volume, context.node)) {
    return invalid("MountVolume.NodeAffinity check failed for volume \"" + volume_name +
                   "\" : no matching NodeSelectorTerms");
  }
  const bool read_only = flag_at(source, {"readOnly"});
  if (const json* host_path = find_at(*volume, {"spec", "hostPath"}); host_path != nullptr) {
    if (!array_at(*volume, {"spec", "mountOptions"}).empty()) {
      return invalid("MountVolume.MountDevice failed for volume \"" + volume_name +
                     "\" : mount options are not supported for this volume type");
    }
    auto path =
        context.disk.host_path(text_at(*host_path, {"path"}), text_at(*host_path, {"type"}));
    if (!path.ok()) return setup_error(volume_name, path.error().message);
    return MountedVolume{*path, read_only};
  }
  if (const json* local = find_at(*volume, {"spec", "local"}); local != nullptr) {
    const std::string path(text_at(*local, {"path"}));
    auto found = context.disk.resolve(path);
    if (!found.ok()) {
      return invalid("MountVolume.NewMounter initialization failed for volume \"" + volume_name +
                     "\" : path \"" + path + "\" does not exist");
    }
    return MountedVolume{*found, read_only};
  }
  return invalid("volume " + volume_name + " is neither hostPath nor local");
}

Result<MountedVolume> mount_files(const json& pod, std::string_view name, const json& volume,
                                  const MountContext& context) {
  const std::string folder = context.state_folder + "/volumes/" + std::string(name);
  const std::string ns = namespace_of(pod);
  std::vector<ProjectedFile> files;
  const auto collect = [&](const json& source, mode_t mode) -> Result<void> {
    Result<std::vector<ProjectedFile>> more = std::vector<ProjectedFile>{};
    if (const json* map = find_at(source, {"configMap"}); map != nullptr) {
      more = key_files(context.registry, ns, "configmaps", text_at(*map, {"name"}), *map, mode);
    } else if (const json* secret = find_at(source, {"secret"}); secret != nullptr) {
      const std::string from = text_at(*secret, {"secretName"}, text_at(*secret, {"name"}));
      more = key_files(context.registry, ns, "secrets", from, *secret, mode);
    } else if (const json* fields = find_at(source, {"downwardAPI"}); fields != nullptr) {
      more = downward_files(pod, *fields, mode);
    } else if (find_at(source, {"serviceAccountToken"}) == nullptr) {
      return invalid("unsupported projected source");
    }  // containers here have no network, so a token would be of no use to them
    if (!more.ok()) return setup_error(name, more.error().message);
    files.insert(files.end(), more->begin(), more->end());
    return {};
  };
  if (const json* projected = find_at(volume, {"projected"}); projected != nullptr) {
    const auto mode = static_cast<mode_t>(number_at(*projected, {"defaultMode"}, 0644));
    for (const json& source : array_at(*projected, {"sources"})) {
      LPP_RETURN_IF_ERROR(collect(source, mode), "projected");
    }
  } else {
    const std::string_view kind = volume.contains("configMap") ? "configMap"
                                  : volume.contains("secret")  ? "secret"
                                                               : "downwardAPI";
    const auto mode = static_cast<mode_t>(number_at(volume, {kind, "defaultMode"}, 0644));
    if (auto done = collect(volume, mode); !done.ok()) return std::move(done).error();
  }
  if (auto done = write_files(folder, files); !done.ok()) {
    return setup_error(name, done.error().message);
  }
  return MountedVolume{folder, true};
}

Result<MountedVolume> mount_one(const json& pod, const json& volume, const MountContext& context) {
  const std::string name = text_at(volume, {"name"});
  if (const json* source = find_at(volume, {"hostPath"}); source != nullptr) {
    auto path = context.disk.host_path(text_at(*source, {"path"}), text_at(*source, {"type"}));
    if (!path.ok()) return setup_error(name, path.error().message);
    return MountedVolume{*path, false};
  }
  if (const json* source = find_at(volume, {"persistentVolumeClaim"}); source != nullptr) {
    return mount_claim(pod, *source, context);
  }
  if (volume.contains("emptyDir")) {
    const std::string folder = context.state_folder + "/volumes/" + std::string(name);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error || chmod(folder.c_str(), 0777) != 0) return setup_error(name, "cannot make folder");
    return MountedVolume{folder, false};
  }
  for (const char* kind : {"configMap", "secret", "downwardAPI", "projected"}) {
    if (volume.contains(kind)) return mount_files(pod, name, volume, context);
  }
  return setup_error(name, "this cluster does not know the volume's type");
}

}  // namespace

Result<MountedVolumes> mount_volumes(const json& pod, const MountContext& context) {
  MountedVolumes mounted;
  for (const json& volume : array_at(pod, {"spec", "volumes"})) {
    auto one = mount_one(pod, volume, context);
    if (!one.ok()) return std::move(one).error();
    mounted.emplace(text_at(volume, {"name"}), *std::move(one));
  }
  return mounted;
}

bool node_affinity_allows(const json& persistent_volume, const json& node) {
  const json* required = find_at(persistent_volume, {"spec", "nodeAffinity", "required"});
  return required == nullptr || node_selector_matches(*required, node);
}

Result<std::string> pod_field(const json& pod, std::string_view path) {
  static const std::map<std::string_view, std::vector<std::string_view>> known_fields = {
      {"metadata.name", {"metadata", "name"}},
      {"metadata.namespace", {"metadata", "namespace"}},
      {"metadata.uid", {"metadata", "uid"}},
      {"spec.nodeName", {"spec", "nodeName"}},
      {"spec.serviceAccountName", {"spec", "serviceAccountName"}},
      {"status.podIP", {"status", "podIP"}},
      {"status.hostIP", {"status", "hostIP"}}};
  if (const auto field = known_fields.find(path); field != known_fields.end()) {
    return text_at(pod, {field->second[0], field->second[1]});
  }
  for (const std::string_view group : {"labels", "annotations"}) {
    const std::string start = "metadata." + std::string(group) + "['";
    if (path.starts_with(start) && path.ends_with("']")) {
      const auto key = path.substr(start.size(), path.size() - start.size() - 2);
      return text_at(pod, {"metadata", group, key});
    }
  }
  return invalid("unsupported fieldPath \"" + std::string(path) + '"');
}

}  // namespace lpp::devcluster
