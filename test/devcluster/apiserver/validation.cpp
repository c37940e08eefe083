// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/validation.h"

#include <algorithm>

#include "devcluster/apiserver/names.h"
#include "devcluster/apiserver/validation_parts.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

constexpr std::size_t kAnnotationLimit = std::size_t{256} * 1024;

std::string name_problem(const ResourceInfo& info, std::string_view name) {
  if (info.plural == "namespaces" || info.plural == "services") return dns_label_problem(name);
  if (info.group == "rbac.authorization.k8s.io") return path_segment_problem(name);
  return dns_subdomain_problem(name);
}

void validate_metadata(const ResourceInfo& info, const Json& object, FieldErrors& errors) {
  const std::string name = name_of(object);
  if (name.empty()) {
    add_required(errors, "metadata.name", "name or generateName is required");
  } else if (const auto why = name_problem(info, name); !why.empty()) {
    add_invalid(errors, "metadata.name", name, why);
  }
  for (const auto& [key, value] : at_path(object, {"metadata", "labels"}).items()) {
    if (const auto why = qualified_name_problem(key); !why.empty()) {
      add_invalid(errors, "metadata.labels", key, why);
    }
    if (!value.is_string()) continue;
    if (const auto why = label_value_problem(value.get<std::string>()); !why.empty()) {
      add_invalid(errors, "metadata.labels", value.get<std::string>(), why);
    }
  }
  std::size_t size = 0;
  for (const auto& [key, value] : at_path(object, {"metadata", "annotations"}).items()) {
    std::string lower = key;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (const auto why = qualified_name_problem(lower); !why.empty()) {
      add_invalid(errors, "metadata.annotations", key, why);
    }
    size += key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  }
  if (size > kAnnotationLimit) {
    errors.push_back({.kind = FieldError::Kind::kTooLong,
                      .field = "metadata.annotations",
                      .detail = "may not be more than 262144 bytes"});
  }
  for (const auto& finalizer : at_path(object, {"metadata", "finalizers"})) {
    const std::string text = finalizer.is_string() ? finalizer.get<std::string>() : std::string();
    if (const auto why = qualified_name_problem(text); !why.empty()) {
      add_invalid(errors, "metadata.finalizers", text, why);
    } else if (text.find('/') == std::string::npos && text != "orphan" &&
               text != "foregroundDeletion" && text != "kubernetes") {
      add_invalid(errors, "metadata.finalizers", text,
                  "name is neither a standard finalizer name nor is it fully qualified");
    }
  }
  std::size_t i = 0;
  for (const auto& owner : at_path(object, {"metadata", "ownerReferences"})) {
    const std::string at = "metadata.ownerReferences[" + std::to_string(i++) + "].";
    for (const char* key : {"apiVersion", "kind", "name", "uid"}) {
      if (text_at(owner, {key}).empty()) add_required(errors, at + key);
    }
  }
}

void validate_event(const Json& event, FieldErrors& errors) {
  const std::string ns = namespace_of(event);
  const std::string involved = text_at(event, {"involvedObject", "namespace"});
  const bool fits = involved.empty() ? ns == "default" || ns == "kube-system" : involved == ns;
  if (!fits) {
    add_invalid(errors, "involvedObject.namespace", involved, "does not match event.namespace");
  }
}

void validate_workload(const Json& object, FieldErrors& errors) {
  const Json& selector = at_path(object, {"spec", "selector"});
  if (is_blank(selector)) {
    add_required(errors, "spec.selector");
  }
  const Json& labels = at_path(object, {"spec", "template", "metadata", "labels"});
  for (const auto& [key, value] : child(selector, "matchLabels").items()) {
    if (child(labels, key) == value) continue;
    add_invalid(errors, "spec.template.metadata.labels", dump(labels),
                "`selector` does not match template `labels`");
    break;
  }
  validate_pod_spec(at_path(object, {"spec", "template", "spec"}), "spec.template.spec", errors);
}

void validate_config_map(const Json& object, FieldErrors& errors) {
  for (const auto& [key, value] : child(object, "data").items()) {
    const bool good = !key.empty() && key.size() <= 253 && key != "." && !key.starts_with("..") &&
                      std::all_of(key.begin(), key.end(), [](char c) {
                        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                      });
    if (!good) {
      add_invalid(errors, "data[" + key + "]", key,
                  "a valid config key must consist of alphanumeric characters, '-', '_' or '.'");
    }
  }
}

void validate_lease(const Json& object, FieldErrors& errors) {
  const auto duration = number_at(object, {"spec", "leaseDurationSeconds"});
  if (duration && *duration <= 0) {
    add_invalid(errors, "spec.leaseDurationSeconds", std::to_string(*duration),
                "must be greater than 0");
  }
}

bool is_string_map(const Json& value) {
  return value.is_null() ||
         (value.is_object() &&
          std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); }));
}

bool is_list_of(const Json& value, bool (Json::*predicate)() const noexcept) {
  return value.is_null() ||
         (value.is_array() && std::all_of(value.begin(), value.end(), [&](const Json& element) {
            return (element.*predicate)();
          }));
}

}  // namespace

void add_required(FieldErrors& errors, std::string field, std::string detail) {
  errors.push_back({.kind = FieldError::Kind::kRequired,
                    .field = std::move(field),
                    .detail = std::move(detail)});
}

void add_invalid(FieldErrors& errors, std::string field, std::string value, std::string detail) {
  errors.push_back({.kind = FieldError::Kind::kInvalid,
                    .field = std::move(field),
                    .detail = std::move(detail),
                    .value = std::move(value)});
}

void add_forbidden(FieldErrors& errors, std::string field, std::string detail) {
  errors.push_back({.kind = FieldError::Kind::kForbidden,
                    .field = std::move(field),
                    .detail = std::move(detail)});
}

