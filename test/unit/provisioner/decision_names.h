// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <string_view>
#include <variant>

#include "provisioner/claim_decision.h"
#include "provisioner/resize_decision.h"
#include "provisioner/volume_decision.h"

namespace lpp::testing {

using State = operation::Progress::State;

inline std::string_view name_of(const provisioner::ClaimDecision& decision) {
  static constexpr std::array<std::string_view, std::variant_size_v<provisioner::ClaimDecision>>
      kNames{"Wait",           "Start",         "Follow",      "Publish",        "Failed",
             "Cancel",         "Withdraw",      "Forget",      "TakeBack",       "FinishTakeBack",
             "TakeBackFailed", "TakeBackStuck", "CheckNode",   "CheckPublished", "OtherVolume",
             "Refuse",         "Bind",          "LeaveUnbound"};
  return kNames.at(decision.index());
}

inline std::string_view name_of(const provisioner::VolumeDecision& decision) {
  static constexpr std::array<std::string_view, std::variant_size_v<provisioner::VolumeDecision>>
      kNames{"Wait",         "AddFinalizer", "RemoveFinalizer", "Cancel",   "Forget",    "Remove",
             "Follow",       "Failed",       "Release",         "LetGo",    "PathTaken", "Refuse",
             "MarkReleased", "NodeLost",     "LetClaimGo",      "KeepClaim"};
  return kNames.at(decision.index());
}

inline std::string_view name_of(const provisioner::ResizeDecision& decision) {
  static constexpr std::array<std::string_view, std::variant_size_v<provisioner::ResizeDecision>>
      kNames{"Wait",       "Begin",  "AskForWay", "Start",  "Follow",     "Failed",
             "Infeasible", "Refuse", "Cancel",    "Forget", "GrowVolume", "Finish"};
  return kNames.at(decision.index());
}

/// The decision as the alternative that it must be.
template <typename Alternative, typename Decision>
Alternative the(const Decision& decision) {
  REQUIRE_MESSAGE(std::holds_alternative<Alternative>(decision), "it is " << name_of(decision));
  return std::get<Alternative>(decision);
}

}  // namespace lpp::testing
