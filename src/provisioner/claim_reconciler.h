// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "provisioner/action.h"
#include "provisioner/claim_decision.h"
#include "provisioner/memory.h"
#include "provisioner/reporter.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// A claim as the claim queue knows it. The UID is part of it: a claim deleted and created again
/// under the same name is another claim.
struct ClaimKey {
  k8s::ObjectKey claim;
  std::string uid;
  bool operator==(const ClaimKey&) const = default;
};

/// One idempotent pass over one claim: looks at the stores, decides (claim_decision.h), does what
/// was decided, and never waits for what goes on outside. Thread-safe for different keys; the queue
/// never runs one key twice at once.
class ClaimReconciler {
 public:
  ClaimReconciler(World& world, Memories& memories)
      : world_(world), memories_(memories), reporter_(world, memories) {}

  /// `waiting_since` is when the key came into the queue.
  Action step(const ClaimKey& key, std::optional<TimePoint> waiting_since = {});

 private:
  /// Nothing: look again.
  using Next = std::optional<Action>;
  /// What perform() needs besides the decision.
  struct Pass {
    const ClaimKey& key;
    std::optional<TimePoint> waiting_since{};
    ClaimScene scene{};
  };

  // A step, and a make that is begun and followed. (claim_reconciler.cpp)

  ClaimScene look(const ClaimKey& key);
  Next carry_out(Pass& pass, ClaimDecision decision);
  void show(const ClaimScene& scene);
  Next perform(Pass& pass, const for_claim::Wait& decision);
  Next perform(Pass& pass, const for_claim::Start& decision);
  Next perform(Pass& pass, const for_claim::Follow& decision);
  Next perform(Pass& pass, const for_claim::Failed& decision);
  void tell_of_anew(const Pass& pass, const operation::Operation& make);
  Next perform(Pass& pass, const for_claim::Cancel& decision);
  Next perform(Pass& pass, const for_claim::CheckPublished& decision);
  Next perform(Pass& pass, const for_claim::OtherVolume& decision);
  Action path_taken(Pass& pass, const std::string& path, const operation::Holder& holder);
  void remember(Pass& pass) { memories_.set(pass.scene.volume_name, pass.scene.memory); }
  Subject subject(const Pass& pass) const;
  void announce(const Pass& pass);

  // What the caches do not show whole, or perhaps not as it is now. (claim_asked.cpp)

  /// Whether something was decided for good by a claim or a node of which only a part is kept.
  static bool rests_on_a_part(const ClaimScene& scene, const ClaimDecision& decision);
  /// Puts all of them into the scene.
  Next read_the_rest(Pass& pass, const ClaimDecision& decision);
  /// Whether the claim waits for something else than its turn or a change of its own; what may also
  /// come of another decision (a refusal, a path or a name that is taken) marks it itself.
  static bool is_a_wait(const ClaimScene& scene, const ClaimDecision& decision);
  /// Nothing when the claim neither has waited so nor had a volume, or when the API server too says
  /// that it waits for one, on the same node. What has ended the wait may be later than the cache
  /// of claims: who deletes a claim, and then the volume that had its directory, wants no volume
  /// for it.
  Next ask_after_a_wait(Pass& pass);
  /// Nothing when it was let.
  Next let_go_on(Pass& pass, const Make& make);

  // What was made becomes a volume, and is bound. (claim_publish.cpp, claim_binding.cpp)

  Next perform(Pass& pass, const for_claim::Publish& decision);
  /// Versions before this did not write the shape down: it comes from today's class and
  /// configuration, if those are still about the same kind of directory.
  static std::optional<Refusal> complete_shape(const ClaimScene& scene,
                                               operation::Operation& operation);
  Action published(Pass& pass, const operation::Operation& operation,
                   std::optional<k8s::PersistentVolume> volume);
  Next perform(Pass& pass, const for_claim::Bind& decision);
  Next perform(Pass& pass, const for_claim::LeaveUnbound& decision);
  void bind_at_once(Pass& pass, k8s::PersistentVolume created);
  /// Each write is refused by the API server if its object is not in the version decided from.
  Result<void> write_binding(ClaimScene& scene, const for_claim::Bind& decision);

  // Where it cannot be made it is made elsewhere, or refused. (claim_elsewhere.cpp)

  Next perform(Pass& pass, const for_claim::CheckNode& decision);
  Next perform(Pass& pass, const for_claim::Refuse& decision);
  Action reschedule(Pass& pass, const std::string& reason, const std::string& why);
  static void give_up(Pass& pass, const operation::Operation& make);
  void note_unfit(Pass& pass, const for_claim::Failed& decision);
  std::string sight_of(const ClaimScene& scene) const;
  void look_at_disks(ClaimScene& scene) const;
  BasePaths base_paths_of(const ClaimScene& scene) const;

  // What was made and is not wanted any more is taken back, or left and told. (claim_take_back.cpp)

  Next perform(Pass& pass, const for_claim::Withdraw& decision);
  Next perform(Pass& pass, const for_claim::Forget& decision);
  Next perform(Pass& pass, const for_claim::TakeBack& decision);
  Next perform(Pass& pass, const for_claim::FinishTakeBack& decision);
  Next perform(Pass& pass, const for_claim::TakeBackFailed& decision);
  Next perform(Pass& pass, const for_claim::TakeBackStuck& decision);
  operation::Operation undo_of(const for_claim::TakeBack& decision) const;
  std::string disk_of(const Make& make) const;
  enum class Wanted { kNo, kYes, kHasVolume };
  /// Asks the API server, for the cache of claims may be behind the executor's.
  Result<Wanted> is_still_wanted(const Make& make);
  static Action wait_for_the_cache();
  /// The directory stays where it is; `why` tells people.
  Result<void> tell_what_is_left(const Pass& pass, const TakingBack& done);
  Result<void> tell_of_stopped(const operation::Operation& teardown);
  Next leave(Pass& pass, const operation::Operation& make, const std::string& why);
  void set_done(Pass& pass, const operation::Operation& place);
  void note_missed(ClaimScene& scene) const;
  void not_missed(Pass& pass, const operation::Id& id);
  Subject take_back_subject(const operation::Operation& operation) const;

  World& world_;
  Memories& memories_;
  Reporter reporter_;
};

}  // namespace lpp::provisioner

template <>
struct std::hash<lpp::provisioner::ClaimKey> {
  std::size_t operator()(const lpp::provisioner::ClaimKey& key) const noexcept {
    return std::hash<std::string>()(key.uid);
  }
};
