// SPDX-License-Identifier: Apache-2.0
#include "helperpod/manifest.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "base/strings.h"
#include "helperpod/own_scripts.h"
#include "node/volume.h"
#include "operation/record.h"
#include "text/dns_names.h"

namespace lpp::helperpod {

namespace {

using nlohmann::json;
using operation::Operation;

constexpr const char* kVolumeAnnotation = "local.path.provisioner/volume";
constexpr const char* kClaimAnnotation = "local.path.provisioner/claim";

constexpr const char* kDataVolume = "data";
constexpr const char* kScriptVolume = "script";
constexpr std::string_view kScriptDir = "/script";
/// Where the data volume is mounted when its own path is taken by the scripts.
constexpr std::string_view kDataDir = "/local-path-data";
/// Where the base folder is shown once more, and the name of that volume.
constexpr std::string_view kBaseDir = "/local-path-base";
constexpr const char* kBaseVolume = "local-path-base";

/// Longest pod name; what the name looks like beyond it is nobody's contract.
constexpr std::size_t kMaxPodName = 128;
constexpr std::size_t kHashLength = 16;

const std::string& script_command(operation::Kind kind, const ManifestSettings& settings) {
  if (kind == operation::Kind::kMake) return settings.setup_command;
  if (kind == operation::Kind::kResize) return settings.resize_command;
  return settings.teardown_command;
}

std::string script_file(operation::Kind kind) {
  switch (kind) {
    case operation::Kind::kMake: return "/script/setup";
    case operation::Kind::kResize: return "/script/" + std::string(kResizeScript);
    case operation::Kind::kTakeBack:
    case operation::Kind::kRemove: break;
  }
  return "/script/teardown";
}

/// The kubelet expands $(NAME) in args and env values and turns $$ into $; this way any text
/// reaches the script as it is.
std::string literal(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    if (c == '$') escaped += '$';
    escaped += c;
  }
  return escaped;
}

/// The volume's directory in parts.
struct Folder {
  std::string parent;       // without a trailing slash
  std::string base{};       // set where there are folders between the base path and the directory
  std::string from_base{};  // then: the way from the base path to the directory
};

Result<Folder> folder_of(const Operation& operation) {
  const std::string& path = operation.path;
  const auto slash = path.rfind('/');
  if (path.empty() || path.front() != '/' || slash == 0 || slash + 1 == path.size()) {
    return invalid("invalid path \"" + path + "\" for volume " + operation.volume_name +
                   ": it needs an absolute parent directory and a name below it");
  }
  Folder folder{.parent = path.substr(0, slash)};
  const std::string& base = operation.base_path;
  if (!base.empty() && strictly_below(folder.parent, base) &&
      !is_at_or_below(folder.parent, kBaseDir)) {
    folder.base = base;
    folder.from_base = path.substr(base.size() + 1);
  }
  return folder;
}

/// The member of that kind, made (or made anew) if it is absent or of another kind.
json& child(json& object, const char* member, json::value_t kind) {
  json& value = object[member];
  if (value.type() != kind) value = json(kind);
  return value;
}

json& list(json& object, const char* member) { return child(object, member, json::value_t::array); }
json& map(json& object, const char* member) { return child(object, member, json::value_t::object); }

json* find_named(json& entries, std::string_view member, std::string_view value) {
  for (json& entry : entries) {
    const auto it = entry.find(member);
    if (it != entry.end() && it->is_string() && it->get_ref<const std::string&>() == value) {
      return &entry;
    }
  }
  return nullptr;
}

void set_env(json& env, const char* name, std::string_view value) {
  std::erase_if(env.get_ref<json::array_t&>(),
                [&](const json& entry) { return entry.value("name", "") == name; });
  json& entry = env.emplace_back(json::object());
  entry["name"] = name;
  entry["value"] = literal(value);
}

/// Adds the scripts' volume and mount; nothing when commands replace the scripts.
void add_scripts(json& spec, json& container, operation::Kind kind,
                 const ManifestSettings& settings) {
  json items = json::array();
  if (settings.setup_command.empty()) items.push_back({{"key", "setup"}, {"path", "setup"}});
  if (settings.teardown_command.empty()) {
    items.push_back({{"key", "teardown"}, {"path", "teardown"}});
  }
  if (kind == operation::Kind::kResize && settings.resize_command.empty()) {
    items.push_back({{"key", kResizeScript}, {"path", kResizeScript}});
  }
  if (items.empty()) return;
  list(spec, "volumes")
      .push_back({{"name", kScriptVolume},
                  {"configMap", {{"name", settings.config_map}, {"items", std::move(items)}}}});
  json& mounts = list(container, "volumeMounts");
  if (json* mount = find_named(mounts, "name", kScriptVolume); mount != nullptr) {
    (*mount)["mountPath"] = kScriptDir;
  } else {
    mounts.push_back({{"name", kScriptVolume}, {"mountPath", kScriptDir}});
  }
}

/// Adds the volume that shows the node's folder, and returns where the container sees it, without a
/// trailing slash. A template may mount "data" elsewhere than on the host (unsafe templates only).
Result<std::string> add_data(json& spec, json& container, const std::string& folder) {
  const std::string host_path = folder + "/";
  list(spec, "volumes")
      .push_back({{"name", kDataVolume},
                  {"hostPath", {{"path", host_path}, {"type", "DirectoryOrCreate"}}}});
  json& mounts = list(container, "volumeMounts");
  json* const mount = find_named(mounts, "name", kDataVolume);
  if (std::string seen = mount == nullptr ? "" : mount->value("mountPath", ""); !seen.empty()) {
    while (seen.size() > 1 && seen.back() == '/') seen.pop_back();
    if (seen.size() < 2 || seen.front() != '/') {
      return invalid(
          "helper pod template: the mountPath of volume \"data\" must be absolute and "
          "must not be the root directory");
    }
    return seen;
  }
  // The scripts are a read-only volume: nothing can be mounted over or below it.
  const bool hidden = is_at_or_below(folder, kScriptDir);
  const std::string mount_path = hidden ? std::string(kDataDir) : host_path;
  if (find_named(mounts, "mountPath", mount_path) != nullptr ||
      find_named(mounts, "mountPath", hidden ? mount_path : folder) != nullptr) {
    return invalid("helper pod template: its volumeMount at " + mount_path +
                   " is in the way of the volume's directory");
  }
  if (mount != nullptr) {
    (*mount)["mountPath"] = mount_path;  // it says something else, such as mountPropagation
  } else {
    mounts.push_back({{"name", kDataVolume}, {"mountPath", mount_path}});
  }
  return hidden ? mount_path : folder;
}

/// Shows the base folder once more where folders lie between it and the volume's directory: the
/// kubelet follows links on the way to a hostPath volume, and what it mounts cannot be removed from
/// inside the pod. From the base folder scripts can do both right.
void add_base(json& spec, json& container, const Folder& folder) {
  list(spec, "volumes")
      .push_back({{"name", kBaseVolume},
                  {"hostPath", {{"path", folder.base + "/"}, {"type", "DirectoryOrCreate"}}}});
  list(container, "volumeMounts").push_back({{"name", kBaseVolume}, {"mountPath", kBaseDir}});
  json& env = list(container, "env");
  set_env(env, "VOL_BASE_DIR", kBaseDir);
  set_env(env, "VOL_SUB_DIR", folder.from_base);
}

void set_limits(json& env, const operation::Limits& limits) {
  set_env(env, "VOL_QUOTA", limits.hard ? "hard" : "none");
  if (limits.inodes > 0) set_env(env, "VOL_QUOTA_INODES", std::to_string(limits.inodes));
  if (!limits.reserve.empty()) set_env(env, "VOL_RESERVE", limits.reserve);
  if (!limits.overcommit) set_env(env, "VOL_OVERCOMMIT", "false");
}

/// For the records that our own program keeps.
void set_claim(json& env, const Operation& operation) {
  const bool is_there =
      operation.kind == operation::Kind::kRemove || operation.kind == operation::Kind::kResize;
  const std::string& uid = is_there ? operation.claim_uid : operation.owner_uid;
  if (!operation.claim.name.empty()) set_env(env, "VOL_CLAIM", operation.claim.to_string());
  if (!uid.empty()) set_env(env, "VOL_CLAIM_UID", uid);
}

std::string record_of(const Operation& operation) {
  const std::string& base = operation.base_path;
  const bool is_below = !base.empty() && strictly_below(operation.path, base);
  const auto from = is_below && base != "/" ? base.size() : operation.path.rfind('/');
  return node::id_of_path(operation.path.substr(from + 1));
}

/// Whether the command is our own program, whose image has no shell.
bool is_own_program(std::string_view command) {
  return command.substr(command.rfind('/') + 1) == kNodeProgram;
}

/// Runs our own scripts, one after the other, as one.
json shell(const char* name, std::initializer_list<const char*> scripts) {
  std::string all;
  for (const char* const script : scripts) all += script;
  return json::array({"/bin/sh", "-c", literal(all), name});
}

void set_work(json& container, const Operation& operation, const ManifestSettings& settings,
              const std::string& directory) {
  const bool create = operation.kind == operation::Kind::kMake;
  const bool takes_back = operation.kind == operation::Kind::kTakeBack;
  const bool by_own_program = is_own_program(script_command(operation.kind, settings));
  const std::string size = std::to_string(operation.size_bytes);
  // What is ours alone tells its result in the usual place; before a setup, where that tells its
  // own.
  if (operation.only_if_empty || by_own_program) {
    container.erase("terminationMessagePath");
  }
  const bool beside_records = operation.kind == operation::Kind::kRemove &&
                              (settings.beside_agents || !operation.disk.empty());
  const bool make_beside_records = create && (settings.cluster || !operation.disk.empty());
  const bool resizes = operation.kind == operation::Kind::kResize;
  const bool on_its_disk = (takes_back || resizes) && !operation.disk.empty();
  if (operation.only_if_empty && !by_own_program) {
    container["command"] =
        on_its_disk
            ? shell("remove-if-empty", {kLooks, kBesideRecords, kOnItsDiskOnly, kRemoveIfEmpty})
            : shell("remove-if-empty", {kLooks, kRemoveIfEmpty});
  } else if (resizes && on_its_disk && settings.resize_command.empty()) {
    container["command"] = shell("resize", {kLooks, kBesideRecords, kOnItsDiskOnly, kResize});
  } else if (takes_back && on_its_disk && settings.teardown_command.empty()) {
    container["command"] = shell("teardown", {kLooks, kBesideRecords, kOnItsDiskOnly, kTeardown});
  } else if (beside_records && settings.teardown_command.empty()) {
    container["command"] = shell("teardown", {kLooks, kBesideRecords, kTeardownBesideRecords});
  } else if (make_beside_records && settings.setup_command.empty()) {
    container["command"] = shell("setup", {kLooks, kBesideRecords, kSetupBesideRecords});
  } else if (const auto& command = script_command(operation.kind, settings); !command.empty()) {
    container["command"] = json::array({command});
  } else {
    container["command"] = json::array({"/bin/sh", script_file(operation.kind)});
  }
  container["args"] =
      json::array({"-p", literal(directory), "-s", size, "-m", literal(operation.volume_mode), "-a",
                   std::string(operation::script_action(operation.kind))});
  if (by_own_program && takes_back) {
    container["args"].push_back(operation.only_if_empty ? "--if-empty" : "--take-back");
  }
  json& env = list(container, "env");
  set_env(env, "VOL_DIR", directory);
  set_env(env, "VOL_MODE", operation.volume_mode);
  set_env(env, "VOL_SIZE_BYTES", size);
  set_env(env, "VOL_USER", create ? operation.user : "");
  set_env(env, "VOL_GROUP", create ? operation.group : "");
  set_env(env, "VOL_PERM", create ? operation.perm : "");
  // For our own scripts and our own program; another command gets it, too.
  if (by_own_program || beside_records || make_beside_records) set_claim(env, operation);
  if (make_beside_records && settings.cluster) set_env(env, "VOL_CLUSTER", *settings.cluster);
  const std::string said_at = container.value("terminationMessagePath", "");
  if (make_beside_records && !said_at.empty()) set_env(env, "VOL_MESSAGE_PATH", said_at);
  const bool compares_disk = on_its_disk || (create && !operation.disk.empty());
  if (beside_records || compares_disk) set_env(env, "VOL_DISK", operation.disk);
  if (beside_records || make_beside_records) set_env(env, "VOL_RECORD", record_of(operation));
  if (operation.limits.any()) set_limits(env, operation.limits);
  if (operation.require_mount) set_env(env, "VOL_REQUIRE_MOUNT", "true");
}

std::string provisioner_label(std::string_view provisioner_name) {
  return short_hash(provisioner_name);
}

Result<json> metadata(const json& from_template, const Operation& operation,
                      const ManifestSettings& settings) {
  LPP_ASSIGN_OR_RETURN(const std::string record, operation::encode_operation(operation),
                       "helper pod");
  json meta = from_template.is_object() ? from_template : json::object();
  meta["name"] =
      pod_name(meta.value("name", ""), operation.kind, operation.volume_name, operation.attempt);
  meta["namespace"] = settings.ns;
  json& labels = map(meta, "labels");
  labels[std::string(kManagedByLabel)] = "local-path-provisioner";
  labels[std::string(kProvisionerLabel)] = provisioner_label(settings.provisioner_name);
  labels[std::string(kActionLabel)] = operation::script_action(operation.kind);
  json& annotations = map(meta, "annotations");
  annotations[kOperationAnnotation] = record;
  annotations[kVolumeAnnotation] = operation.volume_name;  // this one and the next are for people
  if (!operation.claim.name.empty()) annotations[kClaimAnnotation] = operation.claim.to_string();
  annotations.erase(kPutsBackAnnotation);
  if (operation.kind == operation::Kind::kRemove && is_own_program(settings.teardown_command)) {
    annotations[kPutsBackAnnotation] = "true";
  }
  return meta;
}

Result<json> build(const Template& pod_template, const Operation& operation,
                   const ManifestSettings& settings) {
  LPP_ASSIGN_OR_RETURN(const Folder folder, folder_of(operation), "helper pod");
  json pod = pod_template.pod;
  if (!pod.is_object()) pod = json::object();
  LPP_ASSIGN_OR_RETURN(
      json meta, metadata(pod.value("metadata", json::object()), operation, settings), "metadata");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"] = std::move(meta);

  json& spec = map(pod, "spec");
  json& containers = list(spec, "containers");
  if (containers.empty()) containers.push_back(json::object());
  json& container = containers.front();
  if (container.value("name", "").empty()) container["name"] = "helper-pod";
  if (container.value("image", "").empty()) container["image"] = settings.helper_image;
  if (!container.contains("terminationMessagePolicy")) {
    container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  }

  add_scripts(spec, container, operation.kind, settings);
  // The kubelet makes what it is to show and is not there. Where agents have worked, a disk may
  // have taken the place of the directory's own: then that may be the base folder only. Who makes a
  // directory there makes those around it once the disk is looked at, but for a command of somebody
  // else's, which may not know that it has to.
  const bool makes = operation.kind == operation::Kind::kMake;
  const bool counts_on_folders =
      makes && !settings.setup_command.empty() && !is_own_program(settings.setup_command);
  const bool looks_at_disk = !operation.disk.empty() || (!makes && settings.beside_agents);
  const bool may_be_elsewhere = folder.base.size() > 1 && looks_at_disk && !counts_on_folders;
  const std::string& shown = may_be_elsewhere ? folder.base : folder.parent;
  LPP_ASSIGN_OR_RETURN(const std::string seen_at, add_data(spec, container, shown), "data");
  set_work(container, operation, settings, seen_at + operation.path.substr(shown.size()));
  if (!folder.base.empty()) add_base(spec, container, folder);

  // A template's nodeName never sends the work to another node than the volume's.
  if (!operation.node.empty()) spec["nodeName"] = operation.node;
  spec["serviceAccountName"] = settings.service_account;
  spec.erase("serviceAccount");  // its deprecated twin must not disagree
  if (!spec.contains("automountServiceAccountToken")) spec["automountServiceAccountToken"] = false;
  spec["restartPolicy"] = "Never";
  spec["activeDeadlineSeconds"] = std::max<std::int64_t>(1, settings.deadline.count());
  if (!spec.contains("tolerations")) {
    spec["tolerations"] = json::array({{{"key", "node.kubernetes.io/disk-pressure"},
                                        {"operator", "Exists"},
                                        {"effect", "NoSchedule"}}});
  }
  return pod;
}

}  // namespace

