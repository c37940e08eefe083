// SPDX-License-Identifier: Apache-2.0
#include "helperpod/outcome.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"
#include "helperpod/said.h"

namespace lpp::helperpod {

using operation::Progress;

namespace {

/// An Event's note holds 1 KiB; the end of an output says most about why it ended.
constexpr std::size_t kMaxOutput = 700;

std::string tail_of(std::string_view text) {
  text = trim(text);
  if (text.size() <= kMaxOutput) return std::string(text);
  std::size_t start = text.size() - kMaxOutput;
  while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) ++start;
  return "..." + std::string(text.substr(start));
}

void append(std::string& text, std::string_view part) {
  if (part.empty()) return;
  if (!text.empty()) text += ": ";
  text += part;
}

/// What the container that did the work says.
Said said_in(const k8s::Pod& pod) {
  for (const auto& container : pod.containers) {
    if (!container.terminated) continue;
    Said said = read_message(container.terminated_message);
    const bool says_something = said.directory != operation::Directory::kUnknown ||
                                said.kept != operation::Kept{} || said.space;
    if (says_something) return said;
  }
  return {};
}

/// A word for counting; what is usual for a script that failed says nothing.
std::string failure_reason(const k8s::Pod& pod, const std::string& container_reason) {
  if (!pod.reason.empty()) return pod.reason;
  if (container_reason.empty() || container_reason == "Error") return "ScriptFailed";
  return container_reason;
}

/// The container never ran, so that it has no log.
bool never_started(std::string_view reason) {
  return reason == "StartError" || reason == "ContainerCannotRun";
}

bool failed(const k8s::ContainerStatus& container) {
  return container.terminated &&
         (container.exit_code != 0 || never_started(container.terminated_reason));
}

Outcome failure(const k8s::Pod& pod) {
  Outcome outcome;
  outcome.progress.state = Progress::State::kFailed;
  // The pod's own reason (Evicted, DeadlineExceeded, NodeAffinity ...) is the cause; what the
  // container left behind is then a consequence.
  std::string text = pod.reason;
  append(text, tail_of(pod.message));

  const auto container = std::find_if(pod.containers.begin(), pod.containers.end(), failed);
  if (container != pod.containers.end()) {
    outcome.container = container->name;
    outcome.exit_code = container->exit_code;
    std::string how;
    if (pod.containers.size() > 1) how = "container " + container->name + ": ";
    how += "exit code " + std::to_string(container->exit_code);
    const std::string& reason = container->terminated_reason;
    if (!reason.empty() && reason != "Error") how += " (" + reason + ")";
    append(text, how);
    const Said said = read_message(container->terminated_message);
    const std::string& message = said.rest;
    outcome.progress.space = said.space;
    // Else nobody knows what it has left.
    if (said.directory == operation::Directory::kAbsent) {
      outcome.progress.directory = said.directory;
    }
    outcome.output = tail_of(message);
    append(text, outcome.output);
    outcome.log_wanted = message.empty() && !never_started(reason);
    outcome.cannot_run = never_started(reason);
  }
  outcome.progress.reason = failure_reason(
      pod, container == pod.containers.end() ? std::string() : container->terminated_reason);
  outcome.progress.message = "helper pod failed";
  append(outcome.progress.message, text);
  return outcome;
}

/// Its kubelet has it in hand, and nothing holds it back.
bool is_about_to_start(const k8s::ContainerStatus& container) {
  const std::string& reason = container.waiting_reason;
  return reason == "ContainerCreating" || reason == "PodInitializing";
}

/// Why the pod does not get on; nothing when it does.
struct Stuck {
  std::string reason{};
  std::string message{};
};

Stuck stuck_because(const k8s::Pod& pod) {
  for (const auto& container : pod.containers) {
    const std::string& reason = container.waiting_reason;
    if (reason.empty() || is_about_to_start(container)) continue;
    std::string text = "helper pod cannot start: " + reason;
    append(text, tail_of(container.waiting_message));
    return {reason, text};
  }
  for (const auto& condition : pod.conditions) {
    if (condition.type != "PodScheduled" || condition.status != "False") continue;
    std::string text = "helper pod cannot be scheduled";
    append(text, condition.reason == "Unschedulable" ? "" : condition.reason);
    append(text, tail_of(condition.message));
    return {"Unschedulable", text};
  }
  if (pod.phase == "Unknown") {
    return {"NodeUnknown", "helper pod's state is unknown: its node does not report"};
  }
  return {};
}

}  // namespace

Outcome observe(const k8s::Pod& pod) {
  if (pod.phase == "Succeeded") {
    const Said said = said_in(pod);
    return Outcome{.progress = {.state = Progress::State::kSucceeded,
                                .directory = said.directory,
                                .kept = said.kept,
                                .space = said.space,
                                .usage = said.usage}};
  }
  if (pod.phase == "Failed") return failure(pod);
  Stuck stuck = stuck_because(pod);
  return Outcome{.progress = {.state = Progress::State::kRunning,
                              .message = std::move(stuck.message),
                              .reason = std::move(stuck.reason)}};
}

bool has_started(const k8s::Pod& pod) {
  if (pod.phase != "Pending") return true;
  return std::any_of(pod.containers.begin(), pod.containers.end(), [](const auto& container) {
    return container.terminated || container.waiting_reason.empty();
  });
}

bool over(const k8s::Pod& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; }

}  // namespace lpp::helperpod
