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
  kVerifyData,
  kRemoveNode,
  kReturnNode,
  kKillNode,  // it starts and ends nothing any more
  kSlowNode,
  kFailPulls,
  kHealNode,
  kGoodConfig,
  kBadConfig,
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

/// The steps of a seed: the same ones on every machine, whatever becomes of them. One thread.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : random_(seed) {}
  Step next();

 private:
  Random random_;
};

}  // namespace lpp::testing
