// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/claim_sizes.h"

#include <fmt/format.h>

#include "devcluster/apiserver/quantities.h"
#include "devcluster/apiserver/validation_parts.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

long double request_of(const Json& claim) {
  return quantity_value(text_at(claim, {"spec", "resources", "requests", "storage"}));
}

void validate_resource_name(const std::string& name, const std::string& field,
                            FieldErrors& errors) {
  if (name == "storage" || name.find('/') != std::string::npos) return;
  add_unsupported(errors, field + "[" + name + "]", name, {"storage"});
}

}  // namespace

std::string expansion_problem(const Json& current, const Json& next, const Json& storage_class) {
  if (request_of(next) <= request_of(current)) return {};
  if (text_at(current, {"status", "phase"}) != "Bound") {
    return "Only bound persistent volume claims can be expanded";
  }
  if (flag_at(storage_class, {"allowVolumeExpansion"})) return {};
  return "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
         "pvc must support resize";
}

void validate_request_update(const Json& current, const Json& next, FieldErrors& errors) {
  if (request_of(next) >= request_of(current)) return;
  if (request_of(next) > quantity_value(text_at(current, {"status", "capacity", "storage"}))) {
    return;
  }
  add_forbidden(errors, "spec.resources.requests.storage",
                "field can not be less than status.capacity");
}

void validate_request_never_less(const Json& current, const Json& next, FieldErrors& errors) {
  if (request_of(next) >= request_of(current)) return;
  add_forbidden(errors, "spec.resources.requests.storage",
                "field can not be less than previous value");
}

void drop_expansion_marks(const Json& current, Json& status) {
  for (const char* member : {"allocatedResources", "allocatedResourceStatuses"}) {
    if (!child(child(current, "status"), member).is_null()) continue;
    status.erase(member);
  }
}

void validate_claim_status(const Json& claim, FieldErrors& errors) {
  const Json& status = child(claim, "status");
  for (const auto& [name, quantity] : child(status, "allocatedResources").items()) {
    validate_resource_name(name, "status.allocatedResources", errors);
  }
  for (const auto& [name, value] : child(status, "allocatedResourceStatuses").items()) {
    const std::string field = "status.allocatedResourceStatuses";
    validate_resource_name(name, field, errors);
    const std::string text = value.is_string() ? value.get<std::string>() : dump(value);
    if (text == "ControllerResizeInProgress" || text == "ControllerResizeInfeasible" ||
        text == "NodeResizePending" || text == "NodeResizeInProgress" ||
        text == "NodeResizeInfeasible") {
      continue;
    }
    add_unsupported(errors, fmt::format("{}[{}]", field, name), text,
                    {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                     "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"});
  }
}

void tidy_claim_status(Json& status) {
  for (const char* list : {"capacity", "allocatedResources"}) {
    if (status.contains(list)) canonicalize_quantities(status[list]);
  }
  for (const char* member :
       {"capacity", "allocatedResources", "allocatedResourceStatuses", "conditions"}) {
    if (status.contains(member) && is_blank(status[member])) status.erase(member);
  }
}

}  // namespace lpp::devcluster
