// SPDX-License-Identifier: Apache-2.0
// Volumes as rancher/local-path-provisioner wrote them in its versions, made by hand together with
// their directories: they go on working, and their directories go with their claims.

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "account.h"
#include "disk.h"
#include "former_objects.h"
#include "harness/applied_objects.h"
#include "harness/child_process.h"
#include "harness/http_get.h"
#include "places/places.h"
#include "real_story.h"

namespace lpp::testing::node_former {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kNamespace = "former";
constexpr const char* kFinalizer = "external-provisioner.volume.kubernetes.io/finalizer";

/// The daemon is not running yet; the configuration knows the first base path and the shared one.
struct FormerStory {
  explicit FormerStory(const std::string& name)
      : story(name),
        node(story.bed->nodes().front()),
        base(story.bed->base_paths().front()),
        volumes(required_setting("LPP_E2E_VOLUMES")),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, kNamespace))) {
    const json config = {
        {"nodePathMap",
         json::array({{{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"}, {"paths", {base}}}})},
        {"storageClassConfigs",
         {{"former-shared", {{"sharedFileSystemPath", volumes + "/shared"}}}}}};
    LPP_MUST(story.installation->write_config(config));
  }

  json volume(const std::string& pv) {
    return LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", pv}));
  }
  /// The daemon and the control plane may see to it after all that the story has waited for.
  void wait_volume(const std::string& pv, const std::function<bool(const json&)>& condition) {
    LPP_MUST(wait_until(
        "volume " + pv + " is as it should be",
        [&]() -> std::string {
          const json now = volume(pv);
          return condition(now) ? "" : now.dump();
        },
        story.bed->patience()));
  }
  void wait_finalizer(const std::string& pv, bool wanted) {
    wait_volume(pv, [&](const json& now) {
      const json finalizers = now["metadata"].value("finalizers", json::array());
      const bool there =
          std::find(finalizers.begin(), finalizers.end(), kFinalizer) != finalizers.end();
      return there == wanted;
    });
  }

  RealStory story;
  const std::string node;
  const std::string base;
  const std::string volumes;
  AppliedObjects applied;
};

/// What the versions wrote differs in these.
std::vector<FormerVolume> shapes(const FormerStory& on) {
  const json labels = hostname_is(on.node);
  const json annotated = {{"local.path.provisioner/selected-node", on.node}};
  const auto node_name =
      json::array({{{"key", "metadata.name"}, {"operator", "In"}, {"values", {on.node}}}});
  return {
      {.claim = "v0-0-37", .base = on.base, .annotations = annotated, .affinity = labels},
      {.claim = "local",
       .base = on.base,
       .type = "local",
       .annotations = annotated,
       .affinity = labels},
      {.claim = "without-annotation", .base = on.base, .folder = "{pv}", .affinity = labels},
      {.claim = "match-fields", .base = on.base, .affinity = {{"matchFields", node_name}}},
      {.claim = "other-label", .base = on.base, .affinity = label_is("example.com/machine", "m-1")},
      {.claim = "own-folder",
       .base = on.base,
       .folder = "{ns}/{claim}/data",
       .annotations = annotated,
       .affinity = labels},
      {.claim = "shared",
       .storage_class = "former-shared",
       .base = on.volumes + "/shared",
       .access_mode = "ReadWriteMany",
       .annotations = {{"local.path.provisioner/selected-node", ""}}},
      {.claim = "class-and-path-gone",
       .storage_class = "former-gone",
       .base = on.volumes + "/former",
       .annotations = annotated,
       .affinity = labels},
      {.claim = "with-finalizer",
       .base = on.base,
       .annotations = annotated,
       .affinity = labels,
       .finalizers = {kFinalizer}},
      {.claim = "kept",
       .base = on.base,
       .reclaim_policy = "Retain",
       .annotations = annotated,
       .affinity = labels},
      {.claim = "kept-with-finalizer",
       .base = on.base,
       .reclaim_policy = "Retain",
       .annotations = annotated,
       .affinity = labels,
       .finalizers = {kFinalizer}},
  };
}

TEST_CASE("real node: volumes of the former program go on working and are deleted") {
  FormerStory on("former");
  const json label = {{"example.com/machine", "m-1"}};
  LPP_MUST(on.story.admin().merge(k8s::kNodes, {"", on.node}, {{"metadata", {{"labels", label}}}}));
  LPP_MUST(on.applied.apply(class_object({.name = "former-shared", .binding_mode = "Immediate"})));
  LPP_MUST(on.applied.apply(class_object({.name = "former-gone"})));
  std::vector<FormerVolume> all = shapes(on);
  for (auto& volume : all) LPP_MUST(make_former_volume(on.applied, *on.story.bed, volume));
  FormerVolume lost{.claim = "node-gone",
                    .base = on.base,
                    .annotations = {{"local.path.provisioner/selected-node", "no-such-node"}},
                    .affinity = hostname_is("no-such-node")};
  LPP_MUST(make_former_volume(on.applied, *on.story.bed, lost));
  fs::remove_all(lost.path);  // on a disk that is gone
  LPP_MUST(on.story.admin().remove(k8s::kStorageClasses, {"", "former-gone"}));

  on.story.start();
  for (const auto& volume : all) {
    LPP_MUST(
        on.applied.apply(pod_object({.key = on.applied.key(volume.claim),
                                     .claim = volume.claim,
                                     .script = "echo $(cat /data/file) and new >/data/file"})));
  }
  for (const auto& volume : all) {
    CAPTURE(volume.claim);
    LPP_MUST(on.applied.wait_succeeded(volume.claim));
    CHECK(text_of(volume.path + "/file") == "data of " + volume.claim + " and new\n");
    on.wait_finalizer(volume.pv, volume.reclaim_policy == "Delete");
  }

  LPP_MUST(on.applied.remove_pods());
  LPP_MUST(on.applied.remove_claims());
  all.push_back(lost);
  for (const auto& volume : all) {
    if (volume.reclaim_policy == "Retain") continue;
    LPP_MUST(on.story.audit.wait_deleted(on.applied.key(volume.claim),
                                         {.pv = volume.pv, .disk = volume.path}));
  }
  LPP_MUST(wait_event(*on.story.bed, "PersistentVolume", {"", lost.pv}, {"VolumeNodeGone"}));
  for (const auto& volume : all) {
    if (volume.reclaim_policy == "Delete") continue;
    CAPTURE(volume.claim);
    on.wait_volume(volume.pv, [](const json& now) { return now["status"]["phase"] == "Released"; });
    CHECK(text_of(volume.path + "/file") == "data of " + volume.claim + " and new\n");
    LPP_MUST(on.story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", volume.pv}));
    fs::remove_all(volume.path);
  }
  LPP_MUST(on.story.audit.wait_empty());
  CHECK(fs::is_empty(on.volumes + "/shared"));
  CHECK(fs::is_empty(on.volumes + "/former"));
  LPP_MUST(on.story.installation->stop_daemon());
}

TEST_CASE("real node: helper pods that the former program left do no harm") {
  FormerStory on("former-helpers");
  // Claims that were being provisioned, and a volume that was being deleted, when it was stopped.
  struct Left {
    std::string claim;
    std::string script;
    std::string pv{};
  };
  std::vector<Left> left = {{"ended", "exit 0"}, {"failed", "exit 1"}, {"running", "sleep 1d"}};
  for (auto& one : left) {
    LPP_MUST(on.applied.apply(claim_object({.key = on.applied.key(one.claim),
                                            .storage_class = "local-path",
                                            .selected_node = on.node})));
    const json claim =
        LPP_MUST(on.story.admin().get(k8s::kPersistentVolumeClaims, on.applied.key(one.claim)));
    one.pv = "pvc-" + claim["metadata"]["uid"].get<std::string>();
    // In the directory that another choice of the base path would have given.
    LPP_MUST(on.story.admin().create(
        former_helper_pod("create", one.pv, on.node, on.volumes + "/elsewhere", one.script)));
  }
  FormerVolume released{.claim = "released",
                        .base = on.base,
                        .annotations = {{"local.path.provisioner/selected-node", on.node}},
                        .affinity = hostname_is(on.node)};
  LPP_MUST(make_former_volume(on.applied, *on.story.bed, released));
  LPP_MUST(on.story.admin().create(
      former_helper_pod("delete", released.pv, on.node, on.base, "exit 0")));
  LPP_MUST(
      on.story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, on.applied.key("released")));
  // Of a volume that nobody knows any more.
  const std::string unknown = "pvc-00000000-1111-4222-8333-444444444444";
  LPP_MUST(on.story.admin().create(
      former_helper_pod("create", unknown, on.node, on.volumes + "/elsewhere", "exit 0")));
  LPP_MUST(wait_phase(*on.story.bed, "helper-pod-create-" + left[1].pv, "Failed"));
  LPP_MUST(wait_phase(*on.story.bed, "helper-pod-create-" + left[2].pv, "Running"));
  LPP_MUST(wait_phase(*on.story.bed, "helper-pod-delete-" + released.pv, "Succeeded"));

  on.story.start();
  std::vector<VolumeFacts> bound;
  for (const auto& one : left) {
    bound.push_back(LPP_MUST(on.story.audit.wait_bound(on.applied.key(one.claim))));
    CHECK(bound.back().path == on.base + "/" + one.pv + "_" + kNamespace + "_" + one.claim);
  }
  LPP_MUST(on.story.audit.wait_deleted(on.applied.key("released"),
                                       {.pv = released.pv, .disk = released.path}));
  LPP_MUST(on.applied.remove_claims());
  for (std::size_t i = 0; i < left.size(); ++i) {
    LPP_MUST(on.story.audit.wait_deleted(on.applied.key(left[i].claim), bound[i]));
  }
  LPP_MUST(on.story.audit.wait_clean());
  // All but the one of the unknown volume, which is not ours to judge.
  const auto pods = LPP_MUST(on.story.admin().list(k8s::kPods, kDaemonNamespace));
  REQUIRE(pods.size() == 1);
  CHECK(pods[0]["metadata"]["name"] == "helper-pod-create-" + unknown);
  LPP_MUST(on.story.admin().remove_and_wait(
      k8s::kPods, {kDaemonNamespace, "helper-pod-create-" + unknown}, 0, on.story.bed->patience()));
  LPP_MUST(on.story.installation->stop_daemon());
}

/// The process of a Deployment of which only the image was changed.
struct ImageOnly {
  ImageOnly()
      : bed(LPP_MUST(RealBed::create())),
        node(bed->nodes().front()),
        base(bed->base_paths().front()),
        folder(required_setting("LPP_E2E_LOGS") + "/former-image"),
        applied(LPP_MUST(AppliedObjects::in_namespace(*bed, "former-image"))),
        audit(*bed) {
    LPP_MUST(apply_manifest(bed->admin(), repository("test/e2e/former-manifest.yaml")));
    LPP_MUST(bed->admin().merge(k8s::kConfigMaps, {kFormer, "local-path-config"},
                                {{"data", {{"config.json", config_json()}}}}));
    mount_config_map();
    write_pod_token(*bed, {kFormer, "local-path-provisioner-service-account"}, folder);
  }
  ~ImageOnly() {
    (void)bed->admin().remove(kNamespaces, {"", kFormer});
    // Of the rights that it lacks one is tried, once: the control plane binds then.
    std::string log = text_of(folder + "/daemon.log");
    const auto line = log.find("claims are left to the control plane to bind");
    CHECK(line != std::string::npos);
    if (line != std::string::npos) log.erase(line, log.find('\n', line) - line);
    CHECK(log.find("forbidden") == std::string::npos);
    CHECK(sanitizer_report(log) == "");
  }
  ImageOnly(const ImageOnly&) = delete;
  ImageOnly& operator=(const ImageOnly&) = delete;

  void start() {
    const auto upstream = bed->upstream();
    const int port = free_port();
    daemon = LPP_MUST(
        ChildProcess::start({.program = repository("test/e2e/as-pod.sh"),
                             .args = {folder, required_setting("LPP_E2E_DAEMON"), "--debug",
                                      "start", "--config", "/etc/config/config.json"},
                             .env = {{"KUBERNETES_SERVICE_HOST", upstream.host},
                                     {"KUBERNETES_SERVICE_PORT", std::to_string(upstream.port)},
                                     {"POD_NAMESPACE", kFormer},
                                     {"CONFIG_MOUNT_PATH", "/etc/config/"},
                                     {"HEALTH_PORT", std::to_string(port)}},
                             .log_file = folder + "/daemon.log"}));
    LPP_MUST(wait_until(
        "the daemon is ready",
        [&]() -> std::string {
          const auto answer = http_get(port, "/ready");
          if (answer.ok() && answer->status == 200) return "";
          return text_of(folder + "/daemon.log");
        },
        bed->patience()));
  }

  static constexpr const char* kFormer = "former-storage";

  const std::unique_ptr<RealBed> bed;
  const std::string node;
  const std::string base;
  const std::string folder;
  AppliedObjects applied;
  VolumeAudit audit;
  std::unique_ptr<ChildProcess> daemon;

 private:
  std::string config_json() const {
    const json entry = {{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"}, {"paths", {base}}};
    return json{{"nodePathMap", json::array({entry})}}.dump();
  }
  /// As the kubelet does: each key is a file.
  void mount_config_map() {
    const json map = LPP_MUST(bed->admin().get(k8s::kConfigMaps, {kFormer, "local-path-config"}));
    for (const auto& [key, value] : map["data"].items()) {
      write_text(folder + "/config/" + key, value);
    }
  }
};

TEST_CASE("real node: with the former manifest and nothing new but the image, volumes are served") {
  ImageOnly on;
  FormerVolume old{.claim = "old",
                   .base = on.base,
                   .annotations = {{"local.path.provisioner/selected-node", on.node}},
                   .affinity = hostname_is(on.node)};
  LPP_MUST(make_former_volume(on.applied, *on.bed, old));
  on.start();
  LPP_MUST(on.applied.apply(claim_object({.key = on.applied.key("new")})));
  LPP_MUST(on.applied.apply(pod_object(
      {.key = on.applied.key("new"), .claim = "new", .script = "echo written >/data/file"})));
  LPP_MUST(on.applied.wait_succeeded("new"));
  const auto bound = LPP_MUST(on.audit.wait_bound(on.applied.key("new")));
  CHECK(text_of(bound.disk + "/file") == "written\n");
  LPP_MUST(on.applied.remove_pods());
  LPP_MUST(on.applied.remove_claims());
  LPP_MUST(on.audit.wait_deleted(on.applied.key("new"), bound));
  LPP_MUST(on.audit.wait_deleted(on.applied.key("old"), {.pv = old.pv, .disk = old.path}));
  LPP_MUST(wait_until(
      "no helper pod is left",
      [&]() -> std::string {
        const auto pods = on.bed->admin().list(k8s::kPods, ImageOnly::kFormer);
        if (!pods.ok()) return pods.error().message;
        return pods->empty() ? "" : std::to_string(pods->size());
      },
      on.bed->patience()));
  CHECK(on.audit.directories().empty());
  on.daemon->signal(SIGTERM);
  const auto exit = on.daemon->wait(std::chrono::seconds(12));
  REQUIRE(exit.has_value());
  CHECK(*exit == ChildExit{});
}

}  // namespace
}  // namespace lpp::testing::node_former
