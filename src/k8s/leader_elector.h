#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
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

/// leaderelection of client-go on a coordination.k8s.io/v1 Lease (behaviour rule C8): a holder is
/// judged by our own monotonic clock since its record last changed, never by its timestamps.
/// run() belongs to one thread; the rest is thread-safe.
class LeaderElector {
 public:
  struct Callbacks {
    std::function<void()> started_leading;                 // must return quickly
    std::function<void()> stopped_leading;                 // returns when all leader work has ended
    std::function<void(const std::string&)> new_leader{};  // for the log
  };

  LeaderElector(ApiClient& client, Clock& clock, LeaderElectorOptions options, Callbacks callbacks);

  /// kInvalid unless lease_duration > renew_deadline > 1.2 * retry_period.
  static Result<void> validate(const LeaderElectorOptions& options);

  /// Acquires, renews, and after a loss acquires again, until stopped; releases the lease when it
  /// was held at the end (after stopped_leading has returned).
  void run(const std::stop_token& stop);

  bool leading() const;
  /// Until when nobody else can hold the lease; the past when we do not lead. Writes of leader work
  /// must be over by then.
  TimePoint valid_until() const;

 private:
  enum class Attempt { kHeld, kNotHeld };
  Attempt try_acquire_or_renew();
  void release();

  ApiClient& client_;
  Clock& clock_;
  const LeaderElectorOptions options_;
  const Callbacks callbacks_;
  std::atomic<TimePoint> valid_until_{TimePoint::min()};
  // Used by run() only.
  std::string observed_record_;  // serialized spec last seen
  std::string observed_holder_;
  std::string observed_version_;  // metadata.resourceVersion
  std::chrono::seconds observed_duration_{0};
  int observed_transitions_ = 0;
  std::string acquire_time_;
  TimePoint observed_at_{};
};

/// A Transport that refuses writes outside the lease and shortens their deadlines so that each is
/// over before the lease could pass to another. Reads pass. Thread-safe.
class FencedTransport final : public Transport {
 public:
  FencedTransport(Transport& inner, Clock& clock, std::function<TimePoint()> valid_until)
      : inner_(inner), clock_(clock), valid_until_(std::move(valid_until)) {}
  Result<Response> round_trip(const Request& request, const std::stop_token& stop) override;
  Result<Response> stream(const Request& request, const ChunkSink& sink,
                          const std::stop_token& stop) override;

 private:
  Transport& inner_;
  Clock& clock_;
  const std::function<TimePoint()> valid_until_;
};

}  // namespace lpp::k8s
