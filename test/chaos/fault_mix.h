// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/sync.h"
#include "chaos/leader_record.h"
#include "chaos/random.h"
#include "harness/fault_proxy.h"

namespace lpp::testing {

/// Random faults in the calls of one replica, by kind: delays, resets before and after the API
/// server acted, answers cut short, held back or sent slowly, 404, 409, 410, 429 with Retry-After,
/// 500, 503; watches that end, are cut between frames or within one, repeat frames, come slowly,
/// lose all frames from some point on until they are cut (as a connection does that is dead on the
/// other side), or begin anew with 410, all of them at once if need be. Reads are stale in the ways
/// in which an API server's may be: a list comes long after it was true, and a watch lags behind.
/// None goes back before its own request, and none says of an object that it is gone when it is
/// not: a client must believe both. Thread-safe; must outlive the proxy's use of its hooks().
class FaultMix {
 public:
  FaultMix(std::uint64_t seed, std::size_t replica, LeaderRecord& leaders)
      : replica_(replica), leaders_(leaders), random_(seed) {}

  ProxyHooks hooks();
  /// The share of calls that meet a fault, 0 … 1.
  void set_level(double level);
  /// A storm of 410: the next watch of every resource gets one.
  void expire_watches();
  /// How many faults of each kind there were.
  std::map<std::string, std::size_t> counts() const;

 private:
  Decision before(const ApiRequest& request);
  Decision choose(const ApiRequest& request) LPP_REQUIRES(mutex_);
  FrameAction frame(const ApiRequest& request, std::string_view text);
  Decision counted(const std::string& name, Decision decision) LPP_REQUIRES(mutex_);

  const std::size_t replica_;
  LeaderRecord& leaders_;
  mutable Mutex mutex_;
  Random random_ LPP_GUARDED_BY(mutex_);
  double level_ LPP_GUARDED_BY(mutex_) = 0;
  std::set<std::uint64_t> silent_ LPP_GUARDED_BY(mutex_);  // watches that lose everything
  std::set<std::string> watched_ LPP_GUARDED_BY(mutex_);   // resources
  std::set<std::string> expired_ LPP_GUARDED_BY(mutex_);   // resources whose next watch gets 410
  std::map<std::string, std::size_t> counts_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::testing
