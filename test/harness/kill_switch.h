// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/sync.h"
#include "harness/fault_proxy.h"
#include "harness/kube.h"

namespace lpp::testing {

/// The nth API call of a kind, e.g. the second "create events" of a story.
struct CallPoint {
  std::string kind{};
  std::size_t number = 0;  // 0 = none
};

/// Every call of those kinds.
std::vector<CallPoint> points_of(const std::map<std::string, std::size_t>& kinds);
/// The point at that index, or none.
CallPoint point_at(const std::vector<CallPoint>& points, std::size_t index);

/// A call that belongs to the work on volumes: not the lease and not the caches.
bool is_work_call(const ApiRequest& request);

/// Calls `strike` (which kills the daemon) at the nth of the API calls that count, either before
/// the API server sees the call or when it has been applied and its answer is not yet sent.
/// Must outlive the proxy's use of its hooks(). Thread-safe.
class KillSwitch {
 public:
  enum class Moment { kBefore, kAfter };
  using Counts = std::function<bool(const ApiRequest&)>;

  /// `index` begins with 1; 0 never strikes and only counts.
  KillSwitch(std::size_t index, Moment moment, Counts counts, std::function<void()> strike)
      : index_(index), moment_(moment), counts_(std::move(counts)), strike_(std::move(strike)) {}

  ProxyHooks hooks();
  bool fired() const { return fired_; }
  /// How many calls of each kind counted so far.
  std::map<std::string, std::size_t> kinds() const;
  /// No call that counts for so long that, after the end of a story, there will be none.
  bool is_quiet() const;
  Result<void> wait_quiet(Patience patience) const;
  /// "before call 3: create pods a/b".
  std::string to_string() const;

 private:
  Decision before(const ApiRequest& request);
  void after(const ApiRequest& request);

  const std::size_t index_;
  const Moment moment_;
  const Counts counts_;
  const std::function<void()> strike_;
  std::atomic<bool> fired_ = false;

  mutable Mutex mutex_;
  std::vector<ApiRequest> calls_ LPP_GUARDED_BY(mutex_);
  std::uint64_t chosen_ LPP_GUARDED_BY(mutex_) = 0;  // sequence number
  std::chrono::steady_clock::time_point last_ LPP_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::now();
};

}  // namespace lpp::testing
