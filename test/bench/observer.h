// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "k8s/api_client.h"
#include "k8s/reflector.h"

namespace lpp::bench {

/// Follows the claims of one namespace, their volumes and the helper pods by watches, and notes
/// when each became what. Thread-safe after start(); times are of the steady clock, at the arrival
/// of the watch's event.
class Observer {
 public:
  struct Times {
    std::optional<TimePoint> bound{};
    std::optional<TimePoint> volume_gone{};
  };

  /// Helper pods are the pods of `helper_ns` that are not there yet; those that are belong to
  /// others. The client and the clock must outlive it.
  Observer(k8s::ApiClient& client, Clock& clock, const std::string& ns,
           const std::string& helper_ns);
  ~Observer();

  /// Returns when the first lists are there.
  void start();

  /// Waits until `count` claims of the namespace are Bound; false at the deadline.
  bool wait_bound(std::size_t count, TimePoint deadline);
  /// Waits until no claim of the namespace and no volume of one is left.
  bool wait_gone(TimePoint deadline);
  bool wait_no_helper_pods(TimePoint deadline);

  Times times(const std::string& claim) const;
  std::size_t bound() const;

 private:
  class Sink;

  bool wait(TimePoint deadline, const std::function<bool()>& condition) LPP_REQUIRES(mutex_);
  void claim_seen(const nlohmann::json& object, bool exists);
  void volume_seen(const nlohmann::json& object, bool exists);
  void pod_seen(const nlohmann::json& object, bool exists);
  void add_watch(k8s::ApiClient& client, const k8s::ReflectorOptions& options,
                 std::function<void(const nlohmann::json&, bool)> seen);

  Clock& clock_;
  const std::string ns_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::size_t synced_ LPP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, bool> claims_ LPP_GUARDED_BY(mutex_);  // name: is bound
  std::size_t bound_ LPP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, std::string> volumes_ LPP_GUARDED_BY(mutex_);  // name: claim
  std::unordered_set<std::string> pods_ LPP_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Times> times_ LPP_GUARDED_BY(mutex_);

  std::vector<std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<k8s::Reflector>> reflectors_;
  std::vector<std::jthread> threads_;
};

}  // namespace lpp::bench
