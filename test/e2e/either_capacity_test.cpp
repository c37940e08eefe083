// SPDX-License-Identifier: Apache-2.0
// Free space for the real scheduler. The nodes are hollow, in addition to the one that there is:
// their helper pods tell of disks that nobody has.

#include <doctest/doctest.h>

#include <csignal>

#include "harness/applied_objects.h"
#include "harness/child_process.h"
#include "harness/yaml_objects.h"
#include "places/places.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr const char* kName = "local-path-capacity";
const std::string kComponent = repository("deploy/capacity/");

/// A node called PREFIX0 with a disk of so many MiB, of which so many are free; goes with the
/// object.
class HollowNode {
 public:
  HollowNode(const std::string& prefix, std::int64_t size, std::int64_t free)
      : program_(LPP_MUST(ChildProcess::start(
            {.program = required_setting("LPP_E2E_HOLLOW"),
             .args = {"--kubeconfig", required_setting("LPP_E2E_KUBECONFIG"), "--prefix", prefix,
                      "--delay-ms", "100", "--message",
                      "checked: overcommit\nspace: size=" + std::to_string(size << 20) +
                          " free=" + std::to_string(free << 20)},
             .log_file = required_setting("LPP_E2E_LOGS") + "/" + prefix + "kubelet.log"}))) {}
  ~HollowNode() {
    program_->signal(SIGTERM);
    CHECK(program_->wait(std::chrono::seconds(20)) == ChildExit{});
  }
  HollowNode(const HollowNode&) = delete;
  HollowNode& operator=(const HollowNode&) = delete;

 private:
  std::unique_ptr<ChildProcess> program_;
};

