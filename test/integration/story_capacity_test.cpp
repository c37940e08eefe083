// SPDX-License-Identifier: Apache-2.0
// Free space for the scheduler: with the rights and the class of deploy/capacity, and scripts that
// tell what is free.

#include <doctest/doctest.h>

#include <fstream>

#include "harness/yaml_objects.h"
#include "places/places.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

const std::string kComponent = repository("deploy/capacity/");
constexpr const char* kName = "local-path-capacity";

/// In front of the manifest's script: a file beside the volumes says how many Mi of 100 are free.
constexpr const char* kTellsSpace = R"sh(#!/bin/sh
echo "checked: overcommit" >>/dev/termination-log
if [ -e "${VOL_DIR%/*}/.free" ]; then
  read -r mebibytes <"${VOL_DIR%/*}/.free"
  echo "space: size=104857600 free=$((mebibytes * 1048576))" >>/dev/termination-log
fi
)sh";

struct CapacityStory : StoryBed {
  explicit CapacityStory(const std::vector<std::string>& roles = {"rbac.yaml"},
                         By executor = By::kHelperPods)
      : StoryBed({std::string("--capacity-provisioner-name=") + kName},
                 {.manifest = repository("deploy/local-path-storage.yaml")}, executor) {
    for (const auto& file : roles) {
      for (const json& object : LPP_MUST(read_yaml_objects(kComponent + file))) {
        LPP_MUST(admin().apply(object));
      }
    }
    // Of one path: a second one would be worth a try until somebody tells of it, too.
    for (json object : LPP_MUST(read_yaml_objects(kComponent + "storageclass.yaml"))) {
      object["parameters"]["nodePath"] = bed->base_paths().front();
      LPP_MUST(admin().apply(object));
    }
    LPP_MUST(admin().apply(namespace_object("app")));
    const json map =
        LPP_MUST(admin().get(k8s::kConfigMaps, {kDaemonNamespace, "local-path-config"}));
    restore_script(*this, "setup", kTellsSpace + map["data"]["setup"].get<std::string>());
  }
  void set_free(const std::string& node, int mebibytes) {
    for (const auto& base : bed->base_paths()) {
      const std::filesystem::path disk = bed->on_disk(node, base);
      std::filesystem::create_directories(disk);
      std::ofstream(disk / ".free") << mebibytes << "\n";
    }
  }
  void forget_free(const std::string& node) {
    for (const auto& base : bed->base_paths()) {
      std::filesystem::remove(bed->on_disk(node, base) + "/.free");
    }
  }
  k8s::ObjectKey want(const std::string& name, const std::string& size,
                      const std::string& node = {}) {
    const k8s::ObjectKey claim{"app", name};
    LPP_MUST(admin().create(
        claim_object({.key = claim, .storage_class = kName, .size = size, .selected_node = node})));
    LPP_MUST(
        admin().create(pod_object({.key = claim, .claim = name, .script = "echo x > /data/x"})));
    return claim;
  }
  /// "node-1=95Mi"; what is published for each node.
  std::vector<std::string> published() {
    std::vector<std::string> all;
    for (const json& object :
         LPP_MUST(admin().list(k8s::kCsiStorageCapacities, kDaemonNamespace))) {
      all.push_back(
          object["nodeTopology"]["matchLabels"]["kubernetes.io/hostname"].get<std::string>() + "=" +
          object.value("maximumVolumeSize", ""));
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  void wait_driver() {
    wait_for(*this, "the CSIDriver", [&]() -> std::string {
      const auto driver = admin().find(k8s::kCsiDrivers, {"", kName});
      if (!driver.ok()) return driver.error().message;
      if (!*driver) return "there is none";
      return (**driver)["spec"]["storageCapacity"] == true ? "" : (**driver).dump();
    });
  }
  void wait_nodes(std::size_t count) {
    wait_for(*this, "so many nodes are published", [&]() -> std::string {
      std::string all;
      for (const auto& one : published()) all += one + " ";
      return published().size() == count ? "" : "there is " + all;
    });
  }
  void wait_published(const std::string& what) {
    wait_for(*this, what + " is published", [&]() -> std::string {
      std::string all;
      for (const auto& one : published()) {
        if (one == what) return "";
        all += one + " ";
      }
      return "there is " + all;
    });
  }
  void remove(const k8s::ObjectKey& claim) {
    const auto volume = LPP_MUST(audit.bound_volume(claim));
    LPP_MUST(admin().remove(k8s::kPods, claim));
    LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, claim));
    LPP_MUST(audit.wait_deleted(claim, volume));
  }
};

