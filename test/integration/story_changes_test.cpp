// SPDX-License-Identifier: Apache-2.0
// What was refused is tried again as soon as its cause is gone, not at the next resync.

#include <doctest/doctest.h>

#include "support/story_steps.h"
#include "support/trouble.h"

namespace lpp::testing {
namespace {

constexpr const char* kRefused = "ProvisioningFailed";

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a refused claim gets its volume as soon as class, configuration or path allow it") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const auto wants = [&](const std::string& name, const std::string& storage_class) {
    const k8s::ObjectKey key{"app", name};
    LPP_MUST(story.admin().create(
        claim_object({.key = key, .storage_class = storage_class, .selected_node = "node-1"})));
    return key;
  };

  SUBCASE("its class is made") {
    LPP_MUST(
        story.admin().create(class_object({.name = "wrong", .parameters = {{"volumeType", "x"}}})));
    const auto key = wants("data", "wrong");
    wait_for_event(story, key, kRefused, "not a recognised volume type");
    LPP_MUST(story.admin().remove(k8s::kStorageClasses, {"", "wrong"}));
    wait_for_event(story, key, kRefused, "storageClass \"wrong\" not found");
    LPP_MUST(story.admin().create(class_object({.name = "wrong"})));
    LPP_MUST(story.audit.wait_bound(key));
  }
  SUBCASE("its folder is not somebody else's any more") {
    LPP_MUST(story.admin().create(
        class_object({.name = "named",
                      .parameters = {{"pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"},
                                     {"nodePath", "/opt/local-path-provisioner"}}})));
    // Made by hand, for data from before.
    const std::string path = "/opt/local-path-provisioner/app/data";
    LPP_MUST(story.admin().create({{"apiVersion", "v1"},
                                   {"kind", "PersistentVolume"},
                                   {"metadata", {{"name", "by-hand"}}},
                                   {"spec",
                                    {{"accessModes", {"ReadWriteOnce"}},
                                     {"capacity", {{"storage", "1Gi"}}},
                                     {"hostPath", {{"path", path}}},
                                     {"storageClassName", "none"},
                                     {"persistentVolumeReclaimPolicy", "Retain"}}}}));
    wait_for(story, "the daemon knows it", [&]() -> std::string {
      auto count =
          metric(story, R"(local_path_provisioner_cache_objects{name="persistentvolumes"})");
      if (!count.ok()) return count.error().message;
      return *count == "1" ? "" : *count;
    });
    const auto key = wants("data", "named");
    wait_for_event(story, key, kRefused, "overlaps the directory " + path + " of volume by-hand");
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", "by-hand"}));
    CHECK(LPP_MUST(story.audit.wait_bound(key)).path == path);
  }
  SUBCASE("its folder is free") {
    LPP_MUST(story.admin().create(
        class_object({.name = "named",
                      .parameters = {{"pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"},
                                     {"nodePath", "/opt/local-path-provisioner"}}})));
    const auto key = wants("data", "named");
    const auto first = LPP_MUST(story.audit.wait_bound(key));
    Trouble trouble(story);
    trouble.fail(operation::Kind::kRemove, "the old volume cannot go yet");
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, key));
    wants("data", "named");
    wait_for_event(story, key, kRefused, "overlaps");
    trouble.end();
    const auto second = LPP_MUST(story.audit.wait_bound(key));
    CHECK(first.path == second.path);
    CHECK(first.pv != second.pv);
  }
}

}  // namespace
}  // namespace lpp::testing
