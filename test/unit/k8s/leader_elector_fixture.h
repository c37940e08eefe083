// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/skipping_clock.h"
#include "k8s/leader_elector.h"

/// An API server with one Lease, and an elector on the test's own thread.
namespace lpp::testing {

using namespace lpp::k8s;  // for tests only
using namespace std::chrono_literals;
using nlohmann::json;

inline constexpr const char* kPath = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";

inline LeaderElectorOptions options_for(const std::string& identity) {
  return {.ns = "ns", .lease_name = "lock", .identity = identity};
}

inline json lease_of(const std::string& holder, int seconds = 15, int transitions = 3) {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", "lock"}, {"namespace", "ns"}}},
          {"spec",
           {{"holderIdentity", holder},
            {"leaseDurationSeconds", seconds},
            {"acquireTime", "2020-01-01T00:00:00.000000Z"},
            {"renewTime", "2020-01-01T00:00:00.000000Z"},
            {"leaseTransitions", transitions}}}};
}

/// An API server with one Lease in memory. Thread-safe. Hooks stand in for faults and for other
/// people; they run without the lock and may use the server.
class LeaseServer final : public Transport {
 public:
  /// Called before a request is handled; an answer replaces the handling.
  std::function<std::optional<Result<Response>>(const Request&)> before;
  /// Called after a request was handled, with its status; may replace the answer.
  std::function<std::optional<Result<Response>>(const Request&, int status)> after;

  /// As somebody with kubectl would: a new version each time; null deletes.
  void edit(json lease) {
    MutexLock lock(mutex_);
    if (!lease.is_null()) lease["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease_ = std::move(lease);
  }
  json lease() const {
    MutexLock lock(mutex_);
    return lease_;
  }
  std::string holder() const {
    const json lease = this->lease();
    return lease.is_null() ? "" : lease["spec"]["holderIdentity"].get<std::string>();
  }
  std::vector<Request> requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }
  std::string methods() const {
    std::string text;
    for (const auto& request : requests()) text += request.method + " ";
    return text;
  }
  void forget_requests() {
    MutexLock lock(mutex_);
    requests_.clear();
  }

  Result<Response> round_trip(const Request& request, const std::stop_token&) override {
    {
      MutexLock lock(mutex_);
      requests_.push_back(request);
    }
    if (before) {
      if (auto answer = before(request)) return *std::move(answer);
    }
    const Response response = handle(request);
    if (after) {
      if (auto answer = after(request, response.status)) return *std::move(answer);
    }
    return response;
  }
  Result<Response> stream(const Request&, const ChunkSink&, const std::stop_token&) override {
    return cancelled();
  }

 private:
  Response handle(const Request& request) {
    MutexLock lock(mutex_);
    const bool collection = request.target == kPath;
    if (!collection && request.target != std::string(kPath) + "/lock") return {.status = 400};
    if (request.method == "POST" && collection) {
      if (!lease_.is_null())
        return {.status = 409, .body = R"({"kind":"Status","reason":"AlreadyExists"})"};
      return store(json::parse(request.body), 201);
    }
    if (lease_.is_null()) return {.status = 404};
    if (request.method == "GET") return {.status = 200, .body = lease_.dump()};
    if (request.method != "PUT") return {.status = 405};
    json lease = json::parse(request.body);
    if (lease["metadata"].value("resourceVersion", "") != lease_["metadata"]["resourceVersion"]) {
      return {.status = 409, .body = R"({"kind":"Status","reason":"Conflict"})"};
    }
    return store(std::move(lease), 200);
  }
  Response store(json lease, int status) LPP_REQUIRES(mutex_) {
    lease["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease_ = std::move(lease);
    return {.status = status, .body = lease_.dump()};
  }

  mutable Mutex mutex_;
  json lease_ LPP_GUARDED_BY(mutex_);
  int version_ LPP_GUARDED_BY(mutex_) = 0;
  std::vector<Request> requests_ LPP_GUARDED_BY(mutex_);
};

inline bool is_write(const Request& request) { return request.method != "GET"; }

/// One elector on the test's own thread; time passes when it sleeps. Hooks end the run.
struct ElectionFixture {
  ElectionFixture() {
    callbacks.started_leading = [this] {
      log += "start ";
      leading_in_callback = elector->leading();
      if (on_start) on_start();
    };
    callbacks.stopped_leading = [this] {
      log += "stop ";
      stopped_at = clock.now();
      valid_when_stopped = elector->valid_until();
      CHECK_FALSE(elector->leading());
      if (on_stop) on_stop();
    };
    callbacks.new_leader = [this](const std::string& identity) { log += "(" + identity + ") "; };
    elector.emplace(client, clock, options_for("me"), callbacks);
  }

  void run() { elector->run(stop.get_token()); }
  /// Stops after n requests have been handled, the release's not counted.
  void stop_after_requests(std::size_t n) {
    server.after = [this, n](const Request&, int) -> std::optional<Result<Response>> {
      if (server.requests().size() == n) stop.request_stop();
      return std::nullopt;
    };
  }

  SkippingClock clock;
  LeaseServer server;
  ApiClient client{server, clock, {}};
  LeaderElector::Callbacks callbacks;
  std::string log;
  std::function<void()> on_start;
  std::function<void()> on_stop;
  bool leading_in_callback = false;
  TimePoint stopped_at{};
  TimePoint valid_when_stopped{};
  std::stop_source stop;
  std::optional<LeaderElector> elector;
};

}  // namespace lpp::testing
