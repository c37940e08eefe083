// SPDX-License-Identifier: Apache-2.0
#include "config/claim_data.h"

#include <algorithm>
#include <array>

namespace lpp::config {

namespace {

using gotemplate::Kind;
using gotemplate::Value;

/// Fields of ObjectMeta that we do not keep of a claim.
constexpr std::array<std::string_view, 2> kNotKept = {"DeletionGracePeriodSeconds",
                                                      "ManagedFields"};

/// An API time such as "2026-05-28T20:26:40Z" as Go prints it, in UTC.
std::string time_text(std::string_view rfc3339) {
  constexpr std::size_t kDate = 10;
  constexpr std::size_t kWhole = 19;  // up to the seconds
  if (rfc3339.size() < kWhole) return "0001-01-01 00:00:00 +0000 UTC";
  return std::string(rfc3339.substr(0, kDate)) + " " +
         std::string(rfc3339.substr(kDate + 1, kWhole - kDate - 1)) + " +0000 UTC";
}

Value text(std::string_view value) { return Value::of_string(std::string(value)); }

Value uid(const std::string& value) {
  return {.kind = Kind::kNamedString, .type = "types.UID", .text = value};
}

Value time(std::string_view value) {
  return {.kind = Kind::kTime, .type = "v1.Time", .text = time_text(value)};
}

Error not_available(std::string_view name) {
  return invalid("field " + std::string(name) + " is not available in patterns");
}

}  // namespace

Result<Value> OwnerFields::field(std::string_view name) const {
  if (name == "APIVersion") return text(owner_.api_version);
  if (name == "Kind") return text(owner_.kind);
  if (name == "Name") return text(owner_.name);
  if (name == "UID") return uid(owner_.uid);
  if (name == "Controller" || name == "BlockOwnerDeletion") {
    return not_available(name);
  }
  return gotemplate::no_field(name, type());
}

MetaFields::MetaFields(const k8s::ObjectMeta& claim) : claim_(claim) {
  for (const auto& owner : claim.owner_references) {
    owners_.push_back(&owner_fields_.emplace_back(owner));
  }
}

Result<Value> MetaFields::field(std::string_view name) const {
  if (name == "Name") return text(claim_.name);
  if (name == "GenerateName") return text(claim_.generate_name);
  if (name == "Namespace") return text(claim_.ns);
  if (name == "SelfLink") return text("");
  if (name == "UID") return uid(claim_.uid);
  if (name == "ResourceVersion") return text(claim_.resource_version);
  if (name == "Generation") return Value{.kind = Kind::kInt64, .integer = claim_.generation};
  if (name == "CreationTimestamp") return time(claim_.creation_timestamp);
  if (name == "DeletionTimestamp") {
    return claim_.deletion_timestamp.empty() ? Value{.kind = Kind::kNoTime, .type = "*v1.Time"}
                                             : time(claim_.deletion_timestamp);
  }
  if (name == "Labels") return Value{.kind = Kind::kMap, .map = &claim_.labels};
  if (name == "Annotations") return Value{.kind = Kind::kMap, .map = &claim_.annotations};
  if (name == "Finalizers") return Value{.kind = Kind::kList, .list = claim_.finalizers};
  if (name == "OwnerReferences") {
    return Value{.kind = Kind::kObjects, .type = "[]v1.OwnerReference", .objects = owners_};
  }
  if (std::find(kNotKept.begin(), kNotKept.end(), name) != kNotKept.end()) {
    return not_available(name);
  }
  return gotemplate::no_field(name, type());
}

Result<Value> ClaimData::field(std::string_view name) const {
  if (name == "PVName") return text(pv_name_);
  if (name == "PVC") return Value::of_object(meta_);
  return gotemplate::no_field(name, type());
}

}  // namespace lpp::config
