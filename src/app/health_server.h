// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace lpp::app {

/// One condition of being alive or ready. `check` is called on the server's threads, possibly on
/// several at once, and must answer from memory: it may not wait.
struct HealthCheck {
  std::string name{};
  std::function<Result<void>()> check{};
};

/// A page for people or programs. `render` is called as a check is.
struct HealthPage {
  std::string path{};
  std::string content_type{};
  std::function<std::string()> render{};
};

struct HealthEndpoints {
  std::vector<HealthCheck> live{};   // asked in order
  std::vector<HealthCheck> ready{};  // asked in order
  std::vector<HealthPage> pages{};
};

/// The HTTP endpoints for probes, monitoring and people.
///   /health  GET, HEAD, OPTIONS: 200 "OK", or 503 "health check <name> failed: <error>"
///   /ready   any method: 200 "Ready", or 503 "readiness check <name> failed: <error>"
///            (behaviour rule B1.5)
///   /livez, /readyz, /healthz (both)  GET, HEAD: as in Kubernetes' components: 200 "ok", or 500
///            with one line per check; ?verbose shows the lines in any case, ?exclude=NAME leaves
///            checks out
///   the pages  GET, HEAD
/// Other methods are answered 405. Bounded against any client: two threads, one request per
/// connection, three seconds and 16 KiB for it, at most 64 connections waiting. Thread-safe.
class HealthServer {
 public:
  /// Listens on the port (0 = any free one) on all addresses, IPv6 and IPv4. kUnavailable when the
  /// port cannot be had. The clock and what the endpoints use must outlive the server.
  /// `connection_time` is what a connection may take from accept to close.
  static Result<std::unique_ptr<HealthServer>> start(
      int port, HealthEndpoints endpoints, Clock& clock,
      Duration connection_time = std::chrono::seconds(3));

  /// Stops.
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  int port() const;

  /// Cuts all connections and joins the threads, within milliseconds unless a check hangs.
  /// Repeatable.
  void stop();

 private:
  class Impl;
  explicit HealthServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace lpp::app
