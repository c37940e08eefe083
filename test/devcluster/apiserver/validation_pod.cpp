// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/strings.h"
#include "devcluster/apiserver/names.h"
#include "devcluster/apiserver/validation.h"
#include "devcluster/apiserver/validation_parts.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

void validate_name(const Json& object, const std::string& at, std::set<std::string>& seen,
                   FieldErrors& errors) {
  const std::string name = text_at(object, {"name"});
  if (name.empty()) {
    add_required(errors, at + ".name");
  } else if (const auto why = dns_label_problem(name); !why.empty()) {
    add_invalid(errors, at + ".name", name, why);
  } else if (!seen.insert(name).second) {
    errors.push_back({.kind = FieldError::Kind::kDuplicate, .field = at + ".name", .value = name});
  }
}

std::set<std::string> validate_volumes(const Json& spec, const std::string& field,
                                       FieldErrors& errors) {
  std::set<std::string> names;
  std::size_t i = 0;
  for (const auto& volume : child(spec, "volumes")) {
    const std::string at = field + ".volumes[" + std::to_string(i++) + "]";
    validate_name(volume, at, names, errors);
    const Json& host_path = child(volume, "hostPath");
    if (host_path.is_object()) {
      const std::string path = text_at(host_path, {"path"});
      if (path.empty()) {
        add_required(errors, at + ".hostPath.path");
      } else {
        validate_path(path, at + ".hostPath.path", errors);
      }
      validate_host_path_type(text_at(host_path, {"type"}), at + ".hostPath.type", errors);
    }
    if (child(volume, "persistentVolumeClaim").is_object() &&
        text_at(volume, {"persistentVolumeClaim", "claimName"}).empty()) {
      add_required(errors, at + ".persistentVolumeClaim.claimName");
    }
    if (volume.size() > 2) {
      add_forbidden(errors, at, "may not specify more than 1 volume type");
    }
  }
  return names;
}

void validate_mounts(const Json& container, const std::string& at,
                     const std::set<std::string>& volumes, FieldErrors& errors) {
  std::set<std::string> paths;
  std::size_t i = 0;
  for (const auto& mount : child(container, "volumeMounts")) {
    const std::string where = at + ".volumeMounts[" + std::to_string(i++) + "]";
    const std::string name = text_at(mount, {"name"});
    if (name.empty()) {
      add_required(errors, where + ".name");
    } else if (!volumes.contains(name)) {
      errors.push_back({.kind = FieldError::Kind::kInvalid,
                        .field = where + ".name",
                        .detail = "Not found: \"" + name + "\"",
                        .value = name});
    }
    const std::string path = text_at(mount, {"mountPath"});
    if (path.empty()) {
      add_required(errors, where + ".mountPath");
    } else if (!paths.insert(path).second) {
      add_invalid(errors, where + ".mountPath", path, "must be unique");
    }
    const std::string sub_path = text_at(mount, {"subPath"});
    if (sub_path.starts_with('/')) {
      add_invalid(errors, where + ".subPath", sub_path, "must be a relative path");
    }
    validate_path(sub_path, where + ".subPath", errors);
  }
}

void validate_containers(const Json& spec, const char* list, const std::string& field,
                         const std::set<std::string>& volumes, std::set<std::string>& names,
                         FieldErrors& errors) {
  std::size_t i = 0;
  for (const auto& container : child(spec, list)) {
    const std::string at = field + "." + list + "[" + std::to_string(i++) + "]";
    validate_name(container, at, names, errors);
    const std::string image = text_at(container, {"image"});
    if (image.empty()) {
      add_required(errors, at + ".image");
    } else if (image != trim(image)) {
      add_invalid(errors, at + ".image", image, "must not have leading or trailing whitespace");
    }
    std::size_t k = 0;
    for (const auto& variable : child(container, "env")) {
      const std::string where = at + ".env[" + std::to_string(k++) + "].name";
      const std::string name = text_at(variable, {"name"});
      if (name.empty()) {
        add_required(errors, where);
      } else if (name.find('=') != std::string::npos) {
        add_invalid(errors, where, name, "environment variable name must not contain '='");
      }
    }
    validate_mounts(container, at, volumes, errors);
  }
}

/// A pod's spec without the fields that may change.
Json fixed_part(const Json& pod) {
  Json spec = child(pod, "spec");
  if (!spec.is_object()) return spec;
  for (const char* key :
       {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"}) {
    spec.erase(key);
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (!child(spec, list).is_array()) continue;
    for (auto& container : spec[list]) {
      container.erase("image");
      container.erase("imagePullPolicy");
    }
  }
  return spec;
}

}  // namespace

void validate_pod_spec(const Json& spec, const std::string& field, FieldErrors& errors) {
  if (is_blank(child(spec, "containers"))) add_required(errors, field + ".containers");
  const auto volumes = validate_volumes(spec, field, errors);
  std::set<std::string> names;
  validate_containers(spec, "containers", field, volumes, names, errors);
  validate_containers(spec, "initContainers", field, volumes, names, errors);
  const std::string policy = text_at(spec, {"restartPolicy"});
  if (policy != "Always" && policy != "OnFailure" && policy != "Never") {
    add_unsupported(errors, field + ".restartPolicy", policy, {"Always", "OnFailure", "Never"});
  }
  const std::string node = text_at(spec, {"nodeName"});
  if (const auto why = dns_subdomain_problem(node); !node.empty() && !why.empty()) {
    add_invalid(errors, field + ".nodeName", node, why);
  }
  const auto deadline = number_at(spec, {"activeDeadlineSeconds"});
  if (deadline && *deadline < 1) {
    add_invalid(errors, field + ".activeDeadlineSeconds", std::to_string(*deadline),
                "must be between 1 and 2147483647, inclusive");
  }
}

void validate_pod_update(const Json& current, const Json& next, FieldErrors& errors) {
  if (fixed_part(current) != fixed_part(next)) {
    add_forbidden(errors, "spec",
                  "pod updates may not change fields other than `spec.containers[*].image`,"
                  "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                  "`spec.tolerations` (only additions to existing tolerations),"
                  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                  "previously negative)");
  }
}

std::string pod_security_problem(const Json& ns, const Json& pod) {
  const std::string level =
      text_at(ns, {"metadata", "labels", "pod-security.kubernetes.io/enforce"});
  if (level != "baseline" && level != "restricted") return {};
  std::string problems;
  const auto add = [&problems](const std::string& text) {
    problems += (problems.empty() ? "" : ", ") + text;
  };
  for (const auto& volume : at_path(pod, {"spec", "volumes"})) {
    if (child(volume, "hostPath").is_object()) {
      add("hostPath volumes (volume \"" + text_at(volume, {"name"}) + "\")");
    }
  }
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (flag_at(pod, {"spec", field})) add(std::string("host namespaces (") + field + "=true)");
  }
  for (const auto& container : at_path(pod, {"spec", "containers"})) {
    const std::string name = "container \"" + text_at(container, {"name"}) + "\"";
    if (flag_at(container, {"securityContext", "privileged"})) {
      add("privileged (" + name + " must not set securityContext.privileged=true)");
    }
    if (level == "restricted" &&
        child(child(container, "securityContext"), "allowPrivilegeEscalation") != Json(false)) {
      add("allowPrivilegeEscalation != false (" + name +
          " must set securityContext.allowPrivilegeEscalation=false)");
    }
  }
  if (problems.empty()) return {};
  return "violates PodSecurity \"" + level + ":latest\": " + problems;
}

}  // namespace lpp::devcluster
