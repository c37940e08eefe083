// SPDX-License-Identifier: Apache-2.0
#include "chaos/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace lpp::testing {

namespace {

struct Weighted {
  StepKind kind;
  std::string_view name;
  std::size_t weight;
};

/// In the order of StepKind.
constexpr std::array kSteps = {
    Weighted{StepKind::kCreateClaim, "create-claim", 260},
    Weighted{StepKind::kDeleteClaim, "delete-claim", 130},
    Weighted{StepKind::kRecreateClaim, "recreate-claim", 40},
    Weighted{StepKind::kEditClaim, "edit-claim", 20},
    Weighted{StepKind::kMoveClaim, "move-claim", 40},
    Weighted{StepKind::kDeleteVolume, "delete-volume", 10},
    Weighted{StepKind::kComeBack, "come-back", 60},
    Weighted{StepKind::kChangePolicy, "change-policy", 40},
    Weighted{StepKind::kSaveVolume, "save-volume", 25},
    Weighted{StepKind::kForgetVolume, "forget-volume", 20},
    Weighted{StepKind::kBindAgain, "bind-again", 20},
    Weighted{StepKind::kPatchLoop, "patch-loop", 15},
    Weighted{StepKind::kOldVolumes, "old-volumes", 10},
    Weighted{StepKind::kVerifyData, "verify-data", 60},
    Weighted{StepKind::kRemoveNode, "remove-node", 4},
    Weighted{StepKind::kReturnNode, "return-node", 10},
    Weighted{StepKind::kRenameNode, "rename-node", 10},
    Weighted{StepKind::kRelabelNode, "relabel-node", 8},
    Weighted{StepKind::kKillNode, "kill-node", 10},
    Weighted{StepKind::kSlowNode, "slow-node", 15},
    Weighted{StepKind::kFailPulls, "fail-pulls", 6},
    Weighted{StepKind::kHealNode, "heal-node", 25},
    Weighted{StepKind::kGoodConfig, "good-config", 15},
    Weighted{StepKind::kBadConfig, "bad-config", 10},
    Weighted{StepKind::kShareClass, "share-class", 15},
    Weighted{StepKind::kDropClass, "drop-class", 5},
    Weighted{StepKind::kMakeClass, "make-class", 8},
    Weighted{StepKind::kGoodTemplate, "good-template", 8},
    Weighted{StepKind::kBadTemplate, "bad-template", 6},
    Weighted{StepKind::kFailSetup, "fail-setup", 8},
    Weighted{StepKind::kFailTeardown, "fail-teardown", 8},
    Weighted{StepKind::kSlowScripts, "slow-scripts", 8},
    Weighted{StepKind::kRepairScripts, "repair-scripts", 24},
    Weighted{StepKind::kEvictHelper, "evict-helper", 20},
    Weighted{StepKind::kDeleteHelper, "delete-helper", 12},
    Weighted{StepKind::kKillDaemon, "kill-daemon", 25},
    Weighted{StepKind::kStopDaemon, "stop-daemon", 12},
    Weighted{StepKind::kStartDaemon, "start-daemon", 60},
    Weighted{StepKind::kPauseDaemon, "pause-daemon", 8},
    Weighted{StepKind::kResumeDaemon, "resume-daemon", 12},
    Weighted{StepKind::kPartition, "partition", 8},
    Weighted{StepKind::kHealPartition, "heal-partition", 16},
    Weighted{StepKind::kCutConnections, "cut-connections", 15},
    Weighted{StepKind::kForgetHistory, "forget-history", 8},
    Weighted{StepKind::kReleaseHung, "release-hung", 20},
    Weighted{StepKind::kFaultLevel, "fault-level", 40},
    Weighted{StepKind::kDeleteLease, "delete-lease", 4},
    Weighted{StepKind::kEditLease, "edit-lease", 6},
    Weighted{StepKind::kWait, "wait", 120},
    Weighted{StepKind::kKillAgent, "kill-agent", 40},
    Weighted{StepKind::kStartAgent, "start-agent", 90},
    Weighted{StepKind::kRemoveAgent, "remove-agent", 12},
    Weighted{StepKind::kFreezeAgent, "freeze-agent", 12},
    Weighted{StepKind::kThawAgent, "thaw-agent", 24},
    Weighted{StepKind::kCutAgent, "cut-agent", 40},
    Weighted{StepKind::kPartitionAgent, "partition-agent", 12},
    Weighted{StepKind::kHealAgent, "heal-agent", 30},
    Weighted{StepKind::kTakeDisk, "take-disk", 100},
    Weighted{StepKind::kReturnDisk, "return-disk", 40},
};

std::size_t weight_of_all(bool with_agents) {
  return std::accumulate(kSteps.begin(), kSteps.end(), std::size_t{0},
                         [&](std::size_t sum, const Weighted& step) {
                           const bool counts = with_agents || step.kind <= StepKind::kWait;
                           return counts ? sum + step.weight : sum;
                         });
}

}  // namespace

std::string_view to_string(StepKind kind) { return kSteps.at(static_cast<std::size_t>(kind)).name; }

std::string Step::to_string() const {
  return fmt::format("{} {} {} {}", lpp::testing::to_string(kind), a, b, c);
}

Step Schedule::next() {
  std::size_t point = random_.below(weight_of_all(agents_ == Agents::kSome));
  Step step;
  for (const Weighted& one : kSteps) {
    if (point < one.weight) {
      step.kind = one.kind;
      break;
    }
    point -= one.weight;
  }
  constexpr std::size_t kNumbers = 1'000'000;
  step.a = random_.below(kNumbers);
  step.b = random_.below(kNumbers);
  step.c = random_.below(kNumbers);
  return step;
}

}  // namespace lpp::testing
