// SPDX-License-Identifier: Apache-2.0
#include "devcluster/controllers/garbage_collector.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "devcluster/apiserver/resources.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;

void GarbageCollector::sync_pod(const std::string& ns, const std::string& name) {
  const ObjectPtr pod = registry_.find("pods", ns, name);
  if (pod == nullptr) return;
  const std::string node = text_at(*pod, {"spec", "nodeName"});
  if (node.empty() || registry_.find("nodes", "", node) != nullptr) return;
  const Reply reply = registry_.remove({"pods", ns, name}, {.grace_period = std::chrono::seconds(0),
                                                            .uid_precondition = uid_of(*pod)});
  if (!reply.ok()) log::debug("pod {}/{} not collected: {}", ns, name, reply.message());
}

bool GarbageCollector::exists(const std::string& ns, const json& owner) const {
  const ResourceInfo* info = find_kind(text_at(owner, {"kind"}));
  if (info == nullptr) return true;  // nothing we could know about
  const ObjectPtr object =
      registry_.find(info->plural, info->namespaced ? ns : "", text_at(owner, {"name"}));
  return object != nullptr && uid_of(*object) == text_at(owner, {"uid"});
}

void GarbageCollector::collect_dependents() {
  for (const ResourceInfo& info : resource_table()) {
    if (info.plural == "events") continue;
    for (const ObjectPtr& object : registry_.all(info.plural)) {
      const json& owners = array_at(*object, {"metadata", "ownerReferences"});
      if (owners.empty() || is_deleting(*object)) continue;
      const std::string ns(namespace_of(*object));
      if (std::any_of(owners.begin(), owners.end(),
                      [&](const json& owner) { return exists(ns, owner); })) {
        continue;
      }
      const Reply reply = registry_.remove({info.plural, ns, name_of(*object)},
                                           {.uid_precondition = uid_of(*object)});
      if (!reply.ok()) log::debug("{} not collected: {}", key_of(*object), reply.message());
    }
  }
}

}  // namespace lpp::devcluster
