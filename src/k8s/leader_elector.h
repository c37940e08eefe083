// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/sync.h"
#include "k8s/api_client.h"
#include "k8s/transport.h"

namespace lpp::k8s {

struct LeaderElectorOptions {
  std::string ns;
  std::string lease_name;
  std::string identity;
  std::chrono::seconds lease_duration{15};
  std::chrono::seconds renew_deadline{10};
  std::chrono::seconds retry_period{2};
};

/// leaderelection of client-go on a coordination.k8s.io/v1 Lease (rule C8): a holder is
/// judged by our own monotonic clock since its record last changed, never by its timestamps.
/// run() belongs to one thread; the rest is thread-safe.
class LeaderElector {
 public:
  struct Callbacks {
    std::function<void()> started_leading;                 // must return quickly
    std::function<void()> stopped_leading;                 // returns when all leader work has ended
    std::function<void(const std::string&)> new_leader{};  // for the log
  };

  /// `options` must have passed validate(). The client and clock must outlive it. Every request is
  /// limited to half of renew_deadline. The client's rate limiter does not count for them.
  LeaderElector(ApiClient& client, Clock& clock, LeaderElectorOptions options, Callbacks callbacks);
  ~LeaderElector();

  /// kInvalid unless lease_duration > renew_deadline > 1.2 * retry_period and all names are given.
  static Result<void> validate(const LeaderElectorOptions& options);

  /// Acquires, renews, and after a loss acquires again, until stopped; releases the lease when it
  /// was held at the end (after stopped_leading has returned). stopped_leading is called no later
  /// than renew_deadline after the last renewal was sent, so that lease_duration - renew_deadline
  /// is left for leader work to end. On a stop the lease stays valid while leader work ends.
  void run(const std::stop_token& stop);

  /// False from the moment of a loss or stop, even while leader work is still ending.
  bool leading() const;
  /// Until when nobody else can hold the lease, counted from before the last renewal was sent; the
  /// past when we do not hold it. Writes of leader work must be over by then.
  TimePoint valid_until() const;
  /// Identity of the holder last seen; "" = none.
  std::string leader() const;
  /// Why the lease cannot be had, if that will not heal by itself (no right to it, no namespace)
  /// and nothing has succeeded since. Says what to do.
  std::optional<std::string> refused() const;

 private:
  struct Observed;
  enum class Attempt { kHeld, kFailed, kHeldByOther };

  bool acquire(const std::stop_token& stop);
  void renew_until_lost(const std::stop_token& stop);
  Attempt try_acquire_or_renew(TimePoint deadline, const std::stop_token& stop);
  Attempt create(TimePoint deadline, const std::stop_token& stop);
  Attempt update(TimePoint deadline, const std::stop_token& stop);
  Attempt accept(const Result<nlohmann::json>& answer, TimePoint sent, std::string_view what);
  void failed(const Error& error, std::string_view what);
  void observe(const nlohmann::json& lease, TimePoint at);
  bool observed_is_valid() const;
  void release();
  bool try_release(ApiClient& client);
  ApiClient limited_client(TimePoint deadline, std::stop_token stop) const;

  ApiClient& client_;
  Clock& clock_;
  const LeaderElectorOptions options_;
  const Callbacks callbacks_;
  std::atomic<bool> leading_ = false;
  std::atomic<TimePoint> valid_until_{TimePoint::min()};
  mutable Mutex mutex_;
  std::string leader_ LPP_GUARDED_BY(mutex_);
  std::optional<std::string> refused_ LPP_GUARDED_BY(mutex_);
  // Used by run() only.
  std::string said_{};  // last failure in the log, and when
  TimePoint said_at_{};
  std::unique_ptr<Observed> observed_;  // the lease as last seen
  bool may_hold_ = false;               // a write of ours may have made us the holder
};

}  // namespace lpp::k8s
