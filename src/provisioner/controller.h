// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/sync.h"
#include "k8s/informer.h"
#include "k8s/work_queue.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

struct ControllerOptions {
  int worker_threads = 16;            // for each of the two queues
  int provisioning_retry_count = 15;  // 0 = for ever
  int deletion_retry_count = 15;      // 0 = for ever
};

/// The informers whose changes wake the controller. Owned by the caller, not started yet.
struct Informers {
  k8s::Informer<k8s::PersistentVolumeClaim>& claims;
  k8s::Informer<k8s::PersistentVolume>& volumes;
  k8s::Informer<k8s::StorageClass>& classes;
  k8s::Informer<k8s::Node>& nodes;
};

/// The provision controller: the claim queue and the volume queue, their workers, and the rules
/// about which change wakes which key. Works only between start_working() and stop_working(), which
/// may alternate (leader election); the informers go on all the time. Thread-safe, but
/// start_working() and stop_working() come from one thread at a time.
class Controller {
 public:
  /// Registers handlers with the informers. Everything passed in must outlive the controller.
  Controller(World& world, Informers informers, ControllerOptions options);
  ~Controller();

  /// Starts the workers and enqueues everything there is. The informers must have synced.
  void start_working();
  /// Hands out no more keys and waits until the running steps have ended.
  void stop_working();

  /// To be called when another configuration has been published.
  void config_changed();

  /// When an Event that was handed to the recorder has reached nobody, so that it is told again.
  void event_dropped(const k8s::ObjectReference& about);

  /// For metrics and probes. The states are empty while nothing is worked on.
  const k8s::WorkQueueStats& claim_stats() const { return claim_stats_; }
  const k8s::WorkQueueStats& volume_stats() const { return volume_stats_; }
  std::optional<k8s::WorkQueueState> claim_queue() const;
  std::optional<k8s::WorkQueueState> volume_queue() const;

 private:
  struct Term;  // queues and workers between start_working() and stop_working()

  // Which change wakes whom. What else a step waits for (time, the end of work) wakes its key
  // through its Action and the executor.

  /// The claim; and the volume that it had, when it is gone.
  void on_claim(const k8s::Change<k8s::PersistentVolumeClaim>& change);
  /// The volume; and its claim until they are bound, and when it wants more or waits for a path.
  void on_volume(const k8s::Change<k8s::PersistentVolume>& change);
  /// Claims that may want a volume of it, and volumes that it may let go.
  void on_class(const k8s::Change<k8s::StorageClass>& change);
  /// Claims that are to be on it, and volumes that may be lost with it or are to be removed.
  void on_node(const k8s::Change<k8s::Node>& change);

  /// nullptr: nothing is worked on.
  std::shared_ptr<Term> term() const;
  /// Whether the claim has no volume and may want one of ours, or wants more of one of ours.
  bool may_want_volume(const k8s::PersistentVolumeClaim& claim) const;
  bool may_want_more(const k8s::PersistentVolumeClaim& claim) const;
  /// Whether it is bound, and its claim is let go when its node is lost.
  bool may_be_lost(const k8s::PersistentVolume& volume) const;

  World& world_;
  const Informers informers_;
  const ControllerOptions options_;
  // Of all terms together.
  k8s::WorkQueueStats claim_stats_;
  k8s::WorkQueueStats volume_stats_;
  mutable Mutex mutex_;
  std::shared_ptr<Term> term_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::provisioner
