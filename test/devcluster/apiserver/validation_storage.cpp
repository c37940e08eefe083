// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "devcluster/apiserver/claim_sizes.h"
#include "devcluster/apiserver/names.h"
#include "devcluster/apiserver/validation_parts.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

constexpr std::array<const char*, 12> kVolumeSources = {"hostPath",
                                                        "local",
                                                        "csi",
                                                        "nfs",
                                                        "iscsi",
                                                        "fc",
                                                        "cephfs",
                                                        "rbd",
                                                        "azureDisk",
                                                        "awsElasticBlockStore",
                                                        "gcePersistentDisk",
                                                        "flexVolume"};

/// True for a quantity of zero or less.
bool not_positive(const Json& value) {
  if (value.is_number()) return value.get<double>() <= 0;
  const std::string text = value.get<std::string>();
  return text.starts_with('-') || text.find_first_of("123456789") == std::string::npos;
}

void validate_access_modes(const Json& spec, FieldErrors& errors) {
  const Json& modes = child(spec, "accessModes");
  if (!modes.is_array() || modes.empty()) {
    add_required(errors, "spec.accessModes", "at least 1 access mode is required");
    return;
  }
  bool once_pod = false;
  for (const auto& mode : modes) {
    const std::string text = mode.is_string() ? mode.get<std::string>() : dump(mode);
    once_pod = once_pod || text == "ReadWriteOncePod";
    if (text != "ReadWriteOnce" && text != "ReadOnlyMany" && text != "ReadWriteMany" &&
        text != "ReadWriteOncePod") {
      add_unsupported(errors, "spec.accessModes", text,
                      {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"});
    }
  }
  if (once_pod && modes.size() > 1) {
    add_forbidden(errors, "spec.accessModes",
                  "may not use ReadWriteOncePod with other access modes");
  }
}

void validate_storage(const Json& quantity, const std::string& field, FieldErrors& errors) {
  if (quantity.is_null()) {
    add_required(errors, field);
  } else if (!looks_like_quantity(quantity)) {
    add_invalid(errors, field, dump(quantity),
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  } else if (not_positive(quantity)) {
    add_invalid(errors, field, quantity.is_string() ? quantity.get<std::string>() : dump(quantity),
                "must be greater than zero");
  }
}

void validate_volume_mode(const Json& spec, FieldErrors& errors) {
  const std::string mode = text_at(spec, {"volumeMode"});
  if (mode != "Filesystem" && mode != "Block") {
    add_unsupported(errors, "spec.volumeMode", mode, {"Block", "Filesystem"});
  }
}

void validate_node_affinity(const Json& spec, FieldErrors& errors) {
  const Json& affinity = child(spec, "nodeAffinity");
  const bool local = child(spec, "local").is_object();
  if (affinity.is_null()) {
    if (local) add_required(errors, "spec.nodeAffinity", "Local volume requires node affinity");
    return;
  }
  const std::string at = "spec.nodeAffinity.required";
  const Json& terms = at_path(affinity, {"required", "nodeSelectorTerms"});
  if (!child(affinity, "required").is_object()) {
    add_required(errors, at, "must specify required node constraints");
    return;
  }
  if (!terms.is_array() || terms.empty()) {
    add_required(errors, at + ".nodeSelectorTerms", "must have at least one node selector term");
    return;
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::size_t k = 0;
    for (const auto& expression : child(terms[i], "matchExpressions")) {
      const std::string where = at + ".nodeSelectorTerms[" + std::to_string(i) +
                                "].matchExpressions[" + std::to_string(k++) + "]";
      const std::string key = text_at(expression, {"key"});
      if (const auto why = qualified_name_problem(key); !why.empty()) {
        add_invalid(errors, where + ".key", key, why);
      }
      const std::string op = text_at(expression, {"operator"});
      const Json& values = child(expression, "values");
      if ((op == "In" || op == "NotIn") && (!values.is_array() || values.empty())) {
        add_required(errors, where + ".values",
                     "must be specified when `operator` is 'In' or 'NotIn'");
      }
      for (const auto& value : values) {
        const std::string text = value.is_string() ? value.get<std::string>() : dump(value);
        if (const auto why = label_value_problem(text); !why.empty()) {
          add_invalid(errors, where + ".values", text, why);
        }
      }
    }
  }
}

Json without(const Json& spec, std::initializer_list<const char*> keys) {
  Json copy = spec;
  if (copy.is_object()) {
    for (const char* key : keys) copy.erase(key);
  }
  return copy;
}

}  // namespace

// Digits first, or a point or sign and then digits: enough to tell a quantity from nonsense.
bool looks_like_quantity(const Json& value) {
  if (value.is_number()) return true;
  if (!value.is_string()) return false;
  const std::string text(trim(value.get_ref<const std::string&>()));
  std::size_t i = text.find_first_not_of("+-");
  if (i == std::string::npos || i > 1) return false;
  const std::size_t digits_end = text.find_first_not_of("0123456789.", i);
  if (digits_end == i) return false;
  if (digits_end == std::string::npos) return true;
  const std::string suffix = text.substr(digits_end);
  static constexpr std::array<std::string_view, 15> kSuffixes = {
      "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  if (std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end()) return true;
  return (suffix[0] == 'e' || suffix[0] == 'E') && suffix.size() > 1 &&
         suffix.find_first_not_of("0123456789+-", 1) == std::string::npos;
}

void validate_path(std::string_view path, const std::string& field, FieldErrors& errors) {
  const auto parts = split(path, '/');
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    add_invalid(errors, field, std::string(path), "must not contain '..'");
  }
}

void validate_host_path_type(std::string_view type, const std::string& field, FieldErrors& errors) {
  static constexpr std::array<std::string_view, 8> kTypes = {
      "",       "DirectoryOrCreate", "Directory",  "FileOrCreate", "File",
      "Socket", "CharDevice",        "BlockDevice"};
  if (std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end()) return;
  add_unsupported(errors, field, std::string(type),
                  {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                   "FileOrCreate", "Socket"});
}

void validate_volume(const Json& volume, FieldErrors& errors) {
  const Json& spec = child(volume, "spec");
  const Json& capacity = child(spec, "capacity");
  if (!capacity.is_object() || capacity.empty()) {
    add_required(errors, "spec.capacity");
  } else if (capacity.size() != 1 || !capacity.contains("storage")) {
    add_unsupported(errors, "spec.capacity", dump(capacity), {"storage"});
  } else {
    validate_storage(capacity["storage"], "spec.capacity[storage]", errors);
  }
  validate_access_modes(spec, errors);
  const auto sources =
      std::count_if(kVolumeSources.begin(), kVolumeSources.end(),
                    [&](const char* source) { return child(spec, source).is_object(); });
  if (sources == 0) add_required(errors, "spec", "must specify a volume type");
  if (sources > 1) add_forbidden(errors, "spec", "may not specify more than 1 volume type");
  for (const char* source : {"hostPath", "local"}) {
    if (!child(spec, source).is_object()) continue;
    const std::string field = std::string("spec.") + source + ".path";
    const std::string path = text_at(spec, {source, "path"});
    if (path.empty()) {
      add_required(errors, field);
    } else {
      validate_path(path, field, errors);
    }
  }
  validate_host_path_type(text_at(spec, {"hostPath", "type"}), "spec.hostPath.type", errors);
  const bool on_disk = child(spec, "hostPath").is_object() || child(spec, "local").is_object();
  const auto* mount_options = "volume.beta.kubernetes.io/mount-options";
  if (on_disk && !at_path(volume, {"metadata", "annotations", mount_options}).is_null()) {
    add_forbidden(errors, std::string("metadata.annotations[") + mount_options + "]",
                  "may not specify mount options for this volume type");
  }
  const std::string policy = text_at(spec, {"persistentVolumeReclaimPolicy"});
  if (policy != "Retain" && policy != "Delete" && policy != "Recycle") {
    add_unsupported(errors, "spec.persistentVolumeReclaimPolicy", policy,
                    {"Delete", "Recycle", "Retain"});
  }
  const std::string class_name = text_at(spec, {"storageClassName"});
  if (const auto why = dns_subdomain_problem(class_name); !class_name.empty() && !why.empty()) {
    add_invalid(errors, "spec.storageClassName", class_name, why);
  }
  validate_volume_mode(spec, errors);
  validate_node_affinity(spec, errors);
}

void validate_volume_update(const Json& current, const Json& next, FieldErrors& errors) {
  const Json& before = child(current, "spec");
  const Json& after = child(next, "spec");
  for (const char* source : kVolumeSources) {
    if (child(before, source) == child(after, source)) continue;
    add_forbidden(errors, "spec.persistentvolumesource",
                  "spec.persistentvolumesource is immutable after creation");
    break;
  }
  if (child(before, "volumeMode") != child(after, "volumeMode")) {
    add_invalid(errors, "spec.volumeMode", text_at(after, {"volumeMode"}), "field is immutable");
  }
  const Json& affinity = child(before, "nodeAffinity");
  if (!affinity.is_null() && affinity != child(after, "nodeAffinity")) {
    add_invalid(errors, "spec.nodeAffinity", dump(child(after, "nodeAffinity")),
                "field is immutable, except for updating from beta label to GA");
  }
}

void validate_claim(const Json& claim, FieldErrors& errors) {
  const Json& spec = child(claim, "spec");
  validate_access_modes(spec, errors);
  validate_storage(at_path(spec, {"resources", "requests", "storage"}), "spec.resources[storage]",
                   errors);
  validate_volume_mode(spec, errors);
  const std::string class_name = text_at(spec, {"storageClassName"});
  if (const auto why = dns_subdomain_problem(class_name); !class_name.empty() && !why.empty()) {
    add_invalid(errors, "spec.storageClassName", class_name, why);
  }
  validate_claim_status(claim, errors);
}

void validate_claim_update(const Json& current, const Json& next, FieldErrors& errors) {
  const Json& before = child(current, "spec");
  const Json& after = child(next, "spec");
  const bool bound = text_at(current, {"status", "phase"}) == "Bound";
  bool same =
      without(before,
              {"resources", "volumeName", "storageClassName", "volumeAttributesClassName"}) ==
      without(after, {"resources", "volumeName", "storageClassName", "volumeAttributesClassName"});
  const Json& name = child(before, "volumeName");
  same = same && (is_blank(name) || name == child(after, "volumeName"));
  const Json& class_name = child(before, "storageClassName");
  same = same && (class_name.is_null() || class_name == child(after, "storageClassName"));
  const Json& request = at_path(before, {"resources", "requests", "storage"});
  same = same && (bound || request == at_path(after, {"resources", "requests", "storage"}));
  if (!same) {
    add_forbidden(errors, "spec",
                  "spec is immutable after creation except resources.requests and "
                  "volumeAttributesClassName for bound claims");
  }
  validate_request_update(current, next, errors);
}

void validate_class(const Json& storage_class, FieldErrors& errors) {
  const std::string provisioner = text_at(storage_class, {"provisioner"});
  if (provisioner.empty()) {
    add_required(errors, "provisioner");
  } else if (const auto why = qualified_name_problem(to_lower(provisioner)); !why.empty()) {
    add_invalid(errors, "provisioner", provisioner, why);
  }
  const std::string policy = text_at(storage_class, {"reclaimPolicy"});
  if (policy != "Retain" && policy != "Delete") {
    add_unsupported(errors, "reclaimPolicy", policy, {"Delete", "Retain"});
  }
  const std::string mode = text_at(storage_class, {"volumeBindingMode"});
  if (mode != "Immediate" && mode != "WaitForFirstConsumer") {
    add_unsupported(errors, "volumeBindingMode", mode, {"Immediate", "WaitForFirstConsumer"});
  }
}

void validate_class_update(const Json& current, const Json& next, FieldErrors& errors) {
  if (child(current, "parameters") != child(next, "parameters")) {
    add_forbidden(errors, "parameters", "updates to parameters are forbidden.");
  }
  for (const char* field : {"provisioner", "reclaimPolicy", "volumeBindingMode"}) {
    if (child(current, field) == child(next, field)) continue;
    if (std::string_view(field) == "provisioner") {
      add_forbidden(errors, field, "updates to provisioner are forbidden.");
    } else {
      add_invalid(errors, field, text_at(next, {field}), "field is immutable");
    }
  }
}

}  // namespace lpp::devcluster
