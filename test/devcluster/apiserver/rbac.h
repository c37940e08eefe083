// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/sync.h"
#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// What a request wants to do.
struct Access {
  std::string verb{};
  std::string group{};
  std::string resource{};  ///< with its subresource: "pods/log"
  std::string ns{};
  std::string name{};  ///< of a list or watch: the one name it is limited to
};

/// Kubernetes' role-based access control, for ServiceAccounts: they may do what the roles in the
/// registry grant them and nothing else; everybody else may do everything. Remembers which grants
/// were needed, so that tests can find those that never are. Rules with "*" and nonResourceURLs,
/// and bindings of groups, are not understood: they grant nothing. Thread-safe.
class Rbac {
 public:
  explicit Rbac(const Registry& registry) : registry_(registry) {}

  bool allows(const std::string& user, const Access& access) const;
  /// The same, and remembered.
  bool check(const std::string& user, const Access& access);

  /// "Role NAMESPACE GROUP RESOURCE VERB NAME" of each grant that was used, "ClusterRole - ..." for
  /// one of the whole cluster; the core group is "core", NAME is "*" where the rule names none.
  /// What was refused begins with "denied NAMESPACE".
  std::set<std::string> used() const;

 private:
  std::optional<std::string> grant(const std::string& user, const Access& access) const;
  std::optional<std::string> grant_of(const char* bindings, const char* roles,
                                      const std::string& ns, const std::string& user,
                                      const Access& access) const;

  const Registry& registry_;
  mutable Mutex mutex_;
  std::set<std::string> used_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
