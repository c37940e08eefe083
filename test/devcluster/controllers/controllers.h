// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/controllers/garbage_collector.h"
#include "devcluster/controllers/scheduler.h"
#include "devcluster/controllers/stateful_sets.h"
#include "devcluster/controllers/volume_binder.h"
#include "devcluster/runtime/keyed_queue.h"
#include "devcluster/runtime/subscription.h"

namespace lpp::devcluster {

/// The control loops of the cluster: binding of claims, scheduling, garbage collection and
/// StatefulSets. Three threads: one follows the registry and only notes what has to be looked at,
/// one works for claims and volumes, one for everything else. start() and stop() from one thread.
class Controllers {
 public:
  /// References must outlive the object.
  Controllers(Registry& registry, Clock& clock);
  ~Controllers();
  Controllers(const Controllers&) = delete;
  Controllers& operator=(const Controllers&) = delete;

  void start();
  /// Repeatable.
  void stop();

 private:
  void on_event(const WatchEvent& event);
  void on_pod(const nlohmann::json& pod, bool deleted);
  /// The StatefulSet that owns the pod, if one does.
  void look_at_set_of(const nlohmann::json& pod);
  void on_claim(const nlohmann::json& claim);
  void on_volume(const nlohmann::json& volume, bool deleted);
  void look_at_waiting_pods();
  void look_at_open_claims();
  void sync_storage(const std::string& key);
  void sync_other(const std::string& key);

  Registry& registry_;
  VolumeBinder binder_;  // used by the queue storage_ only
  Scheduler scheduler_;  // these by other_ only
  GarbageCollector collector_;
  StatefulSets stateful_sets_;
  KeyedQueue storage_;
  KeyedQueue other_;
  Subscription changes_;

  // Used by the subscription's thread only.
  std::set<std::string> waiting_pods_;  // without a node
  std::set<std::string> open_claims_;   // not bound yet
  std::map<std::string, std::set<std::string>> pods_of_claim_;
};

}  // namespace lpp::devcluster
