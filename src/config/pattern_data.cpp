// SPDX-License-Identifier: Apache-2.0
#include "config/pattern_data.h"

#include <algorithm>
#include <array>

#include "config/pattern_quote.h"

namespace lpp::config::pattern {

namespace {

/// Fields of ObjectMeta that we do not keep of a claim.
constexpr std::array<std::string_view, 2> kNotKept = {"DeletionGracePeriodSeconds",
                                                      "ManagedFields"};

Value text(std::string_view value) { return Value::of_string(std::string(value)); }

Value time(std::string_view value) { return {.kind = Kind::kTime, .text = time_text(value)}; }

Error no_field(std::string_view name, Kind kind) {
  return invalid("can't evaluate field " + std::string(name) + " in type " +
                 std::string(type_name(kind)));
}

Result<Value> meta_field(std::string_view name, const k8s::ObjectMeta& claim) {
  if (name == "Name") return text(claim.name);
  if (name == "GenerateName") return text(claim.generate_name);
  if (name == "Namespace") return text(claim.ns);
  if (name == "SelfLink") return text("");
  if (name == "UID") return Value{.kind = Kind::kUid, .text = claim.uid};
  if (name == "ResourceVersion") return text(claim.resource_version);
  if (name == "Generation") return Value{.kind = Kind::kInt64, .integer = claim.generation};
  if (name == "CreationTimestamp") return time(claim.creation_timestamp);
  if (name == "DeletionTimestamp") {
    return claim.deletion_timestamp.empty() ? Value{.kind = Kind::kNoTime}
                                            : time(claim.deletion_timestamp);
  }
  if (name == "Labels") return Value{.kind = Kind::kMap, .map = &claim.labels};
  if (name == "Annotations") return Value{.kind = Kind::kMap, .map = &claim.annotations};
  if (name == "Finalizers") return Value{.kind = Kind::kList, .list = claim.finalizers};
  if (name == "OwnerReferences") return Value::of_owners(claim.owner_references);
  if (std::find(kNotKept.begin(), kNotKept.end(), name) != kNotKept.end()) {
    return invalid("field " + std::string(name) + " is not available in patterns");
  }
  return no_field(name, Kind::kMeta);
}

Result<Value> owner_field(std::string_view name, const k8s::OwnerReference& owner) {
  if (name == "APIVersion") return text(owner.api_version);
  if (name == "Kind") return text(owner.kind);
  if (name == "Name") return text(owner.name);
  if (name == "UID") return Value{.kind = Kind::kUid, .text = owner.uid};
  if (name == "Controller" || name == "BlockOwnerDeletion") {
    return invalid("field " + std::string(name) + " is not available in patterns");
  }
  return no_field(name, Kind::kOwner);
}

}  // namespace

Result<Value> field_of(const Value& receiver, std::string_view name, bool has_arguments,
                       std::string_view pv_name, const k8s::ObjectMeta& claim) {
  Result<Value> field = no_field(name, receiver.kind);
  switch (receiver.kind) {
    case Kind::kInvalid:
      return receiver;
    case Kind::kMap: {
      if (has_arguments) return invalid(std::string(name) + " is not a method but has arguments");
      const std::string* value = k8s::find(*receiver.map, name);
      if (value == nullptr) return Value{.text = "map has no entry for key " + quote(name)};
      return text(*value);
    }
    case Kind::kData:
      if (name == "PVName") field = text(pv_name);
      if (name == "PVC") field = Value{.kind = Kind::kMeta};
      break;
    case Kind::kMeta:
      field = meta_field(name, claim);
      break;
    case Kind::kOwner:
      field = owner_field(name, receiver.owners.front());
      break;
    case Kind::kTime:
    case Kind::kNoTime:
      return invalid(std::string(name) + " of a time is not supported in patterns");
    default:
      break;
  }
  if (field.ok() && has_arguments) {
    return invalid(std::string(name) + " has arguments but cannot be invoked as function");
  }
  return field;
}

std::string time_text(std::string_view rfc3339) {
  constexpr std::size_t kDate = 10;
  constexpr std::size_t kWhole = 19;  // up to the seconds
  if (rfc3339.size() < kWhole) return "0001-01-01 00:00:00 +0000 UTC";
  return std::string(rfc3339.substr(0, kDate)) + " " +
         std::string(rfc3339.substr(kDate + 1, kWhole - kDate - 1)) + " +0000 UTC";
}

}  // namespace lpp::config::pattern
