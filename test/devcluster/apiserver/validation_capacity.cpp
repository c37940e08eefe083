// SPDX-License-Identifier: Apache-2.0
// CSIDriver and CSIStorageCapacity: what the scheduler goes by.

#include <array>

#include "devcluster/apiserver/names.h"
#include "devcluster/apiserver/validation_parts.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

void validate_size(const Json& capacity, const char* field, FieldErrors& errors) {
  const Json& size = child(capacity, field);
  if (size.is_null()) return;
  const std::string text = size.is_string() ? size.get<std::string>() : dump(size);
  if (!looks_like_quantity(size) || text.starts_with('-')) {
    add_invalid(errors, field, text, "must be greater than or equal to 0");
  }
}

}  // namespace

void validate_driver(const Json& driver, FieldErrors& errors) {
  const Json& spec = child(driver, "spec");
  const std::string policy = text_at(spec, {"fsGroupPolicy"});
  if (policy != "ReadWriteOnceWithFSType" && policy != "File" && policy != "None") {
    add_unsupported(errors, "spec.fsGroupPolicy", policy,
                    {"ReadWriteOnceWithFSType", "File", "None"});
  }
  for (const auto& mode : child(spec, "volumeLifecycleModes")) {
    if (mode == "Persistent" || mode == "Ephemeral") continue;
    add_unsupported(errors, "spec.volumeLifecycleModes", dump(mode), {"Persistent", "Ephemeral"});
  }
}

void validate_driver_update(const Json& current, const Json& next, FieldErrors& errors) {
  for (const char* field : {"attachRequired", "volumeLifecycleModes"}) {
    const Json& value = child(child(next, "spec"), field);
    if (child(child(current, "spec"), field) == value) continue;
    add_invalid(errors, std::string("spec.") + field, dump(value), "field is immutable");
  }
}

void validate_capacity(const Json& capacity, FieldErrors& errors) {
  const std::string storage_class = text_at(capacity, {"storageClassName"});
  if (const auto why = dns_subdomain_problem(storage_class); !why.empty()) {
    add_invalid(errors, "storageClassName", storage_class, why);
  }
  for (const char* field : {"capacity", "maximumVolumeSize"}) {
    validate_size(capacity, field, errors);
  }
}

void validate_capacity_update(const Json& current, const Json& next, FieldErrors& errors) {
  for (const char* field : {"nodeTopology", "storageClassName"}) {
    if (child(current, field) == child(next, field)) continue;
    add_invalid(errors, field, dump(child(next, field)), "field is immutable");
  }
}

}  // namespace lpp::devcluster
