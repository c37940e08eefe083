// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/rbac.h"

#include <algorithm>

#include "devcluster/json_names.h"

namespace lpp::devcluster {

namespace {

constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

bool holds(const Json& list, const std::string& text) {
  return std::any_of(list.begin(), list.end(), [&](const Json& entry) { return entry == text; });
}

bool is_subject(const Json& binding, const std::string& user) {
  const Json& subjects = child(binding, "subjects");
  return std::any_of(subjects.begin(), subjects.end(), [&](const Json& subject) {
    return text_at(subject, {"kind"}) == "ServiceAccount" &&
           user == std::string(kAccountPrefix) + text_at(subject, {"namespace"}) + ":" +
                       text_at(subject, {"name"});
  });
}

bool allows_name(const Json& rule, const std::string& name) {
  const Json& names = child(rule, "resourceNames");
  return is_blank(names) || holds(names, name);
}

std::string line(const std::string& kind, const std::string& ns, const Access& access,
                 const std::string& name) {
  return kind + " " + (ns.empty() ? "-" : ns) + " " +
         (access.group.empty() ? "core" : access.group) + " " + access.resource + " " +
         access.verb + " " + name;
}

}  // namespace

std::optional<std::string> Rbac::grant_of(const char* bindings, const char* roles,
                                          const std::string& ns, const std::string& user,
                                          const Access& access) const {
  for (const auto& binding : registry_.all(bindings, ns)) {
    if (!is_subject(*binding, user)) continue;
    const std::string kind = text_at(*binding, {"roleRef", "kind"});
    const bool cluster_role = kind == "ClusterRole";
    const auto role = registry_.find(cluster_role ? "clusterroles" : roles, cluster_role ? "" : ns,
                                     text_at(*binding, {"roleRef", "name"}));
    if (role == nullptr) continue;
    for (const Json& rule : child(*role, "rules")) {
      if (holds(child(rule, "apiGroups"), access.group) &&
          holds(child(rule, "resources"), access.resource) &&
          holds(child(rule, "verbs"), access.verb) && allows_name(rule, access.name)) {
        const bool named = !is_blank(child(rule, "resourceNames"));
        return line(kind, ns, access, named ? access.name : "*");
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> Rbac::grant(const std::string& user, const Access& access) const {
  auto found = grant_of("clusterrolebindings", "clusterroles", "", user, access);
  if (!found && !access.ns.empty()) {
    found = grant_of("rolebindings", "roles", access.ns, user, access);
  }
  return found;
}

bool Rbac::allows(const std::string& user, const Access& access) const {
  return !user.starts_with(kAccountPrefix) || grant(user, access).has_value();
}

bool Rbac::check(const std::string& user, const Access& access) {
  if (!user.starts_with(kAccountPrefix)) return true;
  const auto found = grant(user, access);
  const MutexLock lock(mutex_);
  used_.insert(found ? *found
                     : line("denied", access.ns, access, access.name.empty() ? "*" : access.name));
  return found.has_value();
}

std::set<std::string> Rbac::used() const {
  const MutexLock lock(mutex_);
  return used_;
}

}  // namespace lpp::devcluster
