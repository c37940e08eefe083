// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "devcluster/node/process_host.h"

namespace lpp::devcluster {

/// One container of a pod on its node: what has happened to it so far.
struct ContainerRun {
  enum class State { kWaiting, kRunning, kTerminated };

  std::string name{};
  std::string image{};
  bool init = false;
  State state = State::kWaiting;
  std::string reason{};  // why it waits or ended
  std::string message{};
  ProcessHost::Id process = 0;  // the running one
  std::string container_id{};
  std::string started_at{};
  std::string finished_at{};
  int exit_code = 0;
  int signal = 0;
  int restarts = 0;
  nlohmann::json last_state = nlohmann::json::object();
  Duration back_off{0};  // before the next restart
  TimePoint began{};     // of the last run
  TimePoint ended{};     // of the last run
  std::string state_folder{};

  bool running() const { return state == State::kRunning; }
  bool ended_well() const { return state == State::kTerminated && exit_code == 0; }
};

/// The "state" of a container status.
nlohmann::json state_json(const ContainerRun& run);

/// What a pod's status is computed from.
struct PodFacts {
  std::string restart_policy{};
  std::string start_time{};
  const std::vector<ContainerRun>* init = nullptr;
  const std::vector<ContainerRun>* main = nullptr;
  // Set when something other than the containers decided: eviction, deadline, admission.
  std::string forced_phase{};
  std::string reason{};
  std::string message{};
};

/// "Pending", "Running", "Succeeded" or "Failed", from the containers and the restart policy.
std::string pod_phase(const PodFacts& facts);

/// Writes the facts into status (keeping what others put there, such as PodScheduled). False if
/// nothing changed. `now` is the time for conditions that change.
bool write_status(const PodFacts& facts, std::string_view now, nlohmann::json& status);

}  // namespace lpp::devcluster
