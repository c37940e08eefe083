// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "harness/api_request.h"

namespace lpp::testing {

/// Judges from the requests of all replicas whether one of them wrote while another one led. Who
/// leads is learned from the writes of the lease that the API server has taken, so a takeover is
/// never noted before it has happened. Events are no work of a leader. Thread-safe.
class LeaderRecord {
 public:
  /// The request has arrived from that replica and goes to the API server now, unless the replica
  /// has given it up.
  void arrives(std::size_t replica, const ApiRequest& request);
  /// The API server has answered it.
  void answered(std::size_t replica, const ApiRequest& request, int status);

  /// Somebody took the lease away by hand: replicas cannot know that at once. Nothing is judged
  /// for so long.
  void tampered(std::chrono::milliseconds duration);
  /// How often the lease came to another replica than before, or to one after nobody.
  std::size_t takeovers() const;
  /// Writes of one replica that were sent when another one already led, as text.
  std::vector<std::string> violations() const;

 private:
  using Id = std::pair<std::size_t, std::uint64_t>;  // replica, sequence number
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  mutable Mutex mutex_;
  std::size_t holder_ LPP_GUARDED_BY(mutex_) = kNobody;
  std::size_t takeovers_ LPP_GUARDED_BY(mutex_) = 0;
  std::map<Id, std::size_t> suspects_ LPP_GUARDED_BY(mutex_);  // and who led
  std::chrono::steady_clock::time_point judged_from_ LPP_GUARDED_BY(mutex_);
  std::vector<std::string> violations_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::testing
