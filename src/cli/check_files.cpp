// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "cli/check.h"
#include "cli/reference.h"
#include "config/config_parser.h"
#include "config/path_template.h"
#include "flags/flag_values.h"
#include "helperpod/manifest.h"
#include "helperpod/template.h"
#include "k8s/json_access.h"
#include "k8s/names.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/patterns.h"
#include "text/edit_distance.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

using nlohmann::json;
using provisioner::Refusal;

/// "place: nodePathMap[0].paths[1]" and the rest of a message that begins with a field's path.
void add_message(const std::string& place, const std::string& message, bool problem,
                 Findings& findings) {
  const auto colon = message.find(": ");
  const bool field =
      colon != std::string::npos && colon > 0 && message.find(' ') > colon;  // a path has no blanks
  Finding finding{.problem = problem,
                  .place = field ? place + ": " + message.substr(0, colon) : place,
                  .message = field ? message.substr(colon + 2) : message};
  findings.all.push_back(std::move(finding));
}

bool any_path(const config::PathConfig& paths, std::string_view wanted) {
  return std::any_of(paths.node_path_map.begin(), paths.node_path_map.end(), [&](const auto& one) {
    return std::find(one.second.begin(), one.second.end(), wanted) != one.second.end();
  });
}

/// One check of one class.
class ClassCheck {
 public:
  ClassCheck(const k8s::StorageClass& storage_class, std::string place,
             const config::Config* config, bool agents, Findings& findings)
      : class_(storage_class),
        place_(std::move(place)),
        config_(config),
        agents_(agents),
        findings_(findings) {}

  void run() {
    parameters();
    patterns();
    limits();
    const std::string type = volume_type();
    if (!class_.mount_options.empty() && type == "hostpath") {
      problem("mountOptions", "are refused for hostPath volumes: no pod could mount them",
              "remove mountOptions, or use volumeType: local");
    }
    const std::string* const key =
        k8s::find(class_.parameters, provisioner::kNodeAffinityKeyParameter);
    if (key != nullptr && !key->empty() && !k8s::is_qualified_name(*key)) {
      problem("parameters.nodeAffinityKey",
              fmt::format("{} cannot be the key of a label", log::quoted(*key)),
              "use a label that the nodes have, such as kubernetes.io/hostname");
    }
    if (config_ == nullptr) return;
    const config::PathConfig* const paths = config_->paths_for_class(class_.meta.name);
    if (paths == nullptr) {
      problem("", "the configuration has no paths for this class",
              fmt::format("add \"{}\" to storageClassConfigs in config.json, or a nodePathMap",
                          class_.meta.name));
      return;
    }
    if (!paths->shared() && !class_.waits_for_first_consumer()) {
      problem("volumeBindingMode",
              "is Immediate, so that no node is known when the volume is made: every claim would "
              "wait for ever",
              "volumeBindingMode: WaitForFirstConsumer (a class's mode cannot be changed: delete "
              "the class and create it again; volumes and claims stay)");
    }
    if (paths->shared() && limits_.any()) {
      problem("parameters",
              "quota, reserve and overcommit need paths of the nodes' own, and this class has a "
              "sharedFileSystemPath",
              "remove them from the class");
    } else if (paths->shared() && type == "local") {
      problem("parameters.volumeType", "local needs a node, and a shared filesystem has none",
              "volumeType: hostPath");
    }
    const std::string* const wanted = k8s::find(class_.parameters, provisioner::kNodePathParameter);
    if (wanted != nullptr && !wanted->empty() && !paths->shared() && !any_path(*paths, *wanted)) {
      problem("parameters.nodePath",
              fmt::format("no node has the path {} in the configuration", log::quoted(*wanted)),
              "use one of the paths in nodePathMap, or add it there");
    }
  }

 private:
  void problem(std::string_view field, std::string message, std::string fix = {}) {
    findings_.problem(at(field), std::move(message), std::move(fix));
  }
  void warning(std::string_view field, std::string message, std::string fix = {}) {
    findings_.warning(at(field), std::move(message), std::move(fix));
  }
  std::string at(std::string_view field) const {
    return field.empty() ? place_ : fmt::format("{}: {}", place_, field);
  }

