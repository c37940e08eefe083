// SPDX-License-Identifier: Apache-2.0
#include "helperpod/outcome.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace lpp::helperpod {
namespace {

using operation::Directory;
using operation::Progress;
using State = Progress::State;

k8s::Pod pod(std::string phase, std::vector<k8s::ContainerStatus> containers = {}) {
  k8s::Pod result;
  result.phase = std::move(phase);
  result.containers = std::move(containers);
  return result;
}

k8s::ContainerStatus ended(int exit_code, std::string reason, std::string message) {
  return {.name = "helper-pod",
          .terminated = true,
          .exit_code = exit_code,
          .terminated_reason = std::move(reason),
          .terminated_message = std::move(message)};
}

k8s::ContainerStatus waiting(std::string reason, std::string message = {}) {
  return {.name = "helper-pod",
          .waiting_reason = std::move(reason),
          .waiting_message = std::move(message)};
}

void check(const k8s::Pod& seen, State state, const std::string& message, bool log_wanted = false) {
  const Outcome outcome = observe(seen);
  CHECK(outcome.progress.state == state);
  CHECK(outcome.progress.message == message);
  CHECK(outcome.log_wanted == log_wanted);
  if (log_wanted) CHECK(outcome.container == "helper-pod");
}

TEST_CASE("a pod that succeeded succeeded, whatever else it says") {
  check(pod("Succeeded"), State::kSucceeded, "");
  check(pod("Succeeded", {ended(0, "Completed", "done")}), State::kSucceeded, "");
}

TEST_CASE("a script that fails may tell the space that there is, which is no text for people") {
  const auto full = pod("Failed", {ended(4, "Error", "space: size=100 free=3\nno room for 5")});
  check(full, State::kFailed, "helper pod failed: exit code 4: no room for 5");
  CHECK(observe(full).progress.space == operation::Space{.size = 100, .free = 3});
  check(pod("Failed", {ended(1, "Error", "space: size=100 free=3")}), State::kFailed,
        "helper pod failed: exit code 1", true);
}

TEST_CASE("what became of the directory is the last line that a script left") {
  for (const auto& row : std::vector<std::pair<std::string, Directory>>{
           {"directory: made", Directory::kMade},
           {"directory: found\n", Directory::kFound},
           {"directory: removed\r\n\n", Directory::kRemoved},
           {"directory: made\nrmdir: not empty\n  directory: kept  \n", Directory::kKept},
           {"directory: made\ndone", Directory::kUnknown},
           {"the directory: made", Directory::kUnknown},
           {"directory: gone", Directory::kUnknown},
           {"", Directory::kUnknown}}) {
    CAPTURE(row.first);
    const auto& [message, directory] = row;
    CHECK(observe(pod("Succeeded", {ended(0, "Completed", message)})).progress.directory ==
          directory);
    // A script that failed has not ended what it did.
    CHECK(observe(pod("Failed", {ended(1, "Error", message)})).progress.directory ==
          Directory::kUnknown);
  }
  CHECK(observe(pod("Succeeded", {{.name = "sidecar"}, ended(0, "", "directory: kept")}))
            .progress.directory == Directory::kKept);
}

TEST_CASE("what a script says of its checks alone is heard") {
  const Outcome outcome =
      observe(pod("Succeeded", {ended(0, "Completed", "checked: reserve overcommit")}));
  CHECK(outcome.progress.kept == operation::Kept{.reserve = true, .overcommit = true});
}

TEST_CASE("the cause of a failure is counted under one word") {
  k8s::Pod evicted = pod("Failed");
  evicted.reason = "Evicted";
  CHECK(observe(evicted).progress.reason == "Evicted");
  CHECK(observe(pod("Failed", {ended(1, "Error", "x")})).progress.reason == "ScriptFailed");
  CHECK(observe(pod("Failed", {ended(137, "OOMKilled", "x")})).progress.reason == "OOMKilled");
  CHECK(observe(pod("Pending", {waiting("ErrImagePull")})).progress.reason == "ErrImagePull");
  CHECK(observe(pod("Unknown")).progress.reason == "NodeUnknown");
  CHECK(observe(pod("Succeeded")).progress.reason.empty());
}

TEST_CASE("a pod that starts or runs as it should says nothing") {
  check(pod(""), State::kRunning, "");
  check(pod("Pending"), State::kRunning, "");
  check(pod("Pending", {waiting("ContainerCreating")}), State::kRunning, "");
  check(pod("Pending", {waiting("PodInitializing")}), State::kRunning, "");
  check(pod("Running", {{.name = "helper-pod"}}), State::kRunning, "");
  k8s::Pod scheduled = pod("Pending");
  scheduled.conditions = {{.type = "PodScheduled", .status = "True"},
                          {.type = "Ready", .status = "False", .reason = "ContainersNotReady"}};
  check(scheduled, State::kRunning, "");
}

TEST_CASE("a pod that is stuck for a cause that does not heal says it while it runs") {
  for (const char* reason :
       {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
        "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
        "CrashLoopBackOff", "SomethingNew"}) {
    check(pod("Pending", {waiting(reason, "the details\n")}), State::kRunning,
          "helper pod cannot start: " + std::string(reason) + ": the details");
    check(pod("Pending", {waiting(reason)}), State::kRunning,
          "helper pod cannot start: " + std::string(reason));
  }
  // The container that waits need not be the first.
  check(pod("Pending", {{.name = "a"}, waiting("ErrImagePull", "x")}), State::kRunning,
        "helper pod cannot start: ErrImagePull: x");
}

TEST_CASE("a pod that no node takes says why") {
  k8s::Pod stuck = pod("Pending");
  stuck.conditions = {{.type = "Initialized", .status = "False", .reason = "X"},
                      {.type = "PodScheduled",
                       .status = "False",
                       .reason = "Unschedulable",
                       .message = "0/3 nodes are available"}};
  check(stuck, State::kRunning, "helper pod cannot be scheduled: 0/3 nodes are available");
  stuck.conditions[1].reason = "SchedulingGated";
  stuck.conditions[1].message = "";
  check(stuck, State::kRunning, "helper pod cannot be scheduled: SchedulingGated");
  check(pod("Unknown"), State::kRunning, "helper pod's state is unknown: its node does not report");
}

TEST_CASE("a container that failed gives its exit code and last words") {
  check(pod("Failed", {ended(1, "Error", "mkdir: can't create directory '/x'\n")}), State::kFailed,
        "helper pod failed: exit code 1: mkdir: can't create directory '/x'");
  check(pod("Failed", {ended(137, "OOMKilled", "")}), State::kFailed,
        "helper pod failed: exit code 137 (OOMKilled)", true);
  check(pod("Failed", {ended(2, "Error", " \n")}), State::kFailed, "helper pod failed: exit code 2",
        true);
  // What never ran has no log.
  check(pod("Failed", {ended(128, "StartError", "exec: \"/bin/sh\": no such file")}),
        State::kFailed,
        "helper pod failed: exit code 128 (StartError): exec: \"/bin/sh\": no such file");
  check(pod("Failed", {ended(127, "ContainerCannotRun", "")}), State::kFailed,
        "helper pod failed: exit code 127 (ContainerCannotRun)");
  check(pod("Failed", {ended(0, "StartError", "odd")}), State::kFailed,
        "helper pod failed: exit code 0 (StartError): odd");
}

TEST_CASE("a pod that the node or the cluster ended gives that cause first") {
  struct Case {
    const char* reason;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {"Evicted", "The node was low on resource: ephemeral-storage."},
           {"NodeAffinity", "Pod was rejected: node(s) didn't match"},
           {"OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"},
           {"OutOfpods", "Node didn't have enough resource: pods"},
           {"NodeShutdown", "Pod was terminated in response to imminent node shutdown."},
           {"Terminated", "Pod was terminated in response to imminent node shutdown."},
           {"UnexpectedAdmissionError", "Pod was rejected"}}) {
    check(
        [&] {
          k8s::Pod rejected = pod("Failed");
          rejected.reason = c.reason;
          rejected.message = c.message;
          return rejected;
        }(),
        State::kFailed, "helper pod failed: " + std::string(c.reason) + ": " + c.message);
  }
  k8s::Pod late = pod("Failed", {ended(137, "Error", "still copying")});
  late.reason = "DeadlineExceeded";
  late.message = "Pod was active on the node longer than the specified deadline";
  check(late, State::kFailed,
        "helper pod failed: DeadlineExceeded: Pod was active on the node longer than the "
        "specified deadline: exit code 137: still copying");
}