std::string label_selector(std::string_view provisioner_name) {
  return std::string(kProvisionerLabel) + "=" + provisioner_label(provisioner_name);
}

std::string pod_name(std::string_view template_name, operation::Kind kind,
                     std::string_view volume_name, int attempt) {
  const std::string start(template_name.empty() ? "helper-pod" : template_name);
  const std::string end =
      "-" + std::string(operation::script_action(kind)) + "-" + std::string(volume_name);
  std::string full = start + end;
  if (attempt == 1 && full.size() <= kMaxPodName && text::is_dns_subdomain(full)) return full;
  if (attempt != 1) full += "/" + std::to_string(attempt);

  // A later attempt, too long or not a name: keep of the template's part what fits, and make it
  // unique by a hash.
  constexpr std::size_t kRoom = kMaxPodName - kHashLength - 1;
  constexpr std::size_t kLeastStart = 16;
  const std::size_t kept = end.size() + kLeastStart < kRoom ? kRoom - end.size() : kLeastStart;
  std::string name = (start.substr(0, kept) + end).substr(0, kRoom);
  for (char& c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!good) c = '-';
  }
  const auto first = name.find_first_not_of('-');
  return name.substr(first) + "-" + short_hash(full);
}

Result<json> make_pod(const Template& pod_template, const Operation& operation,
                      const ManifestSettings& settings) {
  try {
    return build(pod_template, operation, settings);
  } catch (const json::exception& e) {
    return invalid(std::string("helper pod template has an unexpected shape: ") + e.what());
  }
}

}  // namespace lpp::helperpod
