// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/agent_stats.h"
#include "base/clock.h"
#include "base/result.h"
#include "k8s/transport.h"

namespace lpp::agent {

/// One address of a controller.
struct Way {
  std::string name{};  // for people
  std::function<Result<std::unique_ptr<k8s::Transport>>()> connect{};
};

/// Keeps an agent's session with the controller that leads: looks for it, begins a session, takes
/// its orders, tells it what changes, and begins anew whenever that ends. Whatever is told is told
/// again until the controller has answered that it has it.
///
/// run() belongs to one thread, the rest is thread-safe. Agent and clock must outlive it.
class AgentClient {
 public:
  struct Options {
    /// All addresses at which a controller may be, in the order in which to try them. Asked for
    /// anew after each round without a session. May wait for a name server, not beyond the stop.
    std::function<Result<std::vector<Way>>(const std::stop_token&)> find{};
    std::string program{};  // version of the agent, for people
  };

  AgentClient(Agent& agent, Clock& clock, Options options)
      : agent_(agent), clock_(clock), options_(std::move(options)) {}

  /// Until the stop.
  void run(const std::stop_token& stop);

  /// Whether there is a session whose controller knows everything.
  bool connected() const { return connected_; }
  const SessionStats& stats() const { return stats_; }

 private:
  class Session;

  struct Ended {
    Error why{};
    bool was_connected = false;
  };
  Ended hold_session(const Way& way, const std::stop_token& stop);
  /// Holds one, and counts it.
  Ended have_session(const Way& way, const std::stop_token& stop);
  void wait(const std::stop_token& stop);

  Agent& agent_;
  Clock& clock_;
  const Options options_;
  std::atomic<bool> connected_ = false;
  SessionStats stats_;
  int waits_ = 0;  // since a session has held
  std::string told_trouble_{};
};

/// Before the n-th attempt after the first: doubles from 0.2 s up to 10 s, less a random part.
Duration delay_before(int attempt);

}  // namespace lpp::agent
