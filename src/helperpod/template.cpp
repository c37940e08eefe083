// SPDX-License-Identifier: Apache-2.0
#include "helperpod/template.h"

#include <array>
#include <set>

#include "base/strings.h"
#include "helperpod/pod_schema.h"
#include "k8s/names.h"
#include "text/dns_names.h"
#include "text/yaml_to_json.h"

namespace lpp::helperpod {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxReported = 10;

/// Rules that a table cannot say, on a pod of the right shape.
class Rules {
 public:
  Rules(json& pod, bool allow_unsafe, Findings& findings)
      : pod_(pod), allow_unsafe_(allow_unsafe), findings_(findings) {}

  void apply() {
    if (const std::string kind = pod_.value("kind", "Pod"); kind != "Pod") {
      findings_.warnings.push_back("kind is " + shown(kind) + "; it is read as a Pod");
    }
    metadata();
    spec();
  }

 private:
  void error(const std::string& text) { findings_.errors.push_back(text); }

  void metadata() {
    json& meta = pod_["metadata"];
    if (meta.is_null()) meta = json::object();
    json& name = meta["name"];
    if (name.is_null() || name == "") name = "helper-pod";
    if (!text::is_dns_subdomain(name.get_ref<const std::string&>())) {
      error("metadata.name must be lower-case letters, digits, '-' and '.', is " + shown(name));
    }
    for (const char* map : {"labels", "annotations"}) {
      if (!meta.contains(map)) continue;
      for (const auto& [key, value] : meta[map].items()) {
        const std::string place = "metadata." + std::string(map) + "[" + shown(key) + "]";
        if (!k8s::is_qualified_name(to_lower(key)))
          error(place + ": the key is not a qualified name");
        if (map == std::string_view("labels") && !k8s::is_label_value(value.get<std::string>())) {
          error(place + " must be at most 63 letters, digits, '-', '_' and '.', is " +
                shown(value));
        }
      }
    }
  }

  void spec() {
    json& spec = pod_["spec"];
    if (spec.is_null() || !spec.contains("containers") || spec["containers"].empty()) {
      return error("spec.containers must hold a container");
    }
    json& containers = spec["containers"];
    if (containers.size() > 1 && !allow_unsafe_) {
      error(
          "helper pod template must not have more than one entry in spec.containers unless "
          "allow-unsafe-helper-pod-template is enabled");
    }
    if (spec.value("restartPolicy", "Never") != "Never") {
      findings_.warnings.emplace_back("spec.restartPolicy is always Never in helper pods");
    }
    container(containers.front());
    container_names(containers);
    added_volumes(spec, containers.front());
  }

  void container(json& container) {
    json& name = container["name"];
    if (name.is_null() || name == "") name = "helper-pod";
    one_of(container, "imagePullPolicy", {"Always", "IfNotPresent", "Never"});
    one_of(container, "terminationMessagePolicy", {"File", "FallbackToLogsOnError", ""});
    if (!container.contains("env")) return;
    for (std::size_t i = 0; i < container["env"].size(); ++i) {
      if (container["env"][i].value("name", "").empty()) {
        error("spec.containers[0].env[" + std::to_string(i) + "].name must not be empty");
      }
    }
  }

  void one_of(const json& container, const char* field, std::array<const char*, 3> allowed) {
    const auto it = container.find(field);
    if (it == container.end() || *it == "") return;
    for (const char* value : allowed) {
      if (*it == value) return;
    }
    error("spec.containers[0]." + std::string(field) + " has the unknown value " + shown(*it));
  }

