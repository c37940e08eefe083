// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/agent_executor.h"
#include "agent/identity.h"
#include "base/clock.h"
#include "base/result.h"

namespace lpp::agent {

/// What the server has seen, for metrics.
struct ServerCounts {
  std::size_t connections = 0;                      // open now
  std::map<std::string, std::uint64_t> requests{};  // that were served: hello, tell, poll
  /// By reason, connections that were cut and parts of messages that were left out included.
  std::map<std::string, std::uint64_t> refused{};
};

/// Speaks HTTPS with the agents on behalf of an AgentExecutor: POSTs with a token, see protocol.h.
/// One thread for all connections, since each agent keeps one open; two more ask who somebody is
/// and read messages. Everything is bounded, whoever connects: size and time of a request, requests
/// of a node, its connections, and those that have not proved anything. A peer that goes away is
/// noticed at once while its poll is held. Thread-safe.
class AgentServer {
 public:
  struct Settings {
    int port = 8443;                  // 0 = any free one
    std::size_t most_per_node = 2;    // connections; another one ends the oldest
    std::size_t most_unproved = 200;  // connections of who has not shown a good token yet
    Duration request_time = std::chrono::seconds(10);  // for a handshake, a request, an answer
    Duration idle_time = std::chrono::minutes(5);      // between two requests
    double requests_per_second = 20;                   // of a node, on average
    double burst = 200;
  };
  /// `leads` is asked right before an answer is written, and must be quick. What is passed in must
  /// outlive it. kUnavailable when the port cannot be had. Nobody is served before use().
  static Result<std::unique_ptr<AgentServer>> start(const Settings& settings,
                                                    AgentExecutor& executor,
                                                    Authenticate authenticate,
                                                    std::function<bool()> leads, Clock& clock);
  /// Stops.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  /// The certificate (PEM, with its chain) and its key for connections from now on. kInvalid: the
  /// former ones stay in use.
  Result<void> use(const std::string& certificate, const std::string& key);

  int port() const;
  ServerCounts counts() const;

  /// Cuts all connections and joins the threads. Repeatable.
  void stop();

 private:
  class Impl;
  explicit AgentServer(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace lpp::agent
