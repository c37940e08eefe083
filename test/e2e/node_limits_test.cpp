// SPDX-License-Identifier: Apache-2.0
// Classes with limits on the real control plane and node. A stand-in for work that knows limits:
// this machine's file system may have no project quota.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/applied_objects.h"
#include "harness/command_run.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

/// Before the manifest's script. A file beside the volumes stands for a path that is full.
constexpr const char* kStandIn = R"sh(#!/bin/sh
if [ -e "${VOL_DIR%/*}/.full" ]; then echo "no room here" >&2; exit 4; fi
if [ "${VOL_QUOTA:-}" = hard ]; then
  echo "limits: bytes=$VOL_SIZE_BYTES inodes=0" >>/dev/termination-log
fi
)sh";
constexpr const char* kTellLimit =
    "#!/bin/sh\necho \"limits: bytes=$VOL_SIZE_BYTES inodes=0\" >>/dev/termination-log\n";

class LimitedNode {
 public:
  LimitedNode()
      : story("limits"), applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, "limits"))) {
    story.start();
    const json map = LPP_MUST(story.admin().get(k8s::kConfigMaps, kScripts));
    setup_ = map["data"]["setup"];
    scripts({{"setup", kStandIn + setup_}, {"resize", kTellLimit}});
    json storage_class = class_object({.name = "limited", .parameters = {{"quota", "hard"}}});
    storage_class["allowVolumeExpansion"] = true;
    LPP_MUST(applied.apply(storage_class));
  }
  ~LimitedNode() {
    empty();
    scripts({{"setup", setup_}, {"resize", nullptr}});
  }
  LimitedNode(const LimitedNode&) = delete;
  LimitedNode& operator=(const LimitedNode&) = delete;

  void want() {
    LPP_MUST(applied.apply(
        claim_object({.key = applied.key("data"), .storage_class = "limited", .size = "1Gi"})));
    LPP_MUST(applied.apply(pod_object(
        {.key = applied.key("user"), .claim = "data", .script = "echo x >/data/x; sleep 600"})));
  }
  json claim() {
    return LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, applied.key("data")));
  }
  void wait_for_event(const std::string& part) {
    LPP_MUST(wait_until(
        part,
        [&]() -> std::string {
          const auto events =
              story.admin().events_about("PersistentVolumeClaim", applied.key("data"));
          for (const auto& event : events) {
            if (event.find(part) != std::string::npos) return "";
          }
          return "no event says so";
        },
        story.bed->patience()));
  }
  void fill() {
    for (const auto& file : full()) {
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file) << "x";
    }
  }
  void empty() {
    for (const auto& file : full()) std::filesystem::remove(file);
  }

  RealStory story;
  AppliedObjects applied;

 private:
  inline static const k8s::ObjectKey kScripts{kDaemonNamespace, "local-path-config"};

  void scripts(const json& data) {
    const auto merged = story.admin().merge(k8s::kConfigMaps, kScripts, {{"data", data}});
    CHECK(merged.ok());
  }
  std::vector<std::filesystem::path> full() const {
    std::vector<std::filesystem::path> files;
    for (const auto& node : story.bed->nodes()) {
      for (const auto& base : story.bed->base_paths()) {
        files.push_back(story.bed->on_disk(node, base) + "/.full");
      }
    }
    return files;
  }

  std::string setup_;
};

TEST_CASE("real node: a claim that no path can serve goes back to the scheduler until one can") {
  LimitedNode on;
  on.fill();
  on.want();
  on.wait_for_event("can serve the claim");
  on.wait_for_event("no room here");
  on.empty();
  const auto volume = LPP_MUST(on.story.audit.wait_bound(on.applied.key("data")));
  const json pv = LPP_MUST(on.story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(pv["spec"].contains("local"));
  CHECK(pv["metadata"]["annotations"]["local.path.provisioner/quota"] == "hard");

  LPP_MUST(
      on.story.admin().merge(k8s::kPersistentVolumeClaims, on.applied.key("data"),
                             {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}}));
  on.wait_for_event("VolumeResizeSuccessful");
  CHECK(on.claim()["status"]["capacity"]["storage"] == "2Gi");

  // How full it is, from its kubelet.
  LPP_MUST(wait_until(
      "volumes shows how full it is",
      [&]() -> std::string {
        const auto shown =
            run_command({.program = required_setting("LPP_E2E_DAEMON"),
                         .args = {"volumes", "-n", on.applied.key("data").ns, "-o", "json",
                                  "--kubeconfig", required_setting("LPP_E2E_KUBECONFIG")}},
                        std::chrono::seconds(60));
        if (!shown.ok()) return shown.error().message;
        return shown->text.find("usedBytes") != std::string::npos ? "" : shown->text;
      },
      on.story.bed->patience()));
}

}  // namespace
}  // namespace lpp::testing
