// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/pod_status.h"

#include <algorithm>
#include <utility>

#include "devcluster/json_names.h"

namespace lpp::devcluster {

using nlohmann::json;
using State = ContainerRun::State;

namespace {

json container_status(const ContainerRun& run) {
  json status{{"name", run.name},
              {"image", run.image},
              {"imageID", run.container_id.empty() ? "" : "busybox-root"},
              {"ready", run.init ? run.ended_well() : run.running()},
              {"started", run.running()},
              {"restartCount", run.restarts},
              {"state", state_json(run)},
              {"lastState", run.last_state}};
  if (!run.container_id.empty()) status["containerID"] = run.container_id;
  return status;
}

std::string names_of(const std::vector<ContainerRun>& runs, bool (*chosen)(const ContainerRun&)) {
  std::string names;
  for (const ContainerRun& run : runs) {
    if (chosen(run)) names += (names.empty() ? "" : " ") + run.name;
  }
  return "[" + names + "]";
}

void write_conditions(const PodFacts& facts, const std::string& phase, std::string_view now,
                      json& conditions) {
  const auto& init = *facts.init;
  const auto& main = *facts.main;
  const auto ended_well = [](const ContainerRun& run) { return run.ended_well(); };
  const bool initialized = std::all_of(init.begin(), init.end(), ended_well);
  const bool ready = phase == "Running" && std::all_of(main.begin(), main.end(),
                                                       [](const auto& r) { return r.running(); });
  const bool sandbox =
      std::any_of(main.begin(), main.end(), [](const auto& r) { return r.running(); }) ||
      std::any_of(init.begin(), init.end(), [](const auto& r) { return r.running(); });
  std::string reason;
  std::string message;
  if (!ready) {
    reason = phase == "Succeeded" ? "PodCompleted"
             : phase == "Failed"  ? "PodFailed"
                                  : "ContainersNotReady";
    if (reason == "ContainersNotReady") {
      message = "containers with unready status: " +
                names_of(main, [](const ContainerRun& run) { return !run.running(); });
    }
  }
  set_condition(conditions, "PodReadyToStartContainers", sandbox, "", "", now);
  if (initialized) {
    set_condition(conditions, "Initialized", true, phase == "Succeeded" ? "PodCompleted" : "", "",
                  now);
  } else {
    set_condition(conditions, "Initialized", false, "ContainersNotInitialized",
                  "containers with incomplete status: " +
                      names_of(init, [](const ContainerRun& run) { return !run.ended_well(); }),
                  now);
  }
  set_condition(conditions, "Ready", ready, reason, message, now);
  set_condition(conditions, "ContainersReady", ready, reason, message, now);
}

}  // namespace

json state_json(const ContainerRun& run) {
  if (run.state == State::kRunning) return {{"running", {{"startedAt", run.started_at}}}};
  if (run.state == State::kWaiting) {
    json waiting{{"reason", run.reason}};
    if (!run.message.empty()) waiting["message"] = run.message;
    return {{"waiting", std::move(waiting)}};
  }
  json ended{{"exitCode", run.exit_code},
             {"reason", run.reason},
             {"startedAt", run.started_at},
             {"finishedAt", run.finished_at},
             {"containerID", run.container_id}};
  if (run.signal != 0) ended["signal"] = run.signal;
  if (!run.message.empty()) ended["message"] = run.message;
  return {{"terminated", std::move(ended)}};
}

std::string pod_phase(const PodFacts& facts) {
  if (!facts.forced_phase.empty()) return facts.forced_phase;
  const bool never = facts.restart_policy == "Never";
  bool init_done = true;
  for (const ContainerRun& run : *facts.init) {
    if (run.ended_well()) continue;
    init_done = false;
    if (never && run.state == State::kTerminated) return "Failed";
  }
  if (!init_done) return "Pending";
  bool all_ended = true;
  bool all_well = true;
  bool any_started = false;
  for (const ContainerRun& run : *facts.main) {
    const bool ended = run.state == State::kTerminated;
    all_ended = all_ended && ended;
    all_well = all_well && run.ended_well();
    any_started = any_started || run.running() || ended || run.restarts > 0;
  }
  if (all_ended && facts.restart_policy != "Always") {
    if (all_well) return "Succeeded";
    if (never) return "Failed";
  }
  return any_started ? "Running" : "Pending";
}

bool write_status(const PodFacts& facts, std::string_view now, json& status) {
  const json before = status;
  const std::string phase = pod_phase(facts);
  status["phase"] = phase;
  status["startTime"] = facts.start_time;
  status["hostIP"] = "127.0.0.1";
  for (const auto& [field, text] :
       {std::pair{"reason", facts.reason}, std::pair{"message", facts.message}}) {
    if (!text.empty()) {
      status[field] = text;
    } else {
      status.erase(field);
    }
  }
  const auto list = [](const std::vector<ContainerRun>& runs) {
    json statuses = json::array();
    for (const ContainerRun& run : runs) statuses.push_back(container_status(run));
    return statuses;
  };
  if (!facts.init->empty()) status["initContainerStatuses"] = list(*facts.init);
  status["containerStatuses"] = list(*facts.main);
  write_conditions(facts, phase, now, status["conditions"]);
  return status != before;
}

}  // namespace lpp::devcluster