void add_unsupported(FieldErrors& errors, std::string field, std::string value,
                     std::initializer_list<std::string_view> supported) {
  std::string detail = "supported values: ";
  for (const auto choice : supported) {
    if (choice != *supported.begin()) detail += ", ";
    detail += "\"" + std::string(choice) + "\"";
  }
  errors.push_back({.kind = FieldError::Kind::kNotSupported,
                    .field = std::move(field),
                    .detail = std::move(detail),
                    .value = std::move(value)});
}

std::string shape_problem(const Json& object) {
  if (!object.is_object()) return "the object must be a JSON object";
  const Json& metadata = child(object, "metadata");
  if (!metadata.is_null() && !metadata.is_object()) return "metadata must be an object";
  for (const char* key : {"name", "namespace", "generateName", "uid", "resourceVersion"}) {
    const Json& value = child(metadata, key);
    if (!value.is_null() && !value.is_string()) {
      return std::string("metadata.") + key + " must be a string";
    }
  }
  for (const char* key : {"labels", "annotations"}) {
    if (!is_string_map(child(metadata, key))) {
      return std::string("metadata.") + key + " must be a map of strings";
    }
  }
  if (!is_list_of(child(metadata, "finalizers"), &Json::is_string)) {
    return "metadata.finalizers must be a list of strings";
  }
  if (!is_list_of(child(metadata, "ownerReferences"), &Json::is_object)) {
    return "metadata.ownerReferences must be a list of objects";
  }
  for (const char* key : {"spec", "status"}) {
    const Json& value = child(object, key);
    if (!value.is_null() && !value.is_object()) return std::string(key) + " must be an object";
  }
  const Json& spec = child(object, "spec");
  for (const char* key : {"containers", "initContainers", "volumes", "tolerations"}) {
    if (!is_list_of(child(spec, key), &Json::is_object)) {
      return std::string("spec.") + key + " must be a list of objects";
    }
  }
  for (const char* list : {"containers", "initContainers"}) {
    for (const auto& container : child(spec, list)) {
      for (const char* key : {"env", "volumeMounts", "ports"}) {
        if (is_list_of(child(container, key), &Json::is_object)) continue;
        return std::string("spec.") + list + "." + key + " must be a list of objects";
      }
      for (const char* key : {"command", "args"}) {
        if (is_list_of(child(container, key), &Json::is_string)) continue;
        return std::string("spec.") + list + "." + key + " must be a list of strings";
      }
      for (const auto& variable : child(container, "env")) {
        const Json& value = child(variable, "value");
        if (value.is_null() || value.is_string()) continue;
        return std::string("spec.") + list + ".env.value must be a string";
      }
    }
  }
  return {};
}

FieldErrors validate(const ResourceInfo& info, const Json& object) {
  FieldErrors errors;
  validate_metadata(info, object, errors);
  if (info.plural == "pods") {
    validate_pod_spec(child(object, "spec"), "spec", errors);
  } else if (info.plural == "persistentvolumes") {
    validate_volume(object, errors);
  } else if (info.plural == "persistentvolumeclaims") {
    validate_claim(object, errors);
  } else if (info.plural == "storageclasses") {
    validate_class(object, errors);
  } else if (info.plural == "csidrivers") {
    validate_driver(object, errors);
  } else if (info.plural == "csistoragecapacities") {
    validate_capacity(object, errors);
  } else if (info.plural == "events") {
    validate_event(object, errors);
  } else if (info.plural == "configmaps") {
    validate_config_map(object, errors);
  } else if (info.plural == "leases") {
    validate_lease(object, errors);
  } else if (info.group == "apps") {
    validate_workload(object, errors);
  }
  return errors;
}

FieldErrors validate_update(const ResourceInfo& info, const Json& current, const Json& next) {
  FieldErrors errors;
  if (!text_at(current, {"metadata", "deletionTimestamp"}).empty()) {
    const Json& before = at_path(current, {"metadata", "finalizers"});
    for (const auto& finalizer : at_path(next, {"metadata", "finalizers"})) {
      if (std::find(before.begin(), before.end(), finalizer) != before.end()) continue;
      add_forbidden(errors, "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new "
                    "finalizers []string{" +
                        dump(finalizer) + "}");
    }
  }
  if (info.plural == "pods") {
    validate_pod_update(current, next, errors);
  } else if (info.plural == "persistentvolumes") {
    validate_volume_update(current, next, errors);
  } else if (info.plural == "persistentvolumeclaims") {
    validate_claim_update(current, next, errors);
  } else if (info.plural == "storageclasses") {
    validate_class_update(current, next, errors);
  } else if (info.plural == "csidrivers") {
    validate_driver_update(current, next, errors);
  } else if (info.plural == "csistoragecapacities") {
    validate_capacity_update(current, next, errors);
  } else if (info.plural == "configmaps" || info.plural == "secrets") {
    if (flag_at(current, {"immutable"}) && child(current, "data") != child(next, "data")) {
      add_forbidden(errors, "data", "field is immutable when `immutable` is set");
    }
  } else if (info.plural == "rolebindings" || info.plural == "clusterrolebindings") {
    if (child(current, "roleRef") != child(next, "roleRef")) {
      add_invalid(errors, "roleRef", dump(child(next, "roleRef")), "cannot change roleRef");
    }
  } else if (info.plural == "deployments" || info.plural == "daemonsets") {
    const Json& selector = at_path(next, {"spec", "selector"});
    if (at_path(current, {"spec", "selector"}) != selector) {
      add_invalid(errors, "spec.selector", dump(selector), "field is immutable");
    }
  }
  return errors;
}

}  // namespace lpp::devcluster