  void parameters() {
    std::vector<std::string_view> known;
    for (const Setting& parameter : class_parameters()) known.push_back(parameter.name);
    for (const auto& [name, value] : class_.parameters) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto guess = text::nearest(name, known);
      warning("parameters." + name, "is not a parameter of this provisioner and has no effect",
              guess.empty() ? "" : fmt::format("did you mean {}?", guess));
    }
  }

  void limits() {
    const auto selection = provisioner::path_selection_of(class_);
    if (const auto* refusal = std::get_if<Refusal>(&selection)) problem("", refusal->message);
    const auto on_node_lost = provisioner::on_node_lost_of(class_);
    if (const auto* refusal = std::get_if<Refusal>(&on_node_lost)) problem("", refusal->message);
    const auto limits = provisioner::limits_of(class_);
    if (const auto* refusal = std::get_if<Refusal>(&limits)) return problem("", refusal->message);
    limits_ = std::get<operation::Limits>(limits);
    if (limits_.any() && !agents_ && config_ != nullptr && config_->setup_command.empty()) {
      warning("parameters",
              "quota, reserve and overcommit need a setup script that knows them: claims of this "
              "class wait until there is one",
              "setupCommand, teardownCommand and resizeCommand: /usr/bin/local-path-node in "
              "config.json");
    }
  }

  std::string volume_type() {
    std::string field = "parameters.volumeType";
    const std::string* type = k8s::find(class_.parameters, provisioner::kVolumeTypeParameter);
    if (type == nullptr) {
      type = k8s::find(class_.meta.annotations, provisioner::kDefaultVolumeTypeAnnotation);
      field = "metadata.annotations.defaultVolumeType";
    }
    if (type == nullptr) return limits_.hard ? "local" : "hostpath";
    std::string lower = to_lower(*type);
    if (lower != "hostpath" && lower != "local") {
      problem(field, fmt::format("{} is not a volume type", log::quoted(*type)),
              "use hostPath or local");
    }
    return lower;
  }

  /// The pattern of that name and where it stands.
  std::pair<const std::string*, std::string> pattern(std::string_view name) const {
    if (const auto* found = k8s::find(class_.parameters, name)) {
      return {found, fmt::format("parameters.{}", name)};
    }
    return {k8s::find(class_.meta.annotations, name), fmt::format("metadata.annotations.{}", name)};
  }

  void patterns() {
    bool sound = true;
    for (const std::string_view name : {provisioner::kPathPattern, provisioner::kUserPattern,
                                        provisioner::kGroupPattern, provisioner::kPermPattern}) {
      const auto [text, field] = pattern(name);
      if (text == nullptr) continue;
      if (const auto parsed = config::PathTemplate::parse(*text, name); !parsed.ok()) {
        sound = false;
        problem(field, parsed.error().message);
      }
    }
    const auto [unsafe, field] = pattern(provisioner::kAllowUnsafePathPattern);
    if (unsafe != nullptr && !flags::parse_go_bool(*unsafe)) {
      warning(field, fmt::format("{} counts as false", log::quoted(*unsafe)),
              "use \"true\" or \"false\"");
    }
    if (!sound) return;
    // As it would be for a claim without labels and annotations: such a claim is not sure to exist,
    // so that a refusal is worth a look only.
    k8s::PersistentVolumeClaim claim;
    claim.meta.ns = "NAMESPACE";
    claim.meta.name = "CLAIM";
    claim.meta.uid = "UID";
    const auto rendered = provisioner::render_patterns(claim, class_, "pvc-UID");
    if (const auto* refusal = std::get_if<Refusal>(&rendered)) {
      warning("", fmt::format("a claim without labels and annotations would be refused: {}",
                              refusal->message));
    }
  }

  const k8s::StorageClass& class_;
  const std::string place_;
  const config::Config* const config_;
  const bool agents_;
  operation::Limits limits_{};
  Findings& findings_;
};

}  // namespace

std::optional<config::Config> check_config(const std::string& place, std::string_view text,
                                           Findings& findings) {
  auto inspection = config::inspect_config(text);
  for (const auto& message : inspection.errors) add_message(place, message, true, findings);
  for (const auto& message : inspection.warnings) add_message(place, message, false, findings);
  return std::move(inspection.config);
}

void check_template(const std::string& place, std::string_view text, bool allow_unsafe,
                    Findings& findings) {
  const auto inspection = helperpod::inspect_template(text, allow_unsafe);
  for (const auto& message : inspection.errors) add_message(place, message, true, findings);
  for (const auto& message : inspection.warnings) add_message(place, message, false, findings);
}

void check_config_map(const json& config_map, const std::string& place, bool allow_unsafe,
                      std::optional<config::Config>& config, Findings& findings) {
  const json& data = member(config_map, "data");
  const auto has = [&](const char* key) { return member(data, key).is_string(); };
  if (has("config.json")) {
    findings.checked.emplace_back("config.json");
    config = check_config(place + " config.json", text(data, "config.json"), findings);
  } else {
    findings.problem(place, "has no key config.json", "add it, or start the daemon with --config");
  }
  if (has("helperPod.yaml")) {
    findings.checked.emplace_back("helperPod.yaml");
    check_template(place + " helperPod.yaml", text(data, "helperPod.yaml"), allow_unsafe, findings);
  } else {
    findings.problem(place, "has no key helperPod.yaml",
                     "add it, or start the daemon with --helper-pod-file");
  }
  for (const auto& [key, replaced] :
       {std::pair{"setup", config && !config->setup_command.empty()},
        std::pair{"teardown", config && !config->teardown_command.empty()}}) {
    if (replaced || !text(data, key).empty()) continue;
    findings.problem(place, fmt::format("has no script {}: helper pods cannot start", key),
                     fmt::format("add the key {0}, or {0}Command to config.json", key));
  }
}