  void container_names(const json& containers) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const std::string place = "spec.containers[" + std::to_string(i) + "].name ";
      const std::string name = containers[i].value("name", "");
      if (!text::is_dns_label(name)) {
        error(place + "must be at most 63 lower-case letters, digits and '-', is " + shown(name));
      } else if (!seen.insert(name).second) {
        error(place + shown(name) + " is given twice");
      }
    }
  }

  /// The provisioner adds volumes: nothing may be in their way.
  void added_volumes(const json& spec, const json& container) {
    if (spec.contains("volumes")) {
      for (std::size_t i = 0; i < spec["volumes"].size(); ++i) {
        const std::string name = spec["volumes"][i].value("name", "");
        if (name != "data" && name != "script" && name != "local-path-base") continue;
        error("spec.volumes[" + std::to_string(i) + "].name: \"" + name +
              "\" is the name of a volume that the provisioner adds");
      }
    }
    if (!container.contains("volumeMounts")) return;
    for (std::size_t i = 0; i < container["volumeMounts"].size(); ++i) {
      const json& mount = container["volumeMounts"][i];
      const std::string place = "spec.containers[0].volumeMounts[" + std::to_string(i) + "]";
      std::string path = mount.value("mountPath", "");
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      if (path == "/script" && mount.value("name", "") != "script") {
        error(place + ".mountPath: /script is where the provisioner mounts its scripts");
      }
      if (path == "/local-path-base") {
        error(place +
              ".mountPath: /local-path-base is where the provisioner mounts base directories");
      }
      const bool usable = path.empty() || (path.size() > 1 && path.front() == '/');
      if (mount.value("name", "") == "data" && !usable) {
        error(place + ".mountPath must be absolute and not the root directory, is " + shown(path));
      }
    }
  }

  json& pod_;
  const bool allow_unsafe_;
  Findings& findings_;
};

std::string join(const std::vector<std::string>& messages) {
  std::string text;
  for (std::size_t i = 0; i < messages.size() && i < kMaxReported; ++i) {
    if (i > 0) text += "; ";
    text += messages[i];
  }
  if (messages.size() > kMaxReported) {
    text += "; and " + std::to_string(messages.size() - kMaxReported) + " more";
  }
  return text;
}

/// The pod, with everything that was found about it. An error says that there is none to look at.
Result<json> examine(std::string_view yaml, bool allow_unsafe, Findings& findings) {
  auto document = text::yaml_to_json(yaml);
  if (!document.ok()) return std::move(document).error();
  json pod = std::move(document->value);
  if (pod.is_null()) return invalid("the text is empty; a Pod is needed");
  if (!pod.is_object()) return invalid("a Pod is needed, is " + shown(pod));

  findings.warnings = std::move(document->warnings);
  Findings of_fields;
  check(pod, kPodSchema, "", allow_unsafe, of_fields);
  if (of_fields.errors.empty()) Rules(pod, allow_unsafe, of_fields).apply();
  findings.errors = std::move(of_fields.errors);
  for (auto& warning : of_fields.warnings) {
    if (findings.warnings.size() >= kMaxReported) break;
    findings.warnings.push_back(std::move(warning));
  }
  return pod;
}

Result<Template> parse(std::string_view yaml, bool allow_unsafe) {
  Findings findings;
  auto pod = examine(yaml, allow_unsafe, findings);
  if (!pod.ok()) return std::move(pod).error();
  if (!findings.errors.empty()) return invalid(join(findings.errors));
  return Template{*std::move(pod), std::move(findings.warnings)};
}

}  // namespace

Result<Template> parse_template(std::string_view yaml, std::string_view name, bool allow_unsafe) {
  try {
    auto result = parse(yaml, allow_unsafe);
    if (!result.ok()) return std::move(result).error().wrap(name);
    for (auto& warning : result->warnings) warning.insert(0, std::string(name) + ": ");
    return result;
  } catch (const std::exception& e) {
    return invalid(std::string(name) + ": " + e.what());
  }
}

TemplateInspection inspect_template(std::string_view yaml, bool allow_unsafe) {
  try {
    Findings findings;
    const auto pod = examine(yaml, allow_unsafe, findings);
    if (!pod.ok()) findings.errors.push_back(pod.error().message);
    return {std::move(findings.errors), std::move(findings.warnings)};
  } catch (const std::exception& e) {
    return {{e.what()}, {}};
  }
}

}  // namespace lpp::helperpod
