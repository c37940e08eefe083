// SPDX-License-Identifier: Apache-2.0
// The life of claims and volumes, with helper pods, the second executor and agents: what is
// decided does not depend on who does the work.

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "support/trouble.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using operation::Kind;
using Moment = Trouble::Moment;

constexpr const char* kData = "what a tenant has written";

struct ExecutorStory : StoryBed {
  explicit ExecutorStory(By executor) : StoryBed(executor) {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
  }

  k8s::ObjectKey want(const std::string& name, const std::string& storage_class = "local-path") {
    const k8s::ObjectKey key{"app", name};
    LPP_MUST(admin().create(
        claim_object({.key = key, .storage_class = storage_class, .selected_node = "node-1"})));
    return key;
  }
  VolumeFacts wait_bound_and_write(const k8s::ObjectKey& claim) {
    const auto volume = LPP_MUST(audit.wait_bound(claim));
    std::ofstream(volume.disk + "/data") << kData;
    fs::create_directories(volume.disk + "/below");
    fs::create_symlink("/", volume.disk + "/below/link");
    return volume;
  }
  void remove(const k8s::ObjectKey& claim) {
    LPP_MUST(admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  }
  struct Again {
    k8s::ObjectKey claim{};
    VolumeFacts first{};
  };
  /// A claim made again under its name, of class "named": its first volume was kept, with data.
  Again wait_behind_a_kept_volume() {
    LPP_MUST(admin().create(
        class_object({.name = "named",
                      .reclaim_policy = "Retain",
                      .parameters = {{"pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"},
                                     {"nodePath", "/opt/local-path-provisioner"}}})));
    const auto claim = want("data", "named");
    const auto first = wait_bound_and_write(claim);
    trouble.wait_no_record();
    remove(claim);
    want("data", "named");
    wait_for_event(*this, claim, "ProvisioningFailed", "overlaps");
    return {claim, first};
  }
  void wait_volume_gone(const std::string& pv) {
    wait_for(*this, "volume " + pv + " is gone", [&]() -> std::string {
      const auto found = admin().find(k8s::kPersistentVolumes, {"", pv});
      return found.ok() && !found->has_value() ? "" : "it is there";
    });
  }
  void crash() {
    installation->kill_daemon();
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
  }

  Trouble trouble{*this};
};

Moment each_moment() {
  Moment moment = Moment::kBefore;
  SUBCASE("before the work") {}
  SUBCASE("after the work") { moment = Moment::kAfter; }
  return moment;
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "many claims get their volumes at once, and everything goes with them") {
  ExecutorStory story(by);
  constexpr int kClaims = 20;
  std::vector<VolumeFacts> volumes;
  for (int i = 0; i < kClaims; ++i) story.want("c" + std::to_string(i));
  for (int i = 0; i < kClaims; ++i) {
    volumes.push_back(story.wait_bound_and_write({"app", "c" + std::to_string(i)}));
  }
  story.trouble.wait_clean();
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"app", "c" + std::to_string(i)}));
  }
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.audit.wait_deleted({"app", "c" + std::to_string(i)}, volumes[i]));
  }
  story.trouble.wait_empty();
  LPP_MUST(story.installation->stop_daemon());
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "work that fails is told with its cause, and done again until it succeeds") {
  ExecutorStory story(by);
  std::string said = story.trouble.fail(Kind::kMake, "the disk is full of bees");
  const auto claim = story.want("data");
  wait_for_event(story, claim, "ProvisioningFailed", said);
  story.trouble.end();
  const auto volume = story.wait_bound_and_write(claim);

  said = story.trouble.fail(Kind::kRemove, "the bees are back");
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  wait_for(story, "the volume's event", [&]() -> std::string {
    for (const auto& event : story.admin().events_about("PersistentVolume", {"", volume.pv})) {
      const bool cause = event.find(said) != std::string::npos;
      if (event.starts_with("Warning VolumeFailedDelete: ") && cause) return "";
    }
    return "there is none";
  });
  CHECK(text_of(volume.disk + "/data") == kData);
  story.trouble.end();
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  story.trouble.wait_clean();
}

LPP_EXECUTORS_TEST_CASE("a claim deleted while its directory is made leaves nothing behind") {
  ExecutorStory story(by);
  story.trouble.hold(Kind::kMake, each_moment());
  const auto claim = story.want("data");
  story.trouble.wait_recorded("make running");
  story.remove(claim);
  story.trouble.end();
  story.trouble.wait_empty();
}

