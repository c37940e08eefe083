// SPDX-License-Identifier: Apache-2.0
// Classes with limits: a stand-in for work that knows them, and the manifest's scripts, which do
// not.

#include <doctest/doctest.h>

#include <fstream>

#include "harness/command_run.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

/// Before the manifest's script. A file beside the volumes stands for a path that is full.
constexpr const char* kKnowsLimits = R"sh(#!/bin/sh
if [ -e "${VOL_DIR%/*}/.full" ]; then echo "no room here" >&2; exit 4; fi
echo "space: size=1000 free=500 inodes=10 freeInodes=5" >>/dev/termination-log
if [ "$VOL_QUOTA" = hard ]; then
  echo "limits: bytes=$VOL_SIZE_BYTES inodes=${VOL_QUOTA_INODES:-0}" >>/dev/termination-log
fi
)sh";

struct LimitsStory : StoryBed {
  LimitsStory() {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
    LPP_MUST(admin().create(class_object(
        {.name = "limited", .parameters = {{"quota", "hard"}, {"quotaInodes", "100"}}})));
  }
  void know_limits() {
    const json map =
        LPP_MUST(admin().get(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"}));
    restore_script(*this, "setup", kKnowsLimits + map["data"]["setup"].get<std::string>());
  }
  void fill(const std::string& node) {
    for (const auto& file : full(node)) {
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file) << "x";
    }
  }
  void empty(const std::string& node) {
    for (const auto& file : full(node)) std::filesystem::remove(file);
  }
  k8s::ObjectKey want() {
    const k8s::ObjectKey claim{"app", "data"};
    LPP_MUST(admin().create(
        claim_object({.key = claim, .storage_class = "limited", .selected_node = "node-1"})));
    LPP_MUST(admin().create(
        pod_object({.key = {"app", "user"}, .claim = "data", .script = "echo x > /data/x"})));
    return claim;
  }

 private:
  std::vector<std::filesystem::path> full(const std::string& node) const {
    std::vector<std::filesystem::path> files;
    for (const auto& base : bed->base_paths()) files.push_back(bed->on_disk(node, base) + "/.full");
    return files;
  }
};

TEST_CASE("a claim of a class with limits gets a local volume that says so") {
  LimitsStory story;
  story.know_limits();
  const auto claim = story.want();
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  const json pv = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(pv["spec"].contains("local"));
  CHECK(pv["metadata"]["annotations"]["local.path.provisioner/quota"] == "hard");
  wait_for_phase(story, {"app", "user"}, "Succeeded");
}

TEST_CASE("a path that cannot hold the limits sends the claim to another node, which is told") {
  LimitsStory story;
  story.know_limits();
  story.fill("node-1");
  // The scheduler takes the node with fewer pods.
  LPP_MUST(story.admin().create(
      pod_object({.key = {"app", "busy"}, .script = "sleep 600", .node = "node-1"})));
  const auto claim = story.want();
  CHECK(LPP_MUST(story.audit.wait_bound(claim)).node == "node-2");
  wait_for_event(story, claim, "ProvisioningFailed", "no room here");
  wait_for_phase(story, {"app", "user"}, "Succeeded");
  story.empty("node-1");
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("scripts that know nothing of limits give no volume, and nothing is left of it") {
  LimitsStory story;
  const auto claim = story.want();
  wait_for_event(story, claim, "ProvisioningFailed", "parameter quota of the StorageClass");
  LPP_MUST(story.admin().remove(k8s::kPods, {"app", "user"}));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_empty());
  CHECK(LPP_MUST(story.admin().list(k8s::kPersistentVolumes, "")).empty());
}

TEST_CASE("volumes shows how full a volume with a limit is, while a pod uses it") {
  LimitsStory story;
  story.know_limits();
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(
      claim_object({.key = claim, .storage_class = "limited", .selected_node = "node-1"})));
  LPP_MUST(story.admin().create(pod_object(
      {.key = {"app", "user"}, .claim = "data", .script = "echo x >/data/x; exec sleep 600"})));
  LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(wait_until(
      "the kubelet has measured it",
      [&]() -> std::string {
        const auto shown =
            run_command({.program = daemon_program(),
                         .args = {"volumes", "-n", "app", "-o", "json", "--kubeconfig",
                                  story.bed->cluster().kubeconfig()}},
                        std::chrono::seconds(60));
        if (!shown.ok()) return shown.error().message;
        return shown->text.find("usedBytes") != std::string::npos ? "" : shown->text;
      },
      story.bed->patience()));
}

}  // namespace
}  // namespace lpp::testing