TEST_CASE("a pod that failed without saying anything has still failed") {
  check(pod("Failed"), State::kFailed, "helper pod failed");
  check(pod("Failed", {ended(0, "Completed", "fine")}), State::kFailed, "helper pod failed");
}

TEST_CASE("of several containers the one that failed is named") {
  auto sidecar = ended(3, "Error", "sidecar broke");
  sidecar.name = "sidecar";
  const auto outcome = observe(pod("Failed", {ended(0, "Completed", ""), sidecar}));
  CHECK(outcome.progress.message ==
        "helper pod failed: container sidecar: exit code 3: sidecar broke");
  CHECK(outcome.container == "sidecar");
}

TEST_CASE("long output is cut to its end, between characters") {
  const std::string long_text = std::string(2000, 'a') + "\xc3\xbc" + std::string(699, 'z');
  const auto outcome = observe(pod("Failed", {ended(1, "Error", long_text)}));
  CHECK(outcome.progress.message == "helper pod failed: exit code 1: ..." + std::string(699, 'z'));
  const auto short_text = std::string(700, 'y');
  CHECK(observe(pod("Failed", {ended(1, "Error", short_text)})).progress.message ==
        "helper pod failed: exit code 1: " + short_text);
}

}  // namespace
}  // namespace lpp::helperpod
