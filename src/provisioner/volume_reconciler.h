// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "provisioner/action.h"
#include "provisioner/memory.h"
#include "provisioner/node_lost.h"
#include "provisioner/reporter.h"
#include "provisioner/volume_decision.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// One idempotent pass over one volume: looks at the stores, decides (volume_decision.h), does what
/// was decided, and never waits for what goes on outside. Thread-safe for different names; the
/// queue never runs one name twice at once.
class VolumeReconciler {
 public:
  VolumeReconciler(World& world, Memories& memories)
      : world_(world), memories_(memories), reporter_(world, memories) {}

  /// `name` is that of a PersistentVolume that exists or existed.
  /// `waiting_since` is when the name came into the queue.
  Action step(const std::string& name, std::optional<TimePoint> waiting_since = {});

 private:
  /// Nothing: look again.
  using Next = std::optional<Action>;
  /// What perform() needs besides the decision.
  struct Pass {
    std::optional<TimePoint> waiting_since{};
    VolumeScene scene{};
  };

  VolumeScene look(const std::string& name);
  void note_claim(VolumeScene& scene);
  void note_node(VolumeScene& scene);
  /// Whether its directory is to be removed now.
  bool is_wanted(const k8s::PersistentVolume& volume, const Memory& memory) const;

  Next perform(Pass& pass, const for_volume::Wait& decision);
  Next perform(Pass& pass, const for_volume::AddFinalizer& decision);
  Next perform(Pass& pass, const for_volume::RemoveFinalizer& decision);
  Next perform(Pass& pass, const for_volume::Cancel& decision);
  Next perform(Pass& pass, const for_volume::Forget& decision);
  Next perform(Pass& pass, const for_volume::Remove& decision);
  Next perform(Pass& pass, const for_volume::Follow& decision);
  Next perform(Pass& pass, const for_volume::Failed& decision);
  Next perform(Pass& pass, const for_volume::Release& decision);
  Next perform(Pass& pass, const for_volume::LetGo& decision);
  Next perform(Pass& pass, const for_volume::PathTaken& decision);
  Next perform(Pass& pass, const for_volume::Refuse& decision);
  Next perform(Pass& pass, const for_volume::MarkReleased& decision);
  Next perform(Pass& pass, const for_volume::NodeLost& decision);
  Next perform(Pass& pass, const for_volume::LetClaimGo& decision);
  Next perform(Pass& pass, const for_volume::KeepClaim& decision);

  /// Whether the volume is still to be removed by the API server's word, and nobody can bind it any
  /// more. False: the cache will show what has changed.
  Result<bool> condemn(const k8s::PersistentVolume& seen, Memory& memory);
  /// nullopt: by the API server's word it is not to be removed any more. Else Memory has the time.
  Result<std::optional<k8s::PersistentVolume>> read_condemned(const k8s::PersistentVolume& seen,
                                                              Memory& memory);
  Result<bool> is_condemned_still(Pass& pass);
  void came_too_late(Pass& pass, const operation::Operation& operation);
  Result<bool> claim_is_gone(const k8s::PersistentVolume& volume);
  enum class Finalizer { kAdd, kRemove };
  enum class Guard { kUid, kVersion };  // refused unless the object is the same, or unchanged
  Result<void> delete_object(const k8s::PersistentVolume& seen, Guard guard);
  Result<nlohmann::json> patch_finalizer(const k8s::PersistentVolume& volume, Finalizer change,
                                         k8s::Answer answer = k8s::Answer::kIdentity,
                                         Guard guard = Guard::kUid);
  Action let_object_go(Pass& pass, Guard guard);
  /// Nothing: another thread is asking.
  Result<std::optional<bool>> is_lost(const k8s::PersistentVolume& volume, TimePoint not_before);
  void tell_lost(const Pass& pass, std::string_view reason, const std::string& of_claim,
                 const std::string& of_volume);
  Action not_let_go(const Pass& pass, const Error& error);
  Action not_kept(const Pass& pass, const Error& error);
  void not_missed(Pass& pass, const operation::Operation& operation);
  void remember(const Pass& pass) { memories_.set(pass.scene.name, pass.scene.memory); }
  Subject subject(const Pass& pass) const;
  Result<void> tell(const Pass& pass, std::string_view event_reason, const std::string& message);

  World& world_;
  Memories& memories_;
  Reporter reporter_;
  NodeCensus census_;
};

}  // namespace lpp::provisioner
