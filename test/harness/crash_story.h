// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/installation.h"
#include "harness/kill_switch.h"
#include "harness/volume_audit.h"

namespace lpp::testing {

/// What a run of the crash story covered.
struct CrashSummary {
  std::size_t kills = 0;
  std::set<std::string> places{};  // "before create pods", "after delete persistentvolumes" …
};

/// The promise that no operation is lost or done twice: the daemon is killed with SIGKILL at every
/// API call of making and of removing a volume, before and after the call is applied, and at every
/// API call of its own start with work waiting. Started again, it must finish the volume once, with
/// nothing left over and other volumes untouched. A run without a kill finds out which calls there
/// are. Tells its progress to `say`.
class CrashStory {
 public:
  CrashStory(Installation& installation, std::string ns, std::function<void(std::string)> say);
  /// Called whenever the daemon has been started.
  void on_start(std::function<void()> call) { on_start_ = std::move(call); }

  /// Kills during work. The first violation ends it as an Error that says where and what.
  Result<CrashSummary> during_work();
  /// Kills during the start, with a claim to serve and a volume to remove: at every n-th of its
  /// calls (on a real node each takes seconds).
  Result<CrashSummary> during_start(std::size_t every_nth = 1);

 private:
  struct Bystander {
    k8s::ObjectKey claim{};
    VolumeFacts volume{};
    std::string content{};
  };

  Result<void> add_bystanders();
  Result<void> check_bystanders();
  Result<void> remove_bystanders();
  k8s::ObjectKey new_claim_key();
  Result<void> create_claim(const k8s::ObjectKey& key);
  Result<void> delete_claim(const k8s::ObjectKey& key);

  using Points = std::vector<CallPoint>;

  /// One volume, killed once while it is made and once while it is removed. The kinds of calls
  /// that were made go to `made` and `removed`, if given.
  Result<void> work_case(const CallPoint& making, const CallPoint& removing,
                         KillSwitch::Moment moment, CrashSummary& summary, Points* made = nullptr,
                         Points* removed = nullptr);
  Result<void> start_case(const CallPoint& point, KillSwitch::Moment moment, CrashSummary& summary,
                          Points* made = nullptr);
  /// Runs `act`, waits for the kill or for `finished` and silence; starts the daemon again if it
  /// was killed.
  Result<void> provoke(KillSwitch& kill, const std::function<Result<void>()>& act,
                       const std::function<bool()>& finished);
  Result<void> check_bound_and_write(const k8s::ObjectKey& key, VolumeFacts& volume);
  Result<void> check_deleted(const k8s::ObjectKey& key, const VolumeFacts& volume);
  Result<void> start_daemon();
  Result<void> revive();
  void note(const KillSwitch& kill, const CallPoint& point, KillSwitch::Moment moment,
            CrashSummary& summary);
  Error explain(const Error& error, const std::string& where) const;

  Installation& installation_;
  TestBed& bed_;
  VolumeAudit audit_;
  const std::string ns_;
  const std::function<void(std::string)> say_;
  std::function<void()> on_start_ = [] {};
  std::vector<Bystander> bystanders_;
  /// What the next start finds: the volume of the start before, whose claim is deleted then.
  struct Waiting {
    k8s::ObjectKey claim{};
    VolumeFacts volume{};
  };
  Waiting waiting_;
  std::size_t claims_ = 0;
};

}  // namespace lpp::testing
