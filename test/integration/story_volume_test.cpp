// SPDX-License-Identifier: Apache-2.0
// What a user sees of a volume: it is there, it holds data, it goes.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <vector>

#include "fakes/eventually.h"
#include "places/places.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim with a pod becomes a directory with the pod's data, and both go again") {
  bool protobuf = true;
  SUBCASE("read as protobuf") {}
  SUBCASE("read as JSON, from an API server that has nothing else") { protobuf = false; }
  StoryBed story(
      {}, {.manifest = repository("deploy/local-path-storage.yaml"), .protobuf = protobuf}, by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  const k8s::ObjectKey pod{"app", "writer"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .size = "5Mi"})));
  LPP_MUST(story.admin().create(
      pod_object({.key = pod, .claim = "data", .script = "echo hello > /data/file"})));

  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  wait_for_phase(story, pod, "Succeeded");
  CHECK(text_of(volume.disk + "/file") == "hello\n");
  const auto pv = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(pv["spec"]["capacity"]["storage"] == "5Mi");
  CHECK(pv["spec"]["hostPath"]["type"] == "DirectoryOrCreate");
  CHECK(pv["spec"]["storageClassName"] == "local-path");
  CHECK(volume.path.ends_with("/" + volume.pv + "_app_data"));
  wait_for_event(story, claim, "ProvisioningSucceeded", "Successfully provisioned volume");

  LPP_MUST(story.admin().remove_and_wait(k8s::kPods, pod, 0));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim with a node need not wait for a controller manager that is behind") {
  StoryBed story(
      {}, {.manifest = repository("deploy/local-path-storage.yaml"), .run_controllers = false}, by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey key{"app", "data"};
  const auto claim =
      LPP_MUST(story.admin().create(claim_object({.key = key, .selected_node = "node-1"})));
  const std::string pv = "pvc-" + claim["metadata"]["uid"].get<std::string>();
  wait_for(story, "the volume is made", [&]() -> std::string {
    const auto found = story.admin().find(k8s::kPersistentVolumes, {"", pv});
    return found.ok() && found->has_value() ? "" : "it is not there";
  });
  story.bed->cluster().start_controllers();
  const auto volume = LPP_MUST(story.audit.wait_bound(key));
  CHECK(volume.pv == pv);
  LPP_MUST(story.audit.wait_clean());
  const auto bound = LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, key));
  CHECK_FALSE(
      bound["metadata"]["annotations"].contains("volume.kubernetes.io/storage-provisioner"));
  // And it goes like one that was asked for.
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, key));
  LPP_MUST(story.audit.wait_deleted(key, volume));
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("what has been begun is finished before something new is begun") {
  constexpr int kClaims = 40;
  StoryBed story({"--worker-threads=1"});
  LPP_MUST(story.admin().apply(namespace_object("app")));
  std::vector<k8s::ObjectKey> keys;
  for (int i = 0; i < kClaims; ++i) {
    keys.push_back({"app", "data-" + std::to_string(i)});
    LPP_MUST(story.admin().create(claim_object({.key = keys.back(), .selected_node = "node-1"})));
  }
  // Half of them wait until a helper pod has ended and the daemon is being told, however long that
  // takes, but no single call; then they come slowly enough for it to look at that.
  std::atomic<int> creates = 0;
  std::atomic<bool> one_has_ended = false;
  story.installation->proxy().set_hooks(
      {.before =
           [&](const ApiRequest& request) {
             if (!request.is("create", "pods") || ++creates <= kClaims / 2) {
               return Decision::forward();
             }
             eventually([&] { return one_has_ended.load(); }, std::chrono::seconds(4));
             return Decision::after_delay(std::chrono::milliseconds(250));
           },
       .frame =
           [&](const ApiRequest& request, std::string_view frame) {
             if (request.is("watch", "pods") && frame.find("Succeeded") != std::string_view::npos) {
               one_has_ended = true;
             }
             return FrameAction::kForward;
           }});
  story.start();
  for (const auto& key : keys) LPP_MUST(story.audit.wait_bound(key));
  story.installation->proxy().set_hooks({});
  const auto records = story.installation->proxy().records();
  const auto first_volume = std::find_if(
      records.begin(), records.end(),
      [](const ProxyRecord& record) { return record.request.is("create", "persistentvolumes"); });
  // One that was given up and is asked for again is made once.
  const auto makes_pod = [](const ProxyRecord& record) {
    return record.request.is("create", "pods") && record.status == 201;
  };
  REQUIRE(std::count_if(records.begin(), records.end(), makes_pod) == kClaims);
  CHECK(std::count_if(records.begin(), first_volume, makes_pod) < kClaims);
}

LPP_ALL_EXECUTORS_TEST_CASE("the directory of a class that retains stays when its claim goes") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  LPP_MUST(story.admin().create(class_object({.name = "keep", .reclaim_policy = "Retain"})));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(
      claim_object({.key = claim, .storage_class = "keep", .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  wait_for(story, "the volume is released", [&]() -> std::string {
    const auto pv = story.admin().get(k8s::kPersistentVolumes, {"", volume.pv});
    if (!pv.ok()) return pv.error().message;
    const std::string phase = (*pv)["status"].value("phase", "");
    return phase == "Released" ? "" : phase;
  });
  // A volume that does go shows that the daemon had its chance at the other one.
  const k8s::ObjectKey other{"app", "other"};
  LPP_MUST(story.admin().create(claim_object({.key = other, .selected_node = "node-1"})));
  const auto goes = LPP_MUST(story.audit.wait_bound(other));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, other));
  LPP_MUST(story.audit.wait_deleted(other, goes));
  CHECK(std::filesystem::is_directory(volume.disk));
  LPP_MUST(story.audit.wait_clean());
}

LPP_ALL_EXECUTORS_TEST_CASE("a claim may ask for a volume of type local") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  const k8s::ObjectKey pod{"app", "writer"};
  LPP_MUST(
      story.admin().create(claim_object({.key = claim, .annotations = {{"volumeType", "local"}}})));
  LPP_MUST(story.admin().create(
      pod_object({.key = pod, .claim = "data", .script = "echo local > /data/file"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  wait_for_phase(story, pod, "Succeeded");
  CHECK(text_of(volume.disk + "/file") == "local\n");
  const auto pv = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(pv["spec"].contains("local"));
  CHECK_FALSE(pv["spec"].contains("hostPath"));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPods, pod, 0));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "a volume that is deleted before its claim leaves no directory behind") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-2"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumes, {"", volume.pv}));
  CHECK(std::filesystem::is_directory(volume.disk));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  LPP_MUST(story.audit.wait_clean());
}

LPP_ALL_EXECUTORS_TEST_CASE("a claim made again under its name gets a directory of its own") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  const auto first = LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  wait_for(story, "the old volume is gone", [&]() -> std::string {
    const auto old = story.admin().find(k8s::kPersistentVolumes, {"", first.pv});
    return old.ok() && !old->has_value() ? "" : "it is there";
  });
  const auto second = LPP_MUST(story.audit.wait_bound(claim));
  CHECK(first.pv != second.pv);
  CHECK(first.disk != second.disk);
  LPP_MUST(story.audit.wait_clean());
}

}  // namespace
}  // namespace lpp::testing
