// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/pod_runner.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "devcluster/json_names.h"
#include "harness/file_text.h"

namespace lpp::devcluster {

using nlohmann::json;
using std::chrono::seconds;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kMountBackOff{500};
constexpr seconds kMostMountBackOff{10};
constexpr std::size_t kMessageLimit = 4096;
constexpr std::size_t kFallbackLimit = 2048;

std::vector<ContainerRun> runs_of(const json& pod, std::string_view list, bool init) {
  std::vector<ContainerRun> runs;
  for (const json& container : array_at(pod, {"spec", list})) {
    ContainerRun run;
    run.name = text_at(container, {"name"});
    run.image = text_at(container, {"image"});
    run.init = init;
    runs.push_back(std::move(run));
  }
  return runs;
}

Duration grace_of(const json& pod) {
  return seconds(number_at(pod, {"metadata", "deletionGracePeriodSeconds"},
                           number_at(pod, {"spec", "terminationGracePeriodSeconds"}, 30)));
}

}  // namespace

void sooner(PodRunner::Next& next, Duration delay) {
  if (!next.again.has_value() || delay < *next.again) next.again = delay;
}

PodRunner::PodRunner(NodeServices& services, const json& pod)
    : services_(services),
      uid_(uid_of(pod)),
      state_folder_(services.state_folder + "/pods/" + uid_),
      accepted_(services.clock.now()),
      restart_policy_(text_at(pod, {"spec", "restartPolicy"}, "Always")),
      start_time_(format_rfc3339(services.clock.wall_now())),
      init_(runs_of(pod, "initContainers", true)),
      main_(runs_of(pod, "containers", false)) {
  std::error_code error;
  fs::create_directories(state_folder_, error);
  set_waiting(init_.empty() ? "ContainerCreating" : "PodInitializing");
}

std::vector<ContainerRun*> PodRunner::all_runs() {
  std::vector<ContainerRun*> all;
  for (ContainerRun& run : init_) all.push_back(&run);
  for (ContainerRun& run : main_) all.push_back(&run);
  return all;
}

bool PodRunner::any_running() const {
  const auto running = [](const ContainerRun& run) { return run.running(); };
  return std::any_of(init_.begin(), init_.end(), running) ||
         std::any_of(main_.begin(), main_.end(), running);
}

void PodRunner::set_waiting(std::string_view reason, const std::string& message) {
  for (ContainerRun* run : all_runs()) {
    if (run->state != ContainerRun::State::kWaiting || run->restarts > 0) continue;
    run->reason = reason;
    run->message = message;
  }
}

const json* PodRunner::spec_of(const json& pod, const ContainerRun& run) const {
  for (const json& container :
       array_at(pod, {"spec", run.init ? "initContainers" : "containers"})) {
    if (text_at(container, {"name"}) == run.name) return &container;
  }
  return nullptr;
}

std::string PodRunner::log_path(std::string_view container, bool previous) const {
  for (const auto* list : {&init_, &main_}) {
    for (const ContainerRun& run : *list) {
      if (run.name != container) continue;
      const int number = run.restarts - (previous ? 1 : 0);
      if (number < 0) return {};
      return state_folder_ + "/" + run.name + "/" + std::to_string(number) + ".log";
    }
  }
  return {};
}

void PodRunner::on_exit(ProcessHost::Id id, const ProcessExit& exit) {
  exits_.insert_or_assign(id, PendingExit{exit, services_.clock.now()});
}

void PodRunner::collect_exits(const json* pod, const NodeFaults& faults, Next& next) {
  static const json gone = json::object();
  for (ContainerRun* run : all_runs()) {
    if (!run->running()) continue;
    const auto ended = exits_.find(run->process);
    if (ended == exits_.end()) continue;
    const Duration left = ended->second.at + faults.report_delay - services_.clock.now();
    if (left > Duration::zero()) {
      sooner(next, left);
      continue;
    }
    finish(pod == nullptr ? gone : *pod, *run, ended->second.exit);
    exits_.erase(ended);
  }
}

