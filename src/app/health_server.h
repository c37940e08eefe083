// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "app/probe_answers.h"
#include "base/clock.h"
#include "base/result.h"

namespace lpp::app {

/// Answers probes, monitoring and people over HTTP, as answer_probe() says. Bounded against any
/// client: two threads, one request per connection, three seconds and 16 KiB for it, at most 64
/// connections waiting. Thread-safe.
class HealthServer {
 public:
  struct Settings {
    int port = 0;           // 0 = any free one
    std::string address{};  // as of listen_on()
    /// What a connection may take from accept to close.
    Duration connection_time = std::chrono::seconds(3);
  };
  /// Listens. kUnavailable when the port cannot be had. The clock and what the endpoints use must
  /// outlive the server.
  static Result<std::unique_ptr<HealthServer>> start(const Settings& settings,
                                                     HealthEndpoints endpoints, Clock& clock);

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
