// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "app/probe_answers.h"
#include "base/clock.h"
#include "base/result.h"

namespace lpp::app {

/// Answers probes, monitoring and people over HTTP, as answer_probe() says. Bounded against any
/// client: two threads, one request per connection, three seconds and 16 KiB for it, at most 64
/// connections waiting. Thread-safe.
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
