// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/container_setup.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "devcluster/json_names.h"
#include "devcluster/node/expansion.h"
#include "k8s/base64.h"

namespace lpp::devcluster {

using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables in the order they were defined; a later definition replaces an earlier one.
class Environment {
 public:
  void set(const std::string& name, std::string value) {
    if (!values_.contains(name)) order_.push_back(name);
    values_[name] = std::move(value);
  }
  const std::string* find(std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }
  std::string expand(std::string_view text) const {
    return expand_variables(text, [this](std::string_view name) { return find(name); });
  }
  std::vector<std::pair<std::string, std::string>> list() const {
    std::vector<std::pair<std::string, std::string>> result;
    for (const std::string& name : order_) result.emplace_back(name, values_.at(name));
    return result;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::string, std::less<>> values_;
};

struct KeySource {
  std::string_view resource;
  std::string_view kind;
  bool encoded = false;
};
constexpr KeySource kConfigMap{"configmaps", "configmap", false};
constexpr KeySource kSecret{"secrets", "secret", true};

std::string decoded(const KeySource& source, const json& value) {
  if (!value.is_string()) return {};
  const auto& text = value.get_ref<const std::string&>();
  return source.encoded ? k8s::base64_decode(text).value_or("") : text;
}

/// Sets the variable from one key of a ConfigMap or Secret; leaves it out if that is optional.
Result<void> set_from_key(const ContainerSource& from, const KeySource& source, const json& ref,
                          const std::string& name, Environment& env) {
  const std::string ns = namespace_of(from.pod);
  const std::string object_name(text_at(ref, {"name"}));
  const std::string key(text_at(ref, {"key"}));
  const ObjectPtr object = from.registry.find(source.resource, ns, object_name);
  const json* value = object == nullptr ? nullptr : find_at(*object, {"data", key});
  if (value != nullptr) {
    env.set(name, decoded(source, *value));
    return {};
  }
  if (flag_at(ref, {"optional"})) return {};
  if (object == nullptr) {
    return invalid(std::string(source.kind) + " \"" + object_name + "\" not found");
  }
  return invalid("couldn't find key " + key + " in " + std::string(source.kind) + ' ' +
                 key_of(*object));
}

Result<void> set_from_all(const ContainerSource& from, const KeySource& source, const json& ref,
                          const std::string& prefix, Environment& env) {
  const std::string object_name(text_at(ref, {"name"}));
  const ObjectPtr object = from.registry.find(source.resource, namespace_of(from.pod), object_name);
  if (object == nullptr) {
    if (flag_at(ref, {"optional"})) return {};
    return invalid(std::string(source.kind) + " \"" + object_name + "\" not found");
  }
  for (const auto& [key, value] : object_at(*object, {"data"}).items()) {
    env.set(prefix + key, decoded(source, value));
  }
  return {};
}

Result<Environment> make_environment(const ContainerSource& from) {
  Environment env;
  env.set("PATH", std::string(kDefaultPath));
  env.set("HOSTNAME", name_of(from.pod));
  env.set("HOME", "/root");
  for (const json& entry : array_at(from.container, {"envFrom"})) {
    const std::string prefix(text_at(entry, {"prefix"}));
    for (const auto& [field, source] :
         {std::pair{"configMapRef", kConfigMap}, std::pair{"secretRef", kSecret}}) {
      if (const json* ref = find_at(entry, {field}); ref != nullptr) {
        LPP_RETURN_IF_ERROR(set_from_all(from, source, *ref, prefix, env), "envFrom");
      }
    }
  }
  for (const json& entry : array_at(from.container, {"env"})) {
    const std::string name(text_at(entry, {"name"}));
    const json* value_from = find_at(entry, {"valueFrom"});
    if (value_from == nullptr) {
      env.set(name, env.expand(text_at(entry, {"value"})));
    } else if (const json* field = find_at(*value_from, {"fieldRef"}); field != nullptr) {
      LPP_ASSIGN_OR_RETURN(std::string value, pod_field(from.pod, text_at(*field, {"fieldPath"})),
                           name);
      env.set(name, std::move(value));
    } else if (const json* map = find_at(*value_from, {"configMapKeyRef"}); map != nullptr) {
      if (auto set = set_from_key(from, kConfigMap, *map, name, env); !set.ok()) {
        return std::move(set).error();
      }
    } else if (const json* secret = find_at(*value_from, {"secretKeyRef"}); secret != nullptr) {
      if (auto set = set_from_key(from, kSecret, *secret, name, env); !set.ok()) {
        return std::move(set).error();
      }
    } else {
      return invalid("env " + name + ": this cluster does not know its valueFrom");
    }
  }
  return env;
}

/// The folder or file below the volume that a subPath names; a missing one becomes a folder.
Result<std::string> below_volume(const std::string& volume, std::string_view sub_path) {
  for (const std::string_view part : split(sub_path, '/')) {
    if (part == "..") return invalid("subPath must not contain '..'");
  }
  const NodeDisk inside(volume);
  if (auto found = inside.resolve('/' + std::string(sub_path)); found.ok()) return found;
  return inside.make_folders(sub_path);
}

Result<std::vector<SandboxMount>> make_mounts(const ContainerSource& from, const Environment& env) {
  std::vector<SandboxMount> mounts;
  for (const json& mount : array_at(from.container, {"volumeMounts"})) {
    const std::string name(text_at(mount, {"name"}));
    const auto volume = from.volumes.find(name);
    if (volume == from.volumes.end()) return invalid("no volume \"" + name + "\" to mount");
    std::string source = volume->second.source;
    std::string sub_path(text_at(mount, {"subPath"}));
    if (sub_path.empty()) sub_path = env.expand(text_at(mount, {"subPathExpr"}));
    if (!sub_path.empty()) {
      LPP_ASSIGN_OR_RETURN(source, below_volume(source, sub_path),
                           "failed to prepare subPath for volumeMount \"" + name + '"');
    }
    mounts.push_back({std::move(source), text_at(mount, {"mountPath"}),
                      volume->second.read_only || flag_at(mount, {"readOnly"})});
  }
  const std::string log(
      text_at(from.container, {"terminationMessagePath"}, "/dev/termination-log"));
  const std::string file = termination_file(from.state_folder);
  std::ofstream(file, std::ios::trunc).flush();
  chmod(file.c_str(), 0666);
  mounts.push_back({file, log, false});
  return mounts;
}

/// Shows the folders of an image; what the sandbox itself makes stays as it is.
void add_image(const std::string& root, std::vector<SandboxMount>& mounts) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (name == "dev" || name == "proc" || name == "sys" || name == "tmp") continue;
    if (entry.is_directory()) mounts.push_back({entry.path(), '/' + name, true});
  }
}

