// SPDX-License-Identifier: Apache-2.0
#include "operation/record.h"

#include <nlohmann/json.hpp>

#include "base/json_members.h"
#include "base/strings.h"

namespace lpp::operation {

namespace {

using nlohmann::json;

/// Longer than any record we write; bounds what a hand-made annotation can cost.
constexpr std::size_t kMaxRecord = 64UL * 1024;

bool is_clean_absolute(std::string_view path) {
  if (path.size() < 2 || path.front() != '/' || path.find('\0') != std::string_view::npos) {
    return false;
  }
  for (const auto part : split(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

constexpr std::string_view kTakeBack = "takeBack";
constexpr std::string_view kRemove = "remove";
constexpr std::string_view kLocal = "local";
constexpr std::string_view kHostPath = "hostPath";

json encode_shape(const Shape& shape) {
  json record;
  record["volumeType"] = shape.source == k8s::VolumeSource::kLocal ? kLocal : kHostPath;
  if (shape.has_affinity) {
    record["affinityKey"] = shape.affinity_key;
    record["affinityValue"] = shape.affinity_value;
  }
  if (!shape.mount_options.empty()) record["mountOptions"] = shape.mount_options;
  record["reclaimPolicy"] = shape.reclaim_policy;
  if (!shape.provisioner.empty()) record["provisioner"] = shape.provisioner;
  return record;
}

Result<Shape> decode_shape(const json& record) {
  if (!record.is_object()) return invalid("shape must be a JSON object");
  Shape shape;
  JsonMembers reader(record);
  std::string type;
  reader.text("volumeType", type, true);
  if (type == kLocal) {
    shape.source = k8s::VolumeSource::kLocal;
  } else if (type != kHostPath) {
    reader.complain("volumeType", "must be local or hostPath");
  }
  shape.has_affinity = record.contains("affinityKey");
  reader.text("affinityKey", shape.affinity_key, shape.has_affinity);
  reader.text("affinityValue", shape.affinity_value);  // a label's value may be empty
  reader.texts("mountOptions", shape.mount_options);
  reader.text("reclaimPolicy", shape.reclaim_policy, true);
  reader.text("provisioner", shape.provisioner);
  if (!reader.problem().empty()) return invalid("shape: " + reader.problem());
  return shape;
}

json encode_limits(const Limits& limits) {
  json record;
  record["hard"] = limits.hard;
  if (limits.inodes > 0) record["inodes"] = limits.inodes;
  if (!limits.reserve.empty()) record["reserve"] = limits.reserve;
  record["overcommit"] = limits.overcommit;
  return record;
}

Result<Limits> decode_limits(const json& record) {
  if (!record.is_object()) return invalid("limits must be a JSON object");
  Limits limits;
  JsonMembers reader(record);
  reader.flag("hard", limits.hard);
  reader.number<std::int64_t>("inodes", limits.inodes, 0);
  reader.text("reserve", limits.reserve);
  reader.flag("overcommit", limits.overcommit);
  if (!reader.problem().empty()) return invalid("limits: " + reader.problem());
  return limits;
}

/// Of a record whose action is to delete. Older versions did not write it down: only for a claim
/// there was a volume to come, and then its name holds the owner's UID.
Kind kind_of_removal(JsonMembers& reader, const json& record, const Operation& operation) {
  bool take_back = operation.volume_name == "pvc-" + operation.owner_uid;
  if (record.contains("kind")) {
    std::string kind;
    reader.text("kind", kind, true);
    take_back = kind == kTakeBack;
    if (!take_back && kind != kRemove) reader.complain("kind", "must be takeBack or remove");
  }
  return take_back ? Kind::kTakeBack : Kind::kRemove;
}

}  // namespace

Result<std::string> encode_operation(const Operation& operation) {
  json record;
  record["action"] = script_action(operation.kind);
  if (operation.kind == Kind::kTakeBack) record["kind"] = kTakeBack;
  if (operation.kind == Kind::kRemove) record["kind"] = kRemove;
  record["volume"] = operation.volume_name;
  record["claimNamespace"] = operation.claim.ns;
  record["claimName"] = operation.claim.name;
  record["ownerUid"] = operation.owner_uid;
  record["storageClass"] = operation.storage_class;
  record["node"] = operation.node;
  record["basePath"] = operation.base_path;
  record["path"] = operation.path;
  record["sizeBytes"] = operation.size_bytes;
  record["volumeMode"] = operation.volume_mode;
  record["user"] = operation.user;
  record["group"] = operation.group;
  record["perm"] = operation.perm;
  record["attempt"] = operation.attempt;
  if (!operation.claim_uid.empty()) record["claimUid"] = operation.claim_uid;
  if (operation.shared) record["shared"] = true;
  if (operation.only_if_empty) record["onlyIfEmpty"] = true;
  if (operation.shape) record["shape"] = encode_shape(*operation.shape);
  if (operation.require_mount) record["requireMount"] = true;
  if (!operation.disk.empty()) record["disk"] = operation.disk;
  if (operation.limits.any()) record["limits"] = encode_limits(operation.limits);
  try {
    return record.dump();
  } catch (const json::exception&) {
    return invalid("operation on volume " + operation.volume_name + ": a value is not valid UTF-8");
  }
}

Result<Operation> decode_operation(std::string_view text) {
  if (text.size() > kMaxRecord) return invalid("operation record is too long");
  const json record = json::parse(text, nullptr, false);
  if (!record.is_object()) return invalid("operation record is not a JSON object");

  Operation operation;
  JsonMembers reader(record);
  std::string action;
  reader.text("action", action, true);
  if (action == script_action(Kind::kRemove)) {
    operation.kind = Kind::kRemove;
  } else if (action == script_action(Kind::kResize)) {
    operation.kind = Kind::kResize;
  } else if (action != script_action(Kind::kMake)) {
    reader.complain("action", "must be create, delete or resize");
  }
  reader.text("volume", operation.volume_name, true);
  reader.text("claimNamespace", operation.claim.ns);
  reader.text("claimName", operation.claim.name);
  reader.text("ownerUid", operation.owner_uid, true);
  reader.text("claimUid", operation.claim_uid);
  reader.text("storageClass", operation.storage_class);
  reader.text("node", operation.node);
  reader.flag("shared", operation.shared);
  reader.text("basePath", operation.base_path);
  reader.text("path", operation.path, true);
  reader.number<std::int64_t>("sizeBytes", operation.size_bytes, 0);
  reader.text("volumeMode", operation.volume_mode);
  reader.text("user", operation.user);
  reader.text("group", operation.group);
  reader.text("perm", operation.perm);
  reader.number<int>("attempt", operation.attempt, 1);
  reader.flag("onlyIfEmpty", operation.only_if_empty);
  reader.flag("requireMount", operation.require_mount);
  reader.text("disk", operation.disk);
  if (operation.kind == Kind::kRemove) {
    operation.kind = kind_of_removal(reader, record, operation);
  }
  if (const auto shape = record.find("shape"); shape != record.end()) {
    LPP_ASSIGN_OR_RETURN(operation.shape, decode_shape(*shape), "operation record");
  }
  if (const auto limits = record.find("limits"); limits != record.end()) {
    LPP_ASSIGN_OR_RETURN(operation.limits, decode_limits(*limits), "operation record");
  }
  if (!is_clean_absolute(operation.path)) {
    reader.complain("path", "must be absolute and lexically clean");
  }
  if (!reader.problem().empty()) return invalid("operation record: " + reader.problem());
  return operation;
}

}  // namespace lpp::operation