TEST_CASE("claims of the second name go where there is room, and wait where there is none") {
  CapacityStory story;
  story.start();
  // Nothing is known yet: each node is worth a try, and trying tells.
  story.wait_published("node-1=1Ei");
  story.wait_driver();
  story.set_free("node-1", 5);
  story.set_free("node-2", 50);
  const auto small = story.want("small", "1Mi", "node-1");
  const auto first = LPP_MUST(story.audit.wait_bound(small));
  const json pv = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", first.pv}));
  CHECK(pv["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == kName);
  story.wait_published("node-1=5Mi");
  const auto large = story.want("large", "20Mi");
  CHECK(LPP_MUST(story.audit.wait_bound(large)).node == "node-2");
  story.wait_published("node-2=50Mi");

  const auto too_large = story.want("too-large", "60Mi");
  wait_for(story, "the pod waits for room", [&]() -> std::string {
    std::string all;
    for (const auto& event : story.admin().events_about("Pod", too_large)) {
      if (event.find("did not have enough free storage") != std::string::npos) return "";
      all += event + "\n";
    }
    return "there is " + all;
  });
  const json claim = LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, too_large));
  CHECK_FALSE(claim["metadata"]
                  .value("annotations", json::object())
                  .contains("volume.kubernetes.io/selected-node"));
  // The work on the node tells that there is room by now.
  story.set_free("node-2", 90);
  story.want("another", "1Mi", "node-2");
  CHECK(LPP_MUST(story.audit.wait_bound(too_large)).node == "node-2");
  for (const char* name : {"small", "large", "too-large", "another"}) {
    wait_for_phase(story, {"app", name}, "Succeeded");
    story.remove({"app", name});
  }
  for (const char* node : {"node-1", "node-2"}) story.forget_free(node);
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "without the permissions for it the daemon serves all the same, and says what is missing") {
  CapacityStory story({}, by);
  story.start();
  const auto claim = story.want("data", "1Mi");
  LPP_MUST(story.audit.wait_bound(claim));
  wait_for_log(story, "grant it {apiGroups: [storage.k8s.io], resources: [csistoragecapacities]");
}

TEST_CASE("a node whose agent is away, and one that is gone, are not offered to the scheduler") {
  CapacityStory story({"rbac.yaml"}, By::kAgents);
  story.agents->token("node-2");  // of a pod that is there
  LPP_MUST(story.installation->start_daemon());
  LPP_MUST(story.installation->wait_ready());
  story.agents->take_ca();
  story.agents->start("node-1");
  story.wait_driver();
  story.wait_nodes(1);
  const auto published = story.published();
  REQUIRE(published.size() == 1);
  CHECK(published.front().starts_with("node-1="));
  CHECK(published.front() != "node-1=1Ei");

  story.agents->start("node-2");
  story.wait_nodes(2);
  CHECK(story.published().back() != "node-2=1Ei");
  story.bed->cluster().nodes().remove_node("node-1");
  story.wait_nodes(1);
  CHECK(story.published().front().starts_with("node-2="));
}

TEST_CASE("what is published outlives a crash, and goes with its class") {
  CapacityStory story;
  // One of that name, which asks for nothing yet.
  json driver = {{"apiVersion", "storage.k8s.io/v1"}, {"kind", "CSIDriver"}};
  driver["metadata"]["name"] = kName;
  driver["spec"]["attachRequired"] = false;
  LPP_MUST(story.admin().create(driver));
  story.set_free("node-1", 5);
  story.start();
  story.want("data", "1Mi", "node-1");
  story.wait_published("node-1=5Mi");
  wait_for(story, "the scheduler is asked to look at it", [&]() -> std::string {
    const auto found = story.admin().get(k8s::kCsiDrivers, {"", kName});
    if (!found.ok()) return found.error().message;
    return (*found)["spec"]["storageCapacity"] == true ? "" : found->dump();
  });
  story.installation->kill_daemon();
  story.start();
  // The new process knows nothing of the node.
  LPP_MUST(story.audit.wait_bound(story.want("more", "1Mi", "node-2")));
  story.wait_published("node-1=5Mi");
  LPP_MUST(story.admin().remove(k8s::kStorageClasses, {"", kName}));
  wait_for(story, "nothing is published", [&]() -> std::string {
    const auto published = story.published();
    return published.empty() ? "" : "there is " + published.front();
  });
}

}  // namespace
}  // namespace lpp::testing
