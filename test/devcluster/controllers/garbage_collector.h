// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// Removes what nobody else will: pods of nodes that are gone and objects whose owners are gone.
/// (Namespaces are emptied by the API server.) One step per call; one thread at a time.
class GarbageCollector {
 public:
  explicit GarbageCollector(Registry& registry) : registry_(registry) {}

  /// Removes the pod if it is bound to a node that does not exist.
  void sync_pod(const std::string& ns, const std::string& name);
  /// Removes all objects that have ownerReferences, but no owner that exists.
  void collect_dependents();

 private:
  bool exists(const std::string& ns, const nlohmann::json& owner) const;

  Registry& registry_;
};

}  // namespace lpp::devcluster
