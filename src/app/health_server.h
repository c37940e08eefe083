#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace lpp::app {

/// One condition of readiness. `check` is called on the server's threads, possibly on several at
/// once, and must answer from memory: it may not wait.
struct ReadinessCheck {
  std::string name{};
  std::function<Result<void>()> check{};
};

/// The HTTP endpoints for probes (behaviour rule B1.5), in plain text:
///   /health  GET, HEAD, OPTIONS: 200 "OK"; other methods 405
///   /ready   any method: 200 "Ready", or 503 "readiness check <name> failed: <error>"
/// Bounded against any client: two threads, one request per connection, three seconds and 16 KiB
/// for it, at most 64 connections waiting. Thread-safe.
class HealthServer {
 public:
  /// Listens on the port (0 = any free one) on all addresses, IPv6 and IPv4. kUnavailable when the
  /// port cannot be had. The checks are asked in order; the clock must outlive the server.
  /// `connection_time` is what a connection may take from accept to close.
  static Result<std::unique_ptr<HealthServer>> start(
      int port, std::vector<ReadinessCheck> checks, Clock& clock,
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