void PodRunner::finish(const json& pod, ContainerRun& run, const ProcessExit& exit) {
  run.state = ContainerRun::State::kTerminated;
  run.process = 0;
  run.ended = services_.clock.now();
  run.finished_at = now_text();
  run.exit_code = exit.code;
  run.signal = exit.signal;
  run.reason = !exit.started ? "StartError" : exit.code == 0 ? "Completed" : "Error";
  run.message =
      exit.started
          ? lpp::testing::text_of(termination_file(run.state_folder)).substr(0, kMessageLimit)
          : exit.message;
  const json* spec = spec_of(pod, run);
  if (run.message.empty() && exit.code != 0 && spec != nullptr &&
      text_at(*spec, {"terminationMessagePolicy"}) == "FallbackToLogsOnError") {
    run.message = BoundedLog::read(log_path(run.name, false));
    if (run.message.size() > kFallbackLimit)
      run.message.erase(0, run.message.size() - kFallbackLimit);
  }
  if (!exit.started) services_.events.warning(pod, "Failed", "Error: " + exit.message);
}

PodRunner::Next PodRunner::sync(const json* pod, const NodeFaults& faults) {
  Next next;
  collect_exits(pod, faults, next);
  if (pod == nullptr) {  // removed without waiting for us
    if (any_running()) {
      if (!killed_) signal_all(nullptr, SIGKILL);
      killed_ = true;
      return next;
    }
    std::error_code error;
    fs::remove_all(state_folder_, error);
    return {.done = true};
  }
  if (is_deleting(*pod)) {
    Next step = end(*pod, Ending::kDeleted, grace_of(*pod));
    if (next.again) sooner(step, *next.again);
    return step;
  }
  if (over_) return {};
  Next step = go_on(*pod, faults);
  if (next.again) sooner(step, *next.again);
  return step;
}

PodRunner::Next PodRunner::go_on(const json& pod, const NodeFaults& faults) {
  Next next;
  if (ending_ == Ending::kForced) return end(pod, Ending::kForced, forced_grace_);
  if (!evicted_.empty()) {
    services_.events.warning(pod, "Evicted", evicted_);
    return force(pod, "Evicted", evicted_, Duration::zero());
  }
  if (const auto limit = number_at(pod, {"spec", "activeDeadlineSeconds"}, 0); limit > 0) {
    const Duration left = accepted_ + seconds(limit) - services_.clock.now();
    if (left <= Duration::zero()) {
      const std::string why = "Pod was active on the node longer than the specified deadline";
      services_.events.normal(pod, "DeadlineExceeded", why);
      return force(pod, "DeadlineExceeded", why, grace_of(pod));
    }
    sooner(next, left);
  }
  if (const Duration left = accepted_ + faults.start_delay - services_.clock.now();
      left > Duration::zero()) {
    if (!faults.silent_start) report(pod);  // that it has the pod in hand
    sooner(next, left);
    return next;
  }
  if (!volumes_.has_value() && !mount(pod, next)) {
    report(pod);
    return next;
  }
  bool ready_for_main = true;
  for (ContainerRun& run : init_) {
    if (run.ended_well()) continue;
    ready_for_main = false;
    if (const json* spec = spec_of(pod, run)) advance(pod, *spec, run, faults, next);
    break;  // one after the other
  }
  if (ready_for_main) {
    for (ContainerRun& run : main_) {
      if (const json* spec = spec_of(pod, run)) advance(pod, *spec, run, faults, next);
    }
  }
  report(pod, faults, next);
  return next;
}

bool PodRunner::mount(const json& pod, Next& next) {
  const TimePoint now = services_.clock.now();
  if (now < mount_again_) {
    sooner(next, mount_again_ - now);
    return false;
  }
  const ObjectPtr node = services_.registry.find("nodes", "", services_.name);
  static const json no_node = json::object();
  auto mounted = mount_volumes(pod, {.registry = services_.registry,
                                     .disk = services_.disk,
                                     .node = node == nullptr ? no_node : *node,
                                     .state_folder = state_folder_});
  if (mounted.ok()) {
    volumes_ = *std::move(mounted);
    return true;
  }
  services_.events.warning(pod, "FailedMount", mounted.error().message);
  mount_back_off_ = mount_back_off_ == Duration::zero()
                        ? Duration(kMountBackOff)
                        : std::min<Duration>(mount_back_off_ * 2, kMostMountBackOff);
  mount_again_ = now + mount_back_off_;
  sooner(next, mount_back_off_);
  return false;
}

