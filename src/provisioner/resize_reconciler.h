// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "provisioner/action.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/memory.h"
#include "provisioner/reporter.h"
#include "provisioner/resize_decision.h"
#include "provisioner/world.h"

namespace lpp::provisioner {

/// The part of a claim's step that lets its volume grow: looks at the stores, decides
/// (resize_decision.h), does what was decided, and never waits for what goes on outside. Each write
/// is guarded by the version it was decided from. Its memories are kept by the volume's name.
/// Thread-safe for different keys; the queue never runs one key twice at once.
class ResizeReconciler {
 public:
  ResizeReconciler(World& world, Memories& memories)
      : world_(world), memories_(memories), reporter_(world, memories) {}

  /// Done at once for a claim that is not bound, or has what it asks for.
  Action step(const ClaimKey& key);

 private:
  /// Nothing: look again.
  using Next = std::optional<Action>;
  /// What perform() needs besides the decision.
  struct Pass {
    const ClaimKey& key;
    std::optional<bool> has_way{};
    ResizeScene scene{};
  };

  ResizeScene look(const Pass& pass) const;

  Next perform(Pass& pass, const for_resize::Wait& decision);
  Next perform(Pass& pass, const for_resize::Begin& decision);
  Next perform(Pass& pass, const for_resize::AskForWay& decision);
  Next perform(Pass& pass, const for_resize::Start& decision);
  Next perform(Pass& pass, const for_resize::Follow& decision);
  Next perform(Pass& pass, const for_resize::Failed& decision);
  Next perform(Pass& pass, const for_resize::Infeasible& decision);
  Next perform(Pass& pass, const for_resize::Refuse& decision);
  Next perform(Pass& pass, const for_resize::Cancel& decision);
  Next perform(Pass& pass, const for_resize::Forget& decision);
  Next perform(Pass& pass, const for_resize::GrowVolume& decision);
  Next perform(Pass& pass, const for_resize::Finish& decision);

  /// Of the claim's status, and of the annotation kNodeExpansionNotRequired, which the same right
  /// allows.
  enum class Note { kKeep, kRemove, kSet };
  /// The claim as it is then.
  Result<nlohmann::json> patch_claim(const Pass& pass, Note note, const nlohmann::json& status);
  /// What the answer to the write does not show is remembered instead.
  static void note_dropped(Pass& pass, const nlohmann::json& answer, ResizeMarks written);
  /// One of ours takes the place of all that are about resizing; "" = none of them stays.
  nlohmann::json conditions(const Pass& pass, std::string_view type,
                            const std::string& message) const;
  /// Nothing else may have come in between.
  Result<bool> may_grow_to(const Pass& pass, std::int64_t bytes);
  Action api_failed(const Pass& pass, const Error& error);
  /// The cache may have been behind: then it shows soon what has changed.
  Action write_failed(const Pass& pass, const Error& error);
  void forget(const ResizeScene& scene) const;
  void remember(const Pass& pass);
  void event(const Pass& pass, std::string_view reason, const std::string& message);
  Subject subject(const Pass& pass) const;

  World& world_;
  Memories& memories_;
  Reporter reporter_;
};

}  // namespace lpp::provisioner
