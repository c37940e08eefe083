// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "chaos/random.h"

namespace lpp::testing {

/// What can happen in one step of a chaos run.
enum class StepKind {
  kCreateClaim,
  kDeleteClaim,
  kRecreateClaim,  // deleted and made again under its name
  kEditClaim,
  kMoveClaim,  // another selected node, or none
  kDeleteVolume,
  kComeBack,      // the same name again after its retained volume was forgotten
  kChangePolicy,  // of a volume, between Delete and Retain
  kSaveVolume,    // changed to Retain while its removal waits for a dead node
  kForgetVolume,  // a retained one's object is deleted, its directory stays
  kBindAgain,     // a retained volume gets a new claim
  kPatchLoop,     // a claim is changed many times without a pause
  kOldVolumes,    // two with one directory, as old versions made them
  kVerifyData,
  kRemoveNode,
  kReturnNode,
  kRenameNode,  // made again under another name, with the label of its hostname
  kRelabelNode,
  kKillNode,  // it starts and ends nothing any more
  kSlowNode,
  kFailPulls,
  kHealNode,
  kGoodConfig,
  kBadConfig,
  kShareClass,  // its volumes are on a shared filesystem from now on, or on the nodes again
  kDropClass,
  kMakeClass,
  kGoodTemplate,
  kBadTemplate,
  kFailSetup,
  kFailTeardown,
  kSlowScripts,
  kRepairScripts,
  kEvictHelper,
  kDeleteHelper,
  kKillDaemon,
  kStopDaemon,
  kStartDaemon,
  kPauseDaemon,
  kResumeDaemon,
  kPartition,
  kHealPartition,
  kCutConnections,
  kForgetHistory,  // of the API server: watches get 410
  kReleaseHung,
  kFaultLevel,
  kDeleteLease,
  kEditLease,
  kWait,
  // Only of runs with node agents.
  kKillAgent,
  kStartAgent,
  kRemoveAgent,  // and its pod
  kFreezeAgent,  // it neither works nor speaks, its connections stay
  kThawAgent,
  kCutAgent,
  kPartitionAgent,
  kHealAgent,
  kTakeDisk,  // of a base path: away, or another one is in its place
  kReturnDisk,
};

std::string_view to_string(StepKind kind);

/// One step; what the numbers choose depends on the kind.
struct Step {
  StepKind kind = StepKind::kWait;
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t c = 0;

  std::string to_string() const;
};

/// The steps of a seed: the same ones on every machine, whatever becomes of them; other ones with
/// node agents than without. One thread.
class Schedule {
 public:
  enum class Agents { kNone, kSome };
  explicit Schedule(std::uint64_t seed, Agents agents = Agents::kNone)
      : random_(seed), agents_(agents) {}
  Step next();

 private:
  Random random_;
  const Agents agents_;
};

}  // namespace lpp::testing
