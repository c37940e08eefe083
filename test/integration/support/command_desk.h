// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/command_run.h"
#include "harness/http_get.h"
#include "harness/sanitizer_report.h"
#include "places/places.h"
#include "story_steps.h"

namespace lpp::testing {

/// The program's commands, run as a person does on the story's cluster. They find the configuration
/// in the ConfigMap, and the daemon, which is a process, behind a pod that stands for it. One
/// thread.
class CommandDesk {
 public:
  /// The story is started; it outlives the desk.
  explicit CommandDesk(StoryBed& story) : story_(story) {
    LPP_MUST(story.admin().merge(
        k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"},
        {{"data", {{"config.json", text_of(story.installation->config_file())}}}}));
    nlohmann::json pod = pod_object({.key = {kDaemonNamespace, kPod}, .node = "none"});
    pod["spec"].erase("nodeName");
    pod["spec"]["schedulerName"] = "nobody";
    pod["spec"]["containers"][0]["command"] = {"local-path-provisioner", "start"};
    LPP_MUST(story.admin().create(pod));
    LPP_MUST(story.admin().api().patch(k8s::kPods, {kDaemonNamespace, kPod}, k8s::PatchType::kMerge,
                                       {{"status", {{"phase", "Running"}}}}, "status"));
    show([this](const std::string& path) -> std::optional<std::string> {
      const auto page = http_get(story_.installation->daemon().health_port(), "/" + path);
      return page.ok() ? std::optional(page->body) : std::nullopt;
    });
  }
  ~CommandDesk() { story_.bed->cluster().server().set_pod_pages({}); }
  CommandDesk(const CommandDesk&) = delete;
  CommandDesk& operator=(const CommandDesk&) = delete;

  /// What the daemon's pod shows at a path such as "orphans" from now on, instead of what it does.
  void show(std::function<std::optional<std::string>(const std::string& path)> page) {
    story_.bed->cluster().server().set_pod_pages([page = std::move(page)](const std::string&,
                                                                          const std::string& pod,
                                                                          const std::string& path) {
      return pod == std::string(kPod) + ":8080" ? page(path) : std::nullopt;
    });
  }

  CommandOutput run(std::vector<std::string> args) {
    return LPP_MUST(run_command({.program = daemon_program(),
                                 .args = std::move(args),
                                 .env = {{"KUBECONFIG", story_.bed->cluster().kubeconfig()}}},
                                std::chrono::seconds(is_sanitized() ? 120 : 60)));
  }

 private:
  static constexpr const char* kPod = "a-daemon";

  StoryBed& story_;
};

/// To a volume that need not have been made for it.
inline void wait_bound_to(StoryBed& story, const k8s::ObjectKey& claim, const std::string& volume) {
  wait_for(story, claim.to_string() + " is bound to " + volume, [&]() -> std::string {
    const auto found = story.admin().get(k8s::kPersistentVolumeClaims, claim);
    if (!found.ok()) return found.error().message;
    const bool bound = (*found)["status"].value("phase", "") == "Bound";
    return bound && (*found)["spec"].value("volumeName", "") == volume ? "" : found->dump();
  });
}

}  // namespace lpp::testing