void check_helper_image(const Installation& installation, const json& config_map,
                        const config::Config& config, const std::string& place,
                        Findings& findings) {
  const auto pod_template =
      helperpod::parse_template(text(member(config_map, "data"), "helperPod.yaml"), "", true);
  if (!pod_template.ok()) return;
  const json& containers = member(member(pod_template->pod, "spec"), "containers");
  std::string image = containers.empty() ? "" : text(containers.front(), "image");
  if (image.empty()) image = installation.helper_image;
  // From whatever registry: an overlay may have set another one for one of both only.
  const auto name = [](const std::string& full) { return full.substr(full.rfind('/') + 1); };
  if (installation.image.empty() || name(image) != name(installation.image)) return;
  if (!config.setup_command.empty() && !config.teardown_command.empty()) return;
  std::string missing;
  for (const auto& [field, command] : {std::pair{"setupCommand", &config.setup_command},
                                       std::pair{"teardownCommand", &config.teardown_command},
                                       std::pair{"resizeCommand", &config.resize_command}}) {
    if (command->empty()) missing += (missing.empty() ? "" : ", ") + std::string(field);
  }
  const bool agents = installation.agents.on;
  findings.all.push_back(
      {.problem = !agents,
       .place = fmt::format("{}: {}", place, missing),
       .message = fmt::format("missing, and the helper pods run the provisioner's own image {}, "
                              "which has no shell for scripts: {}",
                              image,
                              agents ? "nodes without an agent get no volumes, and theirs are not "
                                       "removed"
                                     : "they cannot start"),
       .fix = fmt::format("set to /usr/bin/{} what is missing, which a patch of config.json "
                          "repeats (docs/sizes.md), or give the helper pods an image with a shell "
                          "(HELPER_IMAGE)",
                          helperpod::kNodeProgram)});
}

void check_class(const json& storage_class, const std::string& place, const config::Config* config,
                 Findings& findings, bool agents) {
  const auto decoded = k8s::decode<k8s::StorageClass>(storage_class);
  if (!decoded.ok()) return findings.problem(place, decoded.error().message);
  ClassCheck(*decoded, place, config, agents, findings).run();
}

void check_namespace(const json& ns, const std::string& place, Findings& findings) {
  constexpr const char* kEnforce = "pod-security.kubernetes.io/enforce";
  const std::string level = text(member(member(ns, "metadata"), "labels"), kEnforce);
  if (level.empty() || level == "privileged") return;
  findings.problem(fmt::format("{}: metadata.labels[\"{}\"]", place, kEnforce),
                   fmt::format("is {}: helper pods use hostPath volumes and would be refused",
                               log::quoted(level)),
                   fmt::format("set it to privileged (kubectl label --overwrite namespace {} "
                               "{}=privileged); the daemon itself keeps to \"restricted\"",
                               shell_word(text(member(ns, "metadata"), "name")), kEnforce));
}

void check_nodes(const config::Config& config, const std::set<std::string>& nodes,
                 const std::vector<std::string>& classes, const std::string& place,
                 Findings& findings) {
  // Classes that share their paths are named together.
  std::map<const config::PathConfig*, std::string> users;
  for (const std::string& name : classes) {
    const config::PathConfig* const paths = config.paths_for_class(name);
    if (paths == nullptr || paths->shared()) continue;
    auto& text = users[paths];
    text += (text.empty() ? "" : ", ") + name;
  }
  for (const auto& [paths, names] : users) {
    std::string without;
    std::size_t count = 0;
    constexpr std::size_t kNamed = 5;
    for (const std::string& node : nodes) {
      const auto* const bases = paths->paths_for(node);
      if (bases != nullptr && !bases->empty()) continue;
      if (++count <= kNamed) without += (without.empty() ? "" : ", ") + node;
    }
    if (count > kNamed) without += fmt::format(" and {} more", count - kNamed);
    if (count > 0) {
      findings.warning(place + ": nodePathMap",
                       fmt::format("{} of {} nodes have no path for class {}: {}", count,
                                   nodes.size(), names, without),
                       fmt::format("add them, or an entry {}; pods with such claims run on the "
                                   "other nodes",
                                   config::kDefaultNode));
    }
    for (const auto& [node, bases] : paths->node_path_map) {
      if (node == config::kDefaultNode || nodes.count(node) > 0) continue;
      findings.warning(place + ": nodePathMap",
                       fmt::format("there is no node {}", log::quoted(node)),
                       "correct the name (kubectl get nodes), or remove the entry");
    }
  }
}

}  // namespace lpp::cli
