// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "base/strings.h"
#include "devcluster/apiserver/claim_sizes.h"
#include "devcluster/apiserver/defaults.h"
#include "devcluster/apiserver/patch.h"
#include "devcluster/apiserver/registry_impl.h"
#include "devcluster/apiserver/validation.h"

namespace lpp::devcluster {
namespace {

constexpr std::string_view kDefaultClass = "storageclass.kubernetes.io/is-default-class";
constexpr std::size_t kMaxGeneratedBase = 58;

Reply stored(int code, ObjectPtr object) { return Reply{code, std::move(object)}; }

Reply not_stored(int code, Json object) {
  return Reply{code, std::make_shared<const Json>(std::move(object))};
}

/// 400 for what a typed decoder refuses: the wrong kind, or members of the wrong type.
std::optional<Reply> decode_problem(const ResourceInfo& info, const Json& object) {
  if (const auto why = shape_problem(object); !why.empty()) {
    return bad_request(info.kind + " in version \"" + info.version + "\" cannot be handled as a " +
                       info.kind + ": " + why);
  }
  const std::string kind = text_at(object, {"kind"});
  const std::string version = text_at(object, {"apiVersion"});
  if ((!kind.empty() && kind != info.kind) || (!version.empty() && version != info.api_version())) {
    return bad_request("the object provided is unrecognized (must be of type " + info.kind +
                       "): it is " + version + " " + kind);
  }
  return std::nullopt;
}

/// The fields that every object has first, and that only the server sets.
void clean_metadata(const ResourceInfo& info, Json& object) {
  object["apiVersion"] = info.api_version();
  object["kind"] = info.kind;
  Json& metadata = object_in(object, "metadata");
  metadata.erase("managedFields");
  metadata.erase("selfLink");
  for (const char* key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (metadata.contains(key) && is_blank(metadata[key])) metadata.erase(key);
  }
}

std::optional<Reply> namespace_problem(const ResourceInfo& info, std::string_view ns,
                                       Json& object) {
  Json& metadata = object_in(object, "metadata");
  if (!info.namespaced) {
    metadata.erase("namespace");
    return std::nullopt;
  }
  const std::string inside = text_at(metadata, {"namespace"});
  if (!inside.empty() && inside != ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  metadata["namespace"] = ns;
  return std::nullopt;
}

/// Fields that stay whatever an update says.
void keep_system_fields(const Json& current, Json& next) {
  const Json& before = child(current, "metadata");
  Json& metadata = object_in(next, "metadata");
  for (const char* key :
       {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
        "generateName", "generation", "name", "namespace", "resourceVersion"}) {
    if (before.contains(key)) {
      metadata[key] = before[key];
    } else {
      metadata.erase(key);
    }
  }
}

bool may_be_removed(const Json& object) {
  return !text_at(object, {"metadata", "deletionTimestamp"}).empty() &&
         is_blank(at_path(object, {"metadata", "finalizers"})) &&
         number_at(object, {"metadata", "deletionGracePeriodSeconds"}, 0) == 0;
}

}  // namespace

Registry::Impl::Impl(Options options)
    : options_(std::move(options)),
      store_(options_.history_size, options_.first_version),
      random_(std::random_device{}()) {
  if (!options_.standard_namespaces) return;
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    static_cast<void>(create("namespaces", "", {{"metadata", {{"name", name}}}}, {}));
  }
}

std::string Registry::Impl::now_text() const {
  return format_rfc3339(options_.now ? options_.now() : std::chrono::system_clock::now());
}

std::string Registry::Impl::random_suffix_locked() {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kAlphabet[random_() % kAlphabet.size()];
  return suffix;
}

Reply Registry::Impl::create(std::string_view resource, std::string_view ns, const Json& object,
                             const WriteOptions& options) {
  const auto* info = find_resource(resource);
  if (info == nullptr) return unknown_resource();
  if (auto bad = decode_problem(*info, object)) return *bad;
  Json next = object;
  if (auto bad = namespace_problem(*info, ns, next)) return *bad;
  if (!text_at(next, {"metadata", "resourceVersion"}).empty()) {
    return make_status(500, "", "resourceVersion should not be set on objects to be created");
  }
  const MutexLock lock(mutex_);
  return create_locked(*info, std::move(next), options);
}

Reply Registry::Impl::create_locked(const ResourceInfo& info, Json object,
                                    const WriteOptions& options) {
  const auto index = resource_index(info);
  const std::string ns = namespace_of(object);
  clean_metadata(info, object);
  Json& metadata = object["metadata"];
  const std::string base = text_at(metadata, {"generateName"}).substr(0, kMaxGeneratedBase);
  if (name_of(object).empty() && !base.empty()) {
    for (int tries = 0; tries < 8; ++tries) {
      metadata["name"] = base + random_suffix_locked();
      if (store_.find(index, Store::key(ns, name_of(object))) == nullptr) break;
    }
  }
  for (const char* key : {"deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    metadata.erase(key);
  }
  if (auto refused = admit_locked(info, object)) return *refused;
  apply_defaults(info, object);
  prepare_for_create(info, object);
  const std::string name = name_of(object);
  if (const auto errors = validate(info, object); !errors.empty()) {
    return invalid_object(info, name, errors);
  }
  const std::string key = Store::key(ns, name);
  if (store_.find(index, key) != nullptr) return already_exists(info, name);
  metadata["uid"] = random_uuid();
  metadata["creationTimestamp"] = now_text();
  if (info.has_generation) metadata["generation"] = 1;
  if (options.dry_run) return not_stored(201, std::move(object));
  return stored(201, put_locked(info, key, std::move(object)));
}

std::optional<Reply> Registry::Impl::admit_locked(const ResourceInfo& info, Json& object) {
  if (!info.namespaced) return std::nullopt;
  const std::string ns = namespace_of(object);
  const auto* namespaces = find_resource("namespaces");
  const ObjectPtr home = store_.find(resource_index(*namespaces), ns);
  if (home == nullptr) return not_found(*namespaces, ns);
  if (!text_at(*home, {"metadata", "deletionTimestamp"}).empty()) {
    return namespace_terminating(info, name_of(object), ns);
  }
  if (info.plural == "pods") {
    if (const auto why = pod_security_problem(*home, object); !why.empty()) {
      return forbidden(info, name_of(object), why);
    }
  }
  if (info.plural == "persistentvolumeclaims") set_default_class_locked(object);
  return std::nullopt;
}

void Registry::Impl::set_default_class_locked(Json& claim) {
  if (!at_path(claim, {"spec", "storageClassName"}).is_null()) return;
  if (!at_path(claim, {"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"})
           .is_null()) {
    return;
  }
  std::string chosen;
  std::string created;
  for (const auto& [name, object] :
       store_.objects(resource_index(*find_resource("storageclasses")))) {
    if (text_at(*object, {"metadata", "annotations", kDefaultClass}) != "true") continue;
    const std::string time = text_at(*object, {"metadata", "creationTimestamp"});
    if (!chosen.empty() && time <= created) continue;
    chosen = name;
    created = time;
  }
  if (!chosen.empty()) object_in(claim, "spec")["storageClassName"] = chosen;
}

Json Registry::Impl::class_of_locked(const Json& claim) const {
  const auto* beta = "volume.beta.kubernetes.io/storage-class";
  std::string name = text_at(claim, {"metadata", "annotations", beta});
  if (name.empty()) name = text_at(claim, {"spec", "storageClassName"});
  const auto found = store_.find(resource_index(*find_resource("storageclasses")), name);
  return found == nullptr ? Json() : *found;
}

Reply Registry::Impl::update(const ObjectRef& ref, const Json& object,
                             const WriteOptions& options) {
  const auto* info = find_resource(ref.resource);
  if (info == nullptr) return unknown_resource();
  if (auto bad = decode_problem(*info, object)) return *bad;
  Json next = object;
  if (auto bad = namespace_problem(*info, ref.ns, next)) return *bad;
  const MutexLock lock(mutex_);
  const auto current =
      store_.find(resource_index(*info), Store::key(info->namespaced ? ref.ns : "", ref.name));
  if (current == nullptr) return not_found(*info, ref.name);
  return update_locked(*info, current, std::move(next), options, false);
}

Reply Registry::Impl::patch(const ObjectRef& ref, PatchType type, const Json& patch,
                            const WriteOptions& options) {
  const auto* info = find_resource(ref.resource);
  if (info == nullptr) return unknown_resource();
  const MutexLock lock(mutex_);
  const auto current =
      store_.find(resource_index(*info), Store::key(info->namespaced ? ref.ns : "", ref.name));
  if (current == nullptr && (type != PatchType::kApply || !options.subresource.empty())) {
    return not_found(*info, ref.name);
  }
  Reply patched = apply_patch(current == nullptr ? Json::object() : *current, type, patch);
  if (!patched.ok()) return patched;
  if (auto bad = decode_problem(*info, *patched.body)) return *bad;
  Json next = *patched.body;
  if (auto bad = namespace_problem(*info, ref.ns, next)) return *bad;
  if (current == nullptr) {
    next["metadata"]["name"] = ref.name;
    return create_locked(*info, std::move(next), options);
  }
  return update_locked(*info, current, std::move(next), options, true);
}

Reply Registry::Impl::update_locked(const ResourceInfo& info, const ObjectPtr& current, Json next,
                                    const WriteOptions& options, bool is_patch) {
  const Json& before = *current;
  const bool is_claim = info.plural == "persistentvolumeclaims";
  const std::string name = name_of(before);
  const std::string new_name = name_of(next);
  if (!new_name.empty() && new_name != name) {
    return bad_request("the name of the object (" + new_name +
                       ") does not match the name on the URL (" + name + ")");
  }
  const std::string uid = text_at(next, {"metadata", "uid"});
  const bool other_uid = !uid.empty() && uid != text_at(before, {"metadata", "uid"});
  if (other_uid && !is_patch) {
    return conflict(info, name,
                    "Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + text_at(before, {"metadata", "uid"}));
  }
  const std::string version = text_at(next, {"metadata", "resourceVersion"});
  const bool volume_status =
      options.subresource == "status" && info.plural.starts_with("persistentvolume");
  if (version.empty() || version == "0") {
    if (!is_patch && (info.needs_version || volume_status)) {
      return invalid_object(info, name,
                            {{.field = "metadata.resourceVersion",
                              .detail = "must be specified for an update",
                              .value = "0x0"}});
    }
  } else if (version != text_at(before, {"metadata", "resourceVersion"})) {
    return modified_conflict(info, name);
  }
  if (other_uid) {  // in a patch it is a change like any other, and a forbidden one
    return invalid_object(
        info, name,
        {{.field = "metadata.uid", .detail = "field is immutable", .value = "\"" + uid + "\""}});
  }

  clean_metadata(info, next);
  keep_system_fields(before, next);
  if (options.subresource == "status") {
    Json merged = before;
    merged["metadata"] = std::move(next["metadata"]);
    merged["status"] = child(next, "status").is_null() ? Json::object() : next["status"];
    next = std::move(merged);
    if (is_claim) tidy_claim_status(next["status"]);
    if (is_claim && !options_.recovers_expansion) drop_expansion_marks(before, next["status"]);
  } else {
    if (info.has_status) {
      next.erase("status");
      if (before.contains("status")) next["status"] = before["status"];
    }
    apply_defaults(info, next);
  }
  FieldErrors errors = validate(info, next);
  if (errors.empty()) errors = validate_update(info, before, next);
  if (errors.empty() && is_claim && !options_.recovers_expansion) {
    validate_request_never_less(before, next, errors);
  }
  if (!errors.empty()) return invalid_object(info, name, errors);
  if (is_claim && options.subresource.empty()) {
    if (const auto why = expansion_problem(before, next, class_of_locked(next)); !why.empty()) {
      return forbidden(info, name, why);
    }
  }
  if (info.has_generation && child(before, "spec") != child(next, "spec")) {
    next["metadata"]["generation"] = number_at(before, {"metadata", "generation"}, 0) + 1;
  }
  if (options.dry_run) return not_stored(200, std::move(next));
  const std::string key = Store::key(namespace_of(before), name);
  if (may_be_removed(next)) {
    next["metadata"].erase("finalizers");
    put_locked(info, key, std::move(next));
    return stored(200, erase_locked(info, key));
  }
  if (next == before) return stored(200, current);
  return stored(200, put_locked(info, key, std::move(next)));
}

Reply Registry::Impl::bind_pod(std::string_view ns, std::string_view name, std::string_view node) {
  const auto* info = find_resource("pods");
  const std::string key = Store::key(ns, name);
  const MutexLock lock(mutex_);
  const auto current = store_.find(resource_index(*info), key);
  if (current == nullptr) return not_found(*info, name);
  if (!text_at(*current, {"metadata", "deletionTimestamp"}).empty()) {
    return conflict(*info, name,
                    "pod " + std::string(name) + " is being deleted, cannot be assigned to a host");
  }
  const std::string bound = text_at(*current, {"spec", "nodeName"});
  if (!bound.empty()) {
    return conflict(*info, name,
                    "pod " + std::string(name) + " is already assigned to node \"" + bound + "\"");
  }
  Json next = *current;
  next["spec"]["nodeName"] = node;
  Json& conditions = next["status"]["conditions"];
  Json kept = Json::array();
  for (const auto& condition : conditions) {
    if (text_at(condition, {"type"}) != "PodScheduled") kept.push_back(condition);
  }
  kept.push_back(
      {{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", now_text()}});
  conditions = std::move(kept);
  return stored(201, put_locked(*info, key, std::move(next)));
}

ObjectPtr Registry::Impl::put_locked(const ResourceInfo& info, const std::string& key,
                                     Json object) {
  auto stored_object = store_.put(resource_index(info), key, std::move(object));
  notify_locked(resource_index(info));
  return stored_object;
}

ObjectPtr Registry::Impl::erase_locked(const ResourceInfo& info, const std::string& key) {
  auto gone = store_.erase(resource_index(info), key);
  notify_locked(resource_index(info));
  if (info.namespaced && gone != nullptr) finish_namespace_locked(namespace_of(*gone));
  return gone;
}

}  // namespace lpp::devcluster
