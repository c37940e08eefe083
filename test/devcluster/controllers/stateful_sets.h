// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/runtime/event_emitter.h"

namespace lpp::devcluster {

/// Small StatefulSet controller: claims from volumeClaimTemplates, pods by ordinal, OrderedReady or
/// Parallel, scaling up and down, replacement of deleted or failed pods. No rolling updates.
/// One step per call; used by one thread at a time.
class StatefulSets {
 public:
  StatefulSets(Registry& registry, Clock& clock);

  void sync(const std::string& ns, const std::string& name);

 private:
  void create_claims(const nlohmann::json& set, const std::string& ordinal);
  void create_pod(const nlohmann::json& set, const std::string& ordinal);
  void write_status(const nlohmann::json& set, int replicas, int ready);

  Registry& registry_;
  EventEmitter events_;
};

}  // namespace lpp::devcluster