void PodRunner::signal_all(const json* pod, int signal_number) {
  for (const ContainerRun* run : all_runs()) {
    if (!run->running()) continue;
    if (pod != nullptr) {
      services_.events.normal(*pod, "Killing", "Stopping container " + run->name);
    }
    services_.processes.signal(run->process, signal_number);
  }
}

PodRunner::Next PodRunner::force(const json& pod, std::string reason, std::string message,
                                 Duration grace) {
  forced_reason_ = std::move(reason);
  forced_message_ = std::move(message);
  forced_grace_ = grace;
  return end(pod, Ending::kForced, grace);
}

PodRunner::Next PodRunner::end(const json& pod, Ending why, Duration grace) {
  const TimePoint now = services_.clock.now();
  // A deletion during an eviction or after a deadline brings its own grace period.
  if (ending_ == Ending::kNo) ending_since_ = now;
  if (ending_ != Ending::kDeleted) ending_ = why;
  if (any_running()) {
    Next next;
    if (!terminated_) {
      signal_all(&pod, SIGTERM);
      terminated_ = true;
    }
    const Duration left = ending_since_ + grace - now;
    if (left > Duration::zero()) {
      sooner(next, left);
    } else if (!killed_) {
      signal_all(nullptr, SIGKILL);
      killed_ = true;
    }
    return next;
  }
  if (!over_) report(pod);
  if (!is_deleting(pod) || removed_) return {};
  // The last word of the node: the object may go. Finalizers still hold it back.
  const auto reply =
      services_.registry.remove({"pods", namespace_of(pod), name_of(pod)},
                                {.grace_period = seconds(0), .uid_precondition = uid_});
  removed_ = reply.ok() || reply.not_found();
  if (!removed_) log::debug("pod not removed: {}", reply.message());
  return {};
}

void PodRunner::report(const json& pod) {
  Next next;
  report(pod, NodeFaults{}, next);
}

std::vector<ContainerRun> PodRunner::told_of(const std::vector<ContainerRun>& runs, Duration delay,
                                             Next& next) const {
  std::vector<ContainerRun> told = runs;
  for (ContainerRun& run : told) {
    const Duration left = run.began + delay - services_.clock.now();
    if (!run.running() || left <= Duration::zero()) continue;
    sooner(next, left);
    run.state = ContainerRun::State::kWaiting;
    run.reason = "ContainerCreating";
  }
  return told;
}

void PodRunner::report(const json& pod, const NodeFaults& faults, Next& next) {
  Next later;
  const auto init = told_of(init_, faults.report_delay, later);
  const auto main = told_of(main_, faults.report_delay, later);
  if (later.again) {
    sooner(next, *later.again);
    if (faults.silent_start) return;
  }
  PodFacts facts;
  facts.restart_policy = restart_policy_;
  facts.start_time = start_time_;
  facts.init = &init;
  facts.main = &main;
  if (!forced_reason_.empty() && !any_running()) {
    facts.forced_phase = "Failed";
    facts.reason = forced_reason_;
    facts.message = forced_message_;
  }
  const auto write = [&](json& stored) {
    return uid_of(stored) == uid_ && write_status(facts, now_text(), stored["status"]);
  };
  const auto reply = services_.registry.modify({"pods", namespace_of(pod), name_of(pod)}, write,
                                               {.subresource = "status"});
  if (!reply.ok()) {
    if (!reply.not_found()) log::debug("pod status not stored: {}", reply.message());
    return;
  }
  const std::string phase = pod_phase(facts);
  over_ = phase == "Succeeded" || phase == "Failed";
}

}  // namespace lpp::devcluster