LPP_EXECUTORS_TEST_CASE(
    "a claim made again under its name never costs what the one before has kept") {
  ExecutorStory story(by);
  const auto again = story.wait_behind_a_kept_volume();
  const auto& claim = again.claim;
  const auto& first = again.first;
  story.remove(claim);
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", first.pv}));
  // From here on only the directory itself tells of the first claim.
  SUBCASE("the claim gets the directory") {
    story.want("data", "named");
    CHECK(LPP_MUST(story.audit.wait_bound(claim)).disk == first.disk);
  }
  SUBCASE("the claim is deleted while its directory is made") {
    story.trouble.hold(Kind::kMake, Moment::kAfter);
    story.want("data", "named");
    story.trouble.wait_recorded("make running");
    SUBCASE("at once") {
      story.remove(claim);
      story.trouble.end();
      story.trouble.wait_no_record();
      // Who sees the end of the work before the deletion publishes the volume, to be kept as well.
      wait_for(story, "the directory's whereabouts are told", [&]() -> std::string {
        if (!story.admin().list(k8s::kPersistentVolumes, "").value().empty()) return "";
        for (const auto& event : story.admin().events_about("PersistentVolumeClaim", claim)) {
          if (event.find("DirectoryKept") != std::string::npos) return "";
        }
        return "neither a volume nor an event";
      });
    }
    SUBCASE("and the daemon crashes") {
      story.installation->kill_daemon();
      story.remove(claim);
      LPP_MUST(story.installation->start_daemon());
      story.trouble.end();
      story.trouble.wait_no_record();
      wait_for_event(story, claim, "DirectoryKept");
    }
  }
  CHECK(text_of(first.disk + "/data") == kData);
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "a claim that is deleted before the volume it waits for gets none, however late that is seen") {
  ExecutorStory story(by);
  const auto again = story.wait_behind_a_kept_volume();
  const auto& claim = again.claim;
  const auto& first = again.first;
  story.installation->proxy().set_hooks({.before = [](const ApiRequest& request) {
    const bool of_the_cache = request.is("watch", "persistentvolumeclaims") ||
                              (request.is("list", "persistentvolumeclaims") &&
                               query_value(request.target, "fieldSelector").empty());
    return of_the_cache ? Decision::reply(500) : Decision::forward();
  }});
  story.installation->proxy().cut_connections();
  story.remove(claim);
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", first.pv}));
  wait_for_log(story, "the API server knows something of the claim that the cache does not");
  story.installation->proxy().set_hooks({});
  story.want("data", "named");
  CHECK(LPP_MUST(story.audit.wait_bound(claim)).disk == first.disk);
  CHECK(text_of(first.disk + "/data") == kData);
}

LPP_EXECUTORS_TEST_CASE(
    "a claim made again under its name gets its directory as soon as the one before has let it "
    "go") {
  ExecutorStory story(by);
  LPP_MUST(story.admin().create(
      class_object({.name = "named",
                    .parameters = {{"pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"},
                                   {"nodePath", "/opt/local-path-provisioner"}}})));
  CHECK(is_soon([&](int i) {
    story.trouble.hold(Kind::kMake, Moment::kAfter);
    const std::string name = "data-" + std::to_string(i);
    const auto claim = story.want(name, "named");
    story.trouble.wait_recorded("make running");
    story.remove(claim);
    story.want(name, "named");
    wait_for_event(story, claim, "ProvisioningFailed", "overlaps");
    const auto began = std::chrono::steady_clock::now();
    story.trouble.end();
    LPP_MUST(story.audit.wait_bound(claim));
    return began;
  }));
}

LPP_EXECUTORS_TEST_CASE(
    "a volume that is to be kept after all, before its removal has begun, keeps its data") {
  ExecutorStory story(by);
  const auto claim = story.want("data");
  const auto volume = story.wait_bound_and_write(claim);
  story.trouble.wait_clean();
  story.trouble.silence("node-1");
  story.remove(claim);
  story.trouble.wait_recorded("remove waiting");
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                               {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}}));
  story.trouble.wait_recorded("remove ending");
  // Nobody knows yet whether the node has heard of that.
  CHECK(LPP_MUST(story.admin().find(k8s::kPersistentVolumes, {"", volume.pv})).has_value());
  story.trouble.end();
  story.wait_volume_gone(volume.pv);
  story.trouble.wait_no_record();
  CHECK(text_of(volume.disk + "/data") == kData);
}

LPP_EXECUTORS_TEST_CASE(
    "a claim moved away from a silent node gets its volume, and the node is left clean") {
  ExecutorStory story(by);
  story.trouble.silence("node-1");
  const auto claim = story.want("data");
  story.trouble.wait_recorded("make waiting");
  LPP_MUST(story.admin().merge(
      k8s::kPersistentVolumeClaims, claim,
      {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "node-2"}}}}}}));
  CHECK(LPP_MUST(story.audit.wait_bound(claim)).node == "node-2");
  story.trouble.end();
  story.trouble.wait_clean();
}

LPP_EXECUTORS_TEST_CASE(
    "a crash in the middle of the work: it is finished once, and nothing is left") {
  ExecutorStory story(by);
  const Moment moment = each_moment();
  story.trouble.hold(Kind::kMake, moment);
  const auto claim = story.want("data");
  story.trouble.wait_recorded("make running");
  story.crash();
  CHECK(story.trouble.recorded().size() == 1);
  story.trouble.end();
  const auto volume = story.wait_bound_and_write(claim);
  story.trouble.wait_clean();

  story.trouble.hold(Kind::kRemove, moment);
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  story.trouble.wait_recorded("remove running");
  story.crash();
  CHECK(story.trouble.recorded().size() == 1);
  CHECK(LPP_MUST(story.admin().find(k8s::kPersistentVolumes, {"", volume.pv})).has_value());
  story.trouble.end();
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  story.trouble.wait_clean();
}

}  // namespace
}  // namespace lpp::testing
