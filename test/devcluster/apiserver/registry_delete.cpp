// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "devcluster/apiserver/registry_impl.h"

namespace lpp::devcluster {
namespace {

constexpr std::int64_t kDefaultGrace = 30;

/// Seconds that a pod gets to end; 0 for one that no node runs.
std::int64_t grace_of(const Json& pod, const DeleteOptions& options) {
  const std::string phase = text_at(pod, {"status", "phase"});
  if (text_at(pod, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") {
    return 0;
  }
  if (options.grace_period) return std::max<std::int64_t>(0, options.grace_period->count());
  return number_at(pod, {"spec", "terminationGracePeriodSeconds"}, kDefaultGrace);
}

std::optional<Reply> failed_precondition(const ResourceInfo& info, const Json& current,
                                         const DeleteOptions& options) {
  const auto check = [&](const std::string& wanted, const char* key, std::string_view word,
                         std::string_view what) -> std::optional<Reply> {
    const std::string have = text_at(current, {"metadata", key});
    if (wanted.empty() || wanted == have) return std::nullopt;
    return conflict(info, name_of(current),
                    "the " + std::string(word) + " in the precondition (" + wanted +
                        ") does not match the " + std::string(word) + " in record (" + have +
                        "). The object might have been " + std::string(what));
  };
  if (auto bad = check(options.uid_precondition, "uid", "UID", "deleted and then recreated")) {
    return bad;
  }
  return check(options.resource_version_precondition, "resourceVersion", "ResourceVersion",
               "modified");
}

/// The object as it is while it waits to be removed.
Json marked(const Json& current, const std::string& time, std::int64_t grace) {
  Json next = current;
  Json& metadata = next["metadata"];
  metadata["deletionTimestamp"] = time;
  metadata["deletionGracePeriodSeconds"] = grace;
  if (metadata.contains("generation")) {
    metadata["generation"] = number_at(metadata, {"generation"}, 0) + 1;
  }
  return next;
}

}  // namespace

Reply Registry::Impl::remove(const ObjectRef& ref, const DeleteOptions& options) {
  const auto* info = find_resource(ref.resource);
  if (info == nullptr) return unknown_resource();
  const MutexLock lock(mutex_);
  return remove_locked(*info, Store::key(info->namespaced ? ref.ns : "", ref.name), options);
}

Reply Registry::Impl::remove_locked(const ResourceInfo& info, const std::string& key,
                                    const DeleteOptions& options) {
  const auto current = store_.find(resource_index(info), key);
  if (current == nullptr) return not_found(info, key.substr(key.rfind('/') + 1));
  const std::string name = name_of(*current);
  if (auto bad = failed_precondition(info, *current, options)) return *bad;
  if (info.plural == "namespaces") {
    if (name == "default" || name == "kube-system" || name == "kube-public") {
      return forbidden(info, name, "this namespace may not be deleted");
    }
    if (options.dry_run) return Reply{200, current};
    return remove_namespace_locked(name, current, options.mark_only);
  }

  std::int64_t grace = info.plural == "pods" ? grace_of(*current, options) : 0;
  const bool held = !is_blank(at_path(*current, {"metadata", "finalizers"}));
  if (is_deleting(*current)) {
    const auto already = number_at(*current, {"metadata", "deletionGracePeriodSeconds"}, 0);
    // A second delete can only shorten the time, and only when it says so.
    if (!options.grace_period || grace >= already) {
      const bool nothing_left = already == 0 && !held;
      if (!nothing_left) return Reply{200, current};
      grace = 0;
    }
  }
  if (options.dry_run) return Reply{200, current};
  if (grace > 0 || held) {
    const auto now = options_.now ? options_.now() : std::chrono::system_clock::now();
    const std::string time = format_rfc3339(now + std::chrono::seconds(grace));
    return Reply{200, put_locked(info, key, marked(*current, time, grace))};
  }
  auto gone = erase_locked(info, key);
  if (info.returns_deleted) return Reply{200, std::move(gone)};
  return deleted_status(info, name, text_at(*gone, {"metadata", "uid"}));
}

Reply Registry::Impl::remove_namespace_locked(const std::string& name, const ObjectPtr& current,
                                              bool mark_only) {
  const auto& info = *find_resource("namespaces");
  ObjectPtr result = current;
  if (!is_deleting(*current)) {
    Json next = *current;
    next["metadata"]["deletionTimestamp"] = now_text();
    next["status"]["phase"] = "Terminating";
    result = put_locked(info, name, std::move(next));
  }
  if (mark_only) return Reply{200, result};
  const std::string prefix = name + "/";
  for (const auto& resource : resource_table()) {
    if (!resource.namespaced) continue;
    std::vector<std::string> keys;
    const auto& objects = store_.objects(resource_index(resource));
    for (auto it = objects.lower_bound(prefix);
         it != objects.end() && it->first.starts_with(prefix); ++it) {
      keys.push_back(it->first);
    }
    for (const auto& key : keys) static_cast<void>(remove_locked(resource, key, {}));
  }
  finish_namespace_locked(name);
  return Reply{200, result};
}

void Registry::Impl::finish_namespace_locked(const std::string& name) {
  const auto& info = *find_resource("namespaces");
  const auto current = store_.find(resource_index(info), name);
  if (current == nullptr || !is_deleting(*current)) return;
  if (!is_blank(at_path(*current, {"metadata", "finalizers"}))) return;
  const std::string prefix = name + "/";
  for (const auto& resource : resource_table()) {
    if (!resource.namespaced) continue;
    const auto& objects = store_.objects(resource_index(resource));
    const auto it = objects.lower_bound(prefix);
    if (it != objects.end() && it->first.starts_with(prefix)) return;
  }
  erase_locked(info, name);
}

}  // namespace lpp::devcluster
