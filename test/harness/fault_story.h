// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/sync.h"
#include "harness/crash_story.h"
#include "harness/installation.h"
#include "harness/volume_audit.h"

namespace lpp::testing {

/// A way in which one API call goes wrong.
struct Fault {
  std::string name{};  // part of an object name
  Decision decision{};
};

/// 404, 409, 410, 429 with Retry-After, 500, 503, cut before, cut after, no answer …
const std::vector<Fault>& all_faults();

/// What a run of the fault story covered: "create pods: cut-after" …
struct FaultSummary {
  std::vector<std::string> met{};
};

/// Every API call of making a volume, and every one of removing it, goes wrong once in every way.
/// Which calls there are is learned from one volume that meets none. Then each volume meets one
/// fault at one call, all at the same time, so that waiting costs little. All must be finished,
/// once, with nothing left over, and every byte that a tenant wrote must be there until its claim
/// goes: each volume is written to as soon as it is bound, and those that meet nothing stay.
class FaultStory {
 public:
  /// The daemon runs and is ready.
  FaultStory(Installation& installation, std::string ns);

  Result<FaultSummary> run();

 private:
  struct Case {
    k8s::ObjectKey claim{};
    const Fault* fault = nullptr;
    CallPoint making{};    // meets the fault
    CallPoint removing{};  // meets it too
    std::string uid{};     // of the claim
    std::string met{};     // what the fault hit
    VolumeFacts volume{};
    std::map<std::string, std::size_t> seen{};  // calls that concern it, by kind
  };
  /// Of a tenant who has nothing to do with any fault.
  struct Bystander {
    k8s::ObjectKey claim{};
    VolumeFacts volume{};
  };

  Decision before(const ApiRequest& request);
  Case* concerned(const ApiRequest& request) LPP_REQUIRES(mutex_);
  Result<void> learn();
  Result<void> add_bystanders();
  Result<void> check_bystanders() const;
  Result<void> check_contents();
  void begin_removal();
  void collect(FaultSummary& summary, const std::string& phase);
  Error explain(const Error& error, const Case& one) const;
  Result<void> make_all();
  Result<void> remove_all();
  Result<void> check_clean();

  Installation& installation_;
  TestBed& bed_;
  VolumeAudit audit_;
  const std::string ns_;
  std::vector<Bystander> bystanders_;  // one on each node
  Mutex mutex_;
  bool removing_ LPP_GUARDED_BY(mutex_) = false;
  std::map<std::string, Case> cases_ LPP_GUARDED_BY(mutex_);  // by the claim's name
};

}  // namespace lpp::testing