void set_security(const ContainerSource& from, SandboxSpec& spec) {
  const json& pod = object_at(from.pod, {"spec", "securityContext"});
  const json& own = object_at(from.container, {"securityContext"});
  const auto id = [&](std::string_view field) {
    return static_cast<unsigned>(number_at(own, {field}, number_at(pod, {field}, 0)));
  };
  if (from.can_change_user) {
    spec.uid = id("runAsUser");
    spec.gid = id("runAsGroup");
  }
  spec.privileged = flag_at(own, {"privileged"});
  spec.read_only_root = flag_at(own, {"readOnlyRootFilesystem"});
  for (const json& entry : array_at(own, {"capabilities", "drop"})) {
    if (!entry.is_string()) continue;
    if (to_lower(entry.get<std::string>()) == "all") {
      spec.drop_all_capabilities = true;
    } else {
      spec.drop_capabilities.push_back(entry.get<std::string>());
    }
  }
  for (const json& entry : array_at(own, {"capabilities", "add"})) {
    if (entry.is_string()) spec.add_capabilities.push_back(entry.get<std::string>());
  }
  spec.passwd_file = from.state_folder + "/passwd";
  std::ofstream passwd(spec.passwd_file);
  passwd << "root:x:0:0:root:/root:/bin/sh\n";
  if (spec.uid != 0) passwd << "user:x:" << spec.uid << ':' << spec.gid << "::/:/bin/sh\n";
}

}  // namespace

std::string termination_file(const std::string& state_folder) {
  return state_folder + "/termination-log";
}

Result<SandboxSpec> make_container(const ContainerSource& source) {
  auto env = make_environment(source);
  if (!env.ok()) return std::move(env).error();
  auto mounts = make_mounts(source, *env);
  if (!mounts.ok()) return std::move(mounts).error();
  SandboxSpec spec;
  if (source.own_image.empty()) {
    spec.image_root = source.image_root;
  } else {
    add_image(source.own_image, *mounts);
  }
  spec.hostname = text_at(source.pod, {"spec", "hostname"}, name_of(source.pod))
                      .substr(0, 63);  // the kernel's limit for names that pods may have
  spec.working_dir = text_at(source.container, {"workingDir"});
  spec.env = env->list();
  spec.mounts = *std::move(mounts);
  for (const char* list : {"command", "args"}) {
    for (const json& word : array_at(source.container, {list})) {
      if (word.is_string()) spec.argv.push_back(env->expand(word.get_ref<const std::string&>()));
    }
  }
  if (spec.argv.empty()) spec.argv = {"sh"};  // what the busybox image runs by itself
  set_security(source, spec);
  return spec;
}

std::string image_repository(std::string_view image) {
  if (const auto digest = image.find('@'); digest != std::string_view::npos) {
    image = image.substr(0, digest);
  }
  const auto slash = image.rfind('/');
  const auto colon = image.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    image = image.substr(0, colon);
  }
  return std::string(image);
}

bool image_is_known(std::string_view name, const std::set<std::string>& others) {
  const std::string repository = image_repository(name);
  std::string_view image = repository;
  if (others.contains(repository)) return true;
  // A first component with a dot, a port or "localhost" is a registry.
  if (const auto first = image.find('/'); first != std::string_view::npos) {
    const auto host = image.substr(0, first);
    if (host.find_first_of(".:") != std::string_view::npos || host == "localhost") {
      image = image.substr(first + 1);
    }
  }
  return image == "busybox" || image == "library/busybox" || image == "rancher/library-busybox" ||
         image == "rancher/mirrored-library-busybox" || others.contains(std::string(image));
}

}  // namespace lpp::devcluster
