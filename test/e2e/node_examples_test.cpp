// SPDX-License-Identifier: Apache-2.0
// The files of examples/, applied as they are: all at once, each checked for what its text says.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "disk.h"
#include "example.h"
#include "harness/applied_objects.h"
#include "real_story.h"

namespace lpp::testing::node_examples {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kNamespace = "examples";

/// One installation with the configuration of the shared filesystem's example, which serves the
/// other examples too.
struct Examples {
  Examples()
      : story("examples"),
        node(story.bed->nodes().front()),
        base(story.bed->base_paths().front()),
        shared(required_setting("LPP_E2E_VOLUMES") + "/shared"),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, kNamespace))) {
    Example example("shared-filesystem");
    example.put("/opt/local-path-provisioner", base);
    example.put("/mnt/shared/volumes", shared);
    LPP_MUST(story.installation->write_config(example.config()));
    story.start();
  }

  VolumeFacts bound(const std::string& claim) {
    return LPP_MUST(story.audit.wait_bound(applied.key(claim)));
  }
  json volume(const std::string& pv) {
    return LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", pv}));
  }
  /// The node affinity is exactly this: label In [value].
  void check_affinity(const json& pv, const std::string& label, const std::string& value) const {
    const json expression = {{"key", label}, {"operator", "In"}, {"values", {value}}};
    const json term = {{"matchExpressions", json::array({expression})}};
    CHECK(pv["spec"]["nodeAffinity"] ==
          json({{"required", {{"nodeSelectorTerms", json::array({term})}}}}));
  }
  void check_on_node(const std::string& pod) {
    CHECK(LPP_MUST(story.admin().get(k8s::kPods, applied.key(pod)))["spec"]["nodeName"] == node);
  }

  RealStory story;
  const std::string node;
  const std::string base;
  const std::string shared;
  AppliedObjects applied;
};

/// A pod is ready before its command has written the first line.
void wait_for_text(const std::string& file) {
  LPP_MUST(wait_until("there is text in " + file,
                      [&]() -> std::string { return text_of(file).empty() ? "there is none" : ""; },
                      {.limit = std::chrono::seconds(20)}));
}

void check_pod_with_volume(Examples& on) {
  LPP_MUST(on.applied.wait_ready("volume-test"));
  on.check_on_node("volume-test");
  const VolumeFacts facts = on.bound("local-path-claim");
  CHECK(facts.path == on.base + "/" + facts.pv + "_" + kNamespace + "_local-path-claim");
  wait_for_text(facts.disk + "/started");
  CHECK(mode_and_owner(facts.disk) == "0777 0:0");
  const json pv = on.volume(facts.pv);
  on.check_affinity(pv, "kubernetes.io/hostname", on.node);
  CHECK(facts.node == on.node);
  CHECK(pv["spec"]["hostPath"] == json({{"path", facts.path}, {"type", "DirectoryOrCreate"}}));
  CHECK(pv["spec"]["capacity"] == json({{"storage", "128Mi"}}));
  CHECK(pv["spec"]["accessModes"] == json({"ReadWriteOnce"}));
  CHECK(pv["spec"]["volumeMode"] == "Filesystem");
  CHECK(pv["spec"]["persistentVolumeReclaimPolicy"] == "Delete");
}

void check_local_volume(Examples& on) {
  LPP_MUST(on.applied.wait_ready("local-volume-test"));
  const VolumeFacts facts = on.bound("local-volume-claim");
  const json pv = on.volume(facts.pv);
  CHECK(pv["spec"]["local"] == json({{"path", facts.path}}));
  CHECK_FALSE(pv["spec"].contains("hostPath"));
  on.check_affinity(pv, "kubernetes.io/hostname", on.node);
  wait_for_text(facts.disk + "/started");
}

void check_node_affinity(Examples& on) {
  LPP_MUST(on.applied.wait_ready("node-affinity-test"));
  on.check_on_node("node-affinity-test");
  const VolumeFacts facts = on.bound("node-affinity-claim");
  on.check_affinity(on.volume(facts.pv), "example.com/machine", "rack-1");
  CHECK(facts.node == on.node);
}