class CapacityNodes {
 public:
  CapacityNodes()
      : story("capacity", {.extra_args = {std::string("--capacity-provisioner-name=") + kName}}),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, "capacity"))) {
    for (const json& object : LPP_MUST(read_yaml_objects(kComponent + "rbac.yaml"))) {
      LPP_MUST(story.admin().apply(object));
    }
    // Of one path: a second one would be worth a try until somebody tells of it, too.
    for (json object : LPP_MUST(read_yaml_objects(kComponent + "storageclass.yaml"))) {
      object["parameters"]["nodePath"] = story.bed->base_paths().front();
      LPP_MUST(applied.apply(object));
    }
    for (const char* node : {"full-0", "roomy-0", "ample-0"}) {
      wait(std::string("node ") + node, [&]() -> std::string {
        const auto found = story.admin().find(k8s::kNodes, {"", node});
        return found.ok() && *found ? "" : "it is not there";
      });
    }
    story.start();
  }
  ~CapacityNodes() {
    // As a person does who does not want it any more.
    CHECK(story.admin().remove(k8s::kCsiDrivers, {"", kName}).ok());
  }
  CapacityNodes(const CapacityNodes&) = delete;
  CapacityNodes& operator=(const CapacityNodes&) = delete;

  void wait(const std::string& what, const Condition& condition) {
    LPP_MUST(wait_until(what, condition, story.bed->patience()));
  }
  void want(const std::string& name, const std::string& size,
            const std::vector<std::string>& nodes = {"full-0", "roomy-0", "ample-0"}) {
    LPP_MUST(applied.apply(
        claim_object({.key = applied.key(name), .storage_class = kName, .size = size})));
    json pod = pod_object({.key = applied.key(name), .claim = name, .script = "true"});
    const json here = {{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", nodes}};
    auto& required = pod["spec"]["affinity"]["nodeAffinity"];
    required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        json::array({json{{"matchExpressions", json::array({here})}}});
    LPP_MUST(applied.apply(pod));
  }
  /// The node of its volume, once there is one.
  std::string node_of(const std::string& name) {
    std::string node;
    wait("volume of " + name, [&]() -> std::string {
      const auto claim = story.admin().get(k8s::kPersistentVolumeClaims, applied.key(name));
      if (!claim.ok()) return claim.error().message;
      if ((*claim)["status"].value("phase", "") != "Bound") return claim->dump();
      const auto volume =
          story.admin().get(k8s::kPersistentVolumes, {"", (*claim)["spec"]["volumeName"]});
      if (!volume.ok()) return volume.error().message;
      node = (*volume)["metadata"]["annotations"].value("local.path.provisioner/selected-node", "");
      return "";
    });
    return node;
  }
  void wait_published(const std::string& node, const std::string& size) {
    wait(node + " has " + size, [&]() -> std::string {
      std::string all;
      const auto objects = story.admin().list(k8s::kCsiStorageCapacities, kDaemonNamespace);
      if (!objects.ok()) return objects.error().message;
      for (const json& object : *objects) {
        const json& labels = object["nodeTopology"]["matchLabels"];
        const std::string now = object.value("maximumVolumeSize", "");
        if (labels["kubernetes.io/hostname"] == node && now == size) return "";
        all += labels.dump() + "=" + now + " ";
      }
      return "there is " + all;
    });
  }
  std::size_t published() {
    return LPP_MUST(story.admin().list(k8s::kCsiStorageCapacities, kDaemonNamespace)).size();
  }

  const HollowNode full{"full-", 100, 5};
  const HollowNode roomy{"roomy-", 15, 15};
  const HollowNode ample{"ample-", 16, 16};
  RealStory story;
  AppliedObjects applied;
};

TEST_CASE(
    "the scheduler spreads claims over the nodes that have room, and says so when there is none") {
  CapacityNodes nodes;
  // Nobody knows yet: trying tells.
  nodes.wait_published("full-0", "1Ei");
  nodes.want("probe-full", "1Mi", {"full-0"});
  nodes.want("probe-roomy", "1Mi", {"roomy-0"});
  nodes.want("probe-ample", "1Mi", {"ample-0"});
  CHECK(nodes.node_of("probe-full") == "full-0");
  CHECK(nodes.node_of("probe-roomy") == "roomy-0");
  CHECK(nodes.node_of("probe-ample") == "ample-0");
  nodes.wait_published("full-0", "5Mi");
  nodes.wait_published("roomy-0", "14Mi");
  nodes.wait_published("ample-0", "15Mi");

  // Either of the two, and the second claim the other one.
  nodes.want("first", "10Mi");
  const std::string first = nodes.node_of("first");
  CHECK((first == "roomy-0" || first == "ample-0"));
  nodes.wait_published(first, first == "roomy-0" ? "4Mi" : "5Mi");
  nodes.want("second", "10Mi");
  CHECK(nodes.node_of("second") == (first == "roomy-0" ? "ample-0" : "roomy-0"));
  nodes.wait_published("roomy-0", "4Mi");
  nodes.wait_published("ample-0", "5Mi");

  nodes.want("third", "10Mi");
  nodes.wait("the pod waits for room", [&]() -> std::string {
    std::string all;
    for (const auto& event : nodes.story.admin().events_about("Pod", nodes.applied.key("third"))) {
      if (event.find("3 node(s) did not have enough free storage") != std::string::npos) return "";
      all += event + "\n";
    }
    return "there is " + all;
  });
  const json claim =
      LPP_MUST(nodes.story.admin().get(k8s::kPersistentVolumeClaims, nodes.applied.key("third")));
  CHECK(claim["status"].value("phase", "") == "Pending");
  CHECK_FALSE(claim["metadata"]
                  .value("annotations", json::object())
                  .contains("volume.kubernetes.io/selected-node"));

  for (const std::string name :
       {"probe-full", "probe-roomy", "probe-ample", "first", "second", "third"}) {
    LPP_MUST(nodes.story.admin().remove(k8s::kPods, nodes.applied.key(name)));
    LPP_MUST(nodes.story.admin().remove(k8s::kPersistentVolumeClaims, nodes.applied.key(name)));
  }
  nodes.wait("all volumes are gone", [&]() -> std::string {
    const auto volumes = nodes.story.admin().list(k8s::kPersistentVolumes);
    if (!volumes.ok()) return volumes.error().message;
    return volumes->empty() ? "" : std::to_string(volumes->size()) + " are there";
  });
  LPP_MUST(nodes.story.admin().remove(k8s::kStorageClasses, {"", kName}));
  nodes.wait("nothing is published", [&] {
    return nodes.published() == 0 ? "" : std::to_string(nodes.published()) + " objects";
  });
  LPP_MUST(nodes.story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
