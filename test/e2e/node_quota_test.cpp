// SPDX-License-Identifier: Apache-2.0
// deploy/quota on the real control plane and node, on a disk that really holds limits (run.sh: XFS,
// or btrfs where this machine's kernel has no quota of XFS).

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "disk.h"
#include "harness/applied_objects.h"
#include "harness/command_run.h"
#include "harness/paths_below.h"
#include "harness/yaml_objects.h"
#include "places/places.h"
#include "real_agents.h"

namespace lpp::testing {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uintmax_t kMi = std::uintmax_t{1} << 20U;

/// Fills the volume, and what it has grown by, and says when it has.
constexpr const char* kFill = R"sh(
dd if=/dev/zero of=/data/first bs=1M count=200
echo filled first
until dd if=/dev/zero of=/data/second bs=1M count=8; do sleep 0.1; done
dd if=/dev/zero of=/data/second bs=1M count=200
echo filled second
sleep 600
)sh";

json quota_object(const char* file) {
  auto objects = LPP_MUST(read_yaml_objects(repository(std::string("deploy/quota/") + file)));
  REQUIRE(objects.size() == 1);
  return std::move(objects.front());
}

class QuotaNode {
 public:
  explicit QuotaNode(By by)
      : data_(quota_object("config.yaml")["data"]),
        played("quota", by,
               {.daemon_args = {"--helper-image", required_setting("LPP_E2E_IMAGE"),
                                "--allow-unsafe-helper-pod-template", "--helper-pod-file",
                                template_file()},
                .base_paths = {disk()},
                .limits = true}),
        story(*played),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, "quota"))) {
    write_text(template_file(), data_["helperPod.yaml"]);
    json config = json::parse(data_["config.json"].get_ref<const std::string&>());
    config["nodePathMap"][0]["paths"] = {disk()};
    LPP_MUST(story.installation->write_config(config));
    played.start();
    LPP_MUST(applied.apply(quota_object("storageclass.yaml")));
  }

  static std::string disk() { return required_setting("LPP_E2E_LIMITS_DISK"); }
  static bool is_xfs() { return required_setting("LPP_E2E_LIMITS") == "xfs"; }

  json claim() {
    return LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, applied.key("data")));
  }
  void wait(const std::string& what, const std::function<std::string()>& reason) {
    LPP_MUST(wait_until(what, reason, story.bed->patience()));
  }
  /// The file is as large as the volume lets it be, once the pod can write no more; what the file
  /// system needs for itself counts, too.
  void wait_filled(const std::string& folder, const std::string& file, std::uintmax_t most) {
    const json pod = LPP_MUST(story.admin().get(k8s::kPods, applied.key("user")));
    const std::string logs = "/quota_user_" + pod["metadata"]["uid"].get<std::string>() + "/";
    wait("the pod has filled " + file, [&]() -> std::string {
      for (const fs::path& path : paths_below(required_setting("LPP_E2E_LOGS") + "/pods")) {
        std::error_code none;
        if (path.string().find(logs) == std::string::npos || !fs::is_regular_file(path, none)) {
          continue;
        }
        if (text_of(path).find(" filled " + file + "\n") != std::string::npos) return "";
      }
      return "its log does not say so";
    });
    const auto size = fs::file_size(folder + "/" + file);
    CHECK(size + 3 * kMi > most);
    CHECK(size <= most);
  }

 private:
  static std::string template_file() {
    return required_setting("LPP_E2E_LOGS") + "/quota/helperPod.yaml";
  }

  const json data_;

 public:
  StoryBy played;
  RealStory& story;
  AppliedObjects applied;
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: on a disk that holds limits a pod gets the size of its claim and what it grows "
    "by") {
  QuotaNode on(by);
  const auto key = on.applied.key("data");
  LPP_MUST(on.applied.apply(
      claim_object({.key = key, .storage_class = "local-path-quota", .size = "64Mi"})));
  LPP_MUST(on.applied.apply(
      pod_object({.key = on.applied.key("user"), .claim = "data", .script = kFill})));
  const auto volume = LPP_MUST(on.story.audit.wait_bound(key));
  const json pv = LPP_MUST(on.story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(pv["spec"].contains("local"));
  on.wait_filled(volume.disk, "first", 64 * kMi);

  LPP_MUST(
      on.story.admin().merge(k8s::kPersistentVolumeClaims, key,
                             {{"spec", {{"resources", {{"requests", {{"storage", "128Mi"}}}}}}}}));
  on.wait("the claim has 128Mi", [&]() -> std::string {
    const json status = on.claim()["status"];
    return status["capacity"]["storage"] == "128Mi" ? "" : status.dump();
  });
  on.wait_filled(volume.disk, "second", 64 * kMi);

  // How full it is: from the node, and on XFS from its kubelet, too.
  on.wait("node usage shows how full it is", [&]() -> std::string {
    const auto shown =
        run_command({.program = required_setting("LPP_E2E_DAEMON"),
                     .args = {"node", "usage", "--base", QuotaNode::disk(), "--json"}},
                    std::chrono::seconds(60));
    if (!shown.ok()) return shown.error().message;
    const json told = json::parse(shown->text, nullptr, /*allow_exceptions=*/false);
    if (!told.is_object() || told["volumes"].size() != 1) return shown->text;
    const json& only = told["volumes"][0];
    return only["bytes"] == 128 * kMi && only["usedBytes"] > 124 * kMi ? "" : shown->text;
  });
  if (QuotaNode::is_xfs()) {
    on.wait("volumes shows how full it is", [&]() -> std::string {
      const auto shown = run_command({.program = required_setting("LPP_E2E_DAEMON"),
                                      .args = {"volumes", "-n", key.ns, "--kubeconfig",
                                               required_setting("LPP_E2E_KUBECONFIG")}},
                                     std::chrono::seconds(60));
      if (!shown.ok()) return shown.error().message;
      return shown->text.find("100%") != std::string::npos ? "" : shown->text;
    });
  }

  LPP_MUST(on.applied.remove_pods());
  LPP_MUST(on.applied.remove_claims());
  LPP_MUST(on.story.audit.wait_deleted(key, volume));
  LPP_MUST(on.story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