/// The example's pod has a twin: only one of them gets the volume at a time.
void check_read_write_once_pod(Examples& on) {
  LPP_MUST(on.applied.wait_ready("single-pod-test"));
  const VolumeFacts facts = on.bound("single-pod-claim");
  CHECK(on.volume(facts.pv)["spec"]["accessModes"] == json({"ReadWriteOncePod"}));
  wait_for_text(facts.disk + "/started");
  LPP_MUST(on.applied.apply(pod_object({.key = on.applied.key("second"),
                                        .claim = "single-pod-claim",
                                        .script = "cp /data/started /data/seen"})));
  LPP_MUST(wait_event(*on.story.bed, "Pod", on.applied.key("second"),
                      {"FailedScheduling", "ReadWriteOncePod"}));
  LPP_MUST(on.story.admin().remove_and_wait(k8s::kPods, on.applied.key("single-pod-test"), {},
                                            on.story.bed->patience()));
  LPP_MUST(on.applied.wait_succeeded("second"));
  CHECK(text_of(facts.disk + "/seen") == text_of(facts.disk + "/started"));
}

void check_subpath(Examples& on) {
  LPP_MUST(on.applied.wait_ready("subpath-test"));
  const VolumeFacts facts = on.bound("subpath-claim");
  for (const char* folder : {"/html", "/var/log", "/pods/subpath-test"}) {
    CAPTURE(folder);
    wait_for_text(facts.disk + folder + "/started");
  }
}

void check_security_context(Examples& on) {
  LPP_MUST(on.applied.wait_ready("private-test"));
  const VolumeFacts facts = on.bound("private-claim");
  CHECK(mode_and_owner(facts.disk) == "0700 1000:1000");
  wait_for_text(facts.disk + "/who");
  CHECK(text_of(facts.disk + "/who").find("uid=1000 gid=1000") == 0);
}

void check_path_pattern(Examples& on) {
  LPP_MUST(on.applied.wait_ready("named-test"));
  const VolumeFacts facts = on.bound("named-claim");
  CHECK(facts.path == on.base + "/" + kNamespace + "/named-claim/shop-" + facts.pv);
  wait_for_text(facts.disk + "/started");
}

void check_shared_filesystem(Examples& on) {
  const auto pods = LPP_MUST(on.applied.wait_pods("app=shared-test", 2));
  const VolumeFacts facts = on.bound("shared-claim");
  CHECK(facts.path == on.shared + "/" + facts.pv + "_" + kNamespace + "_shared-claim");
  const json pv = on.volume(facts.pv);
  CHECK_FALSE(pv["spec"].contains("nodeAffinity"));
  CHECK(pv["spec"]["accessModes"] == json({"ReadWriteMany"}));
  for (const auto& pod : pods) {
    CAPTURE(pod);
    LPP_MUST(on.applied.wait_ready(pod));
    wait_for_text(facts.disk + "/" + pod);
  }
}

TEST_CASE("real node: every example does what its text says, and leaves nothing behind") {
  Examples on;
  const json label = {{"example.com/machine", "rack-1"}};
  LPP_MUST(on.story.admin().merge(k8s::kNodes, {"", on.node}, {{"metadata", {{"labels", label}}}}));
  for (const char* file : {"pod-with-volume", "local-volume", "node-affinity",
                           "read-write-once-pod", "subpath", "security-context", "path-pattern"}) {
    LPP_MUST(on.applied.apply_file(Example::folder() + "/" + file + ".yaml"));
  }
  LPP_MUST(on.applied.apply_file(Example::folder() + "/shared-filesystem/class-and-pods.yaml"));

  check_pod_with_volume(on);
  check_local_volume(on);
  check_node_affinity(on);
  check_subpath(on);
  check_security_context(on);
  check_path_pattern(on);
  check_shared_filesystem(on);
  check_read_write_once_pod(on);
  const auto claims = LPP_MUST(on.story.admin().list(k8s::kPersistentVolumeClaims, kNamespace));
  CHECK(claims.size() == 8);

  std::vector<VolumeFacts> volumes;
  for (const json& claim : claims) volumes.push_back(on.bound(claim["metadata"]["name"]));
  LPP_MUST(on.applied.remove_pods());
  LPP_MUST(on.applied.remove_claims());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    LPP_MUST(
        on.story.audit.wait_deleted(on.applied.key(claims[i]["metadata"]["name"]), volumes[i]));
  }
  LPP_MUST(on.story.audit.wait_empty());
  CHECK(fs::is_empty(on.shared));
  LPP_MUST(on.story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing::node_examples
