// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/protocol.h"
#include "base/clock.h"
#include "operation/executor.h"
#include "operation/operation.h"

/// What there is to be said of agents, for people and their monitoring: plain values.
namespace lpp::agent {

/// Whether a node's agent can be reckoned with.
enum class Presence {
  kConnected,
  kExpected,  // it may well come in a moment, and then tell what it has on record
  kAbsent,
};

/// What an agent has on record.
struct AgentWork {
  std::shared_ptr<const operation::Operation> operation{};
  operation::Progress::State state = operation::Progress::State::kWaiting;
  Duration age{};         // since we know of it
  std::int64_t gone = 0;  // of a removal: files and directories so far
};

/// What is to be said of a node's agent.
struct AgentState {
  std::string node{};
  std::string pod{};
  std::string program{};
  Presence presence = Presence::kAbsent;
  std::chrono::system_clock::time_point since{};  // of its session
  std::vector<Base> bases{};
  std::size_t works = 0;  // on record
  /// What it tells and is left out: so many, and some of them in words.
  std::size_t left_out = 0;
  std::vector<std::string> left_out_words{};
  std::string rival{};  // another pod that speaks for the node as well; "" = none
};

/// Of what an agent tells, one thing that is not believed or not understood.
struct LeftOut {
  std::string words{};
  std::optional<operation::Operation> operation{};  // as it is told
  bool may_count = false;                           // some day: it is an operation of that node
};

}  // namespace lpp::agent
