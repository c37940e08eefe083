// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/runtime/event_emitter.h"

namespace lpp::devcluster {

/// Chooses nodes for pods that have none: among the Ready, schedulable nodes that the pod's
/// selectors, tolerations and volumes allow, the one with the fewest pods. A pod whose claims wait
/// for their first consumer is bound to its node when these claims are bound; until then the
/// choice stands on the claims as the selected-node annotation. If a provisioner takes that away,
/// a node is chosen again. One step per call; used by one thread at a time.
class Scheduler {
 public:
  Scheduler(Registry& registry, Clock& clock);

  /// Returns after what time to call again although nothing has changed, if at all.
  std::optional<Duration> sync_pod(const std::string& ns, const std::string& name);

 private:
  struct Claims {
    std::vector<ObjectPtr> volumes{};  // of bound claims
    std::vector<ObjectPtr> waiting{};  // unbound, for their first consumer
    std::string selected_node{};       // that one of them has already
    bool all_selected = true;          // all of them have one
  };
  /// The error is the scheduler's text for a pod that cannot be placed now.
  Result<Claims> look_at_claims(const nlohmann::json& pod) const;
  bool has_room(const Claims& claims, const nlohmann::json& node) const;
  /// `preferred` wins if it is possible.
  Result<std::string> choose_node(const nlohmann::json& pod, const Claims& claims,
                                  const std::string& preferred) const;
  std::optional<Duration> select_node(const nlohmann::json& pod, const Claims& claims,
                                      const std::string& node);
  std::optional<Duration> set_unschedulable(const nlohmann::json& pod, const std::string& message);

  Registry& registry_;
  Clock& clock_;
  EventEmitter events_;
  struct Choice {
    TimePoint at{};
    std::string node{};
  };
  std::map<std::string, Choice> choices_;  // by pod UID, until it is bound
};

}  // namespace lpp::devcluster
