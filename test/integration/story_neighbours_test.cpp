// SPDX-License-Identifier: Apache-2.0
// Trouble that others make: nodes that go, pods that are evicted or removed by hand. It stays with
// the claims it is about, and nothing is left behind.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "harness/file_text.h"
#include "support/story_steps.h"
#include "support/trouble.h"

namespace lpp::testing {
namespace {

/// The one helper pod there is, once it is in the phase.
k8s::ObjectKey wait_helper_pod(StoryBed& story, const std::string& phase) {
  k8s::ObjectKey key;
  wait_for(story, "a helper pod is " + phase, [&]() -> std::string {
    const auto pods = story.admin().list(k8s::kPods, kDaemonNamespace);
    if (!pods.ok()) return pods.error().message;
    if (pods->size() != 1) return std::to_string(pods->size()) + " pods";
    key = {kDaemonNamespace, (*pods)[0]["metadata"]["name"]};
    const std::string now = (*pods)[0]["status"].value("phase", "");
    return now == phase ? "" : "it is " + now;
  });
  return key;
}

void wait_volume_event(StoryBed& story, const std::string& pv, const std::string& part) {
  wait_for(story, "event about " + pv, [&]() -> std::string {
    std::string all;
    for (const auto& event : story.admin().events_about("PersistentVolume", {"", pv})) {
      if (event.find(part) != std::string::npos) return "";
      all += "\n  " + event;
    }
    return "its events:" + all;
  });
}

/// A claim whose setup is stopped after it has made the directory.
struct Interrupted {
  explicit Interrupted(StoryBed& story) : story_(story) {
    LPP_MUST(story.admin().apply(namespace_object("app")));
    const k8s::ObjectKey map{kDaemonNamespace, "local-path-config"};
    const auto object = LPP_MUST(story.admin().get(k8s::kConfigMaps, map));
    good = object["data"]["setup"];
    restore_script(story, "setup", good + "\nsleep 600\n");
    LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
    pod = wait_helper_pod(story, "Running");
    wait_for(story, "the directory is made", [&]() -> std::string {
      return story_.audit.directories().size() == 1 ? "" : "there is none";
    });
  }
  /// Without the time that a container has to end by itself.
  void remove_pod() const { LPP_MUST(story_.admin().remove(k8s::kPods, pod, 0)); }

  StoryBed& story_;
  const k8s::ObjectKey claim{"app", "data"};
  std::string good{};
  k8s::ObjectKey pod{};
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a released volume whose node was deleted is let go, and that is said") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  if (story.agents) story.agents->of("node-1").kill();  // with its node
  story.bed->cluster().nodes().remove_node("node-1");
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  wait_for(story, "the volume is gone", [&]() -> std::string {
    const auto found = story.admin().find(k8s::kPersistentVolumes, {"", volume.pv});
    if (!found.ok()) return found.error().message;
    return *found ? "it is there" : "";
  });
  wait_volume_event(story, volume.pv, "node-1");
  CHECK(std::filesystem::exists(volume.disk));  // out of reach, as the Event says
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a node deleted while its work waits gives the claim to another node") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  set_dead(story, "node-1", true);
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  LPP_MUST(story.admin().create(
      pod_object({.key = {"app", "user"}, .claim = "data", .script = "echo x > /data/x"})));
  if (by == By::kHelperPods) wait_helper_pod(story, "Pending");
  if (by == By::kAgents) {
    wait_for(story, "the agent has its order", [&]() -> std::string {
      const auto works = LPP_MUST(metric(story, "local_path_provisioner_agent_operations"));
      return works == "1" ? "" : works;
    });
    story.agents->of("node-1").kill();  // with its node
  }
  story.bed->cluster().nodes().remove_node("node-1");
  CHECK(LPP_MUST(story.audit.wait_bound(claim)).node == "node-2");
  wait_for_phase(story, {"app", "user"}, "Succeeded");
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("an evicted helper pod is told on the claim, which gets its volume all the same") {
  StoryBed story;
  story.start();
  Interrupted work(story);
  restore_script(story, "setup", work.good);
  story.bed->cluster().nodes().evict(work.pod.ns, work.pod.name);
  wait_for_event(story, work.claim, "ProvisioningFailed", "Evicted");
  LPP_MUST(story.audit.wait_bound(work.claim));
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("a helper pod removed by hand is told, and the claim gets its volume all the same") {
  StoryBed story;
  story.start();
  Interrupted work(story);
  restore_script(story, "setup", work.good);
  work.remove_pod();
  wait_for_event(story, work.claim, "ProvisioningFailed", "removed before it ended");
  LPP_MUST(story.audit.wait_bound(work.claim));
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("a directory whose helper pod was removed by hand goes with its claim") {
  StoryBed story;
  story.start();
  Interrupted work(story);
  restore_script(story, "setup", work.good);
  SUBCASE("the claim is deleted while the next attempt waits") {
    work.remove_pod();
    wait_for_event(story, work.claim, "ProvisioningFailed", "removed before it ended");
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, work.claim));
  }
  SUBCASE("claim and pod are deleted at once") {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, work.claim));
    work.remove_pod();
  }
  wait_for(story, "the directory is gone", [&]() -> std::string {
    const auto left = story.audit.directories();  // one look: the next one may see less
    return left.empty() ? "" : left.front();
  });
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a full directory stays when a claim goes that a restored backup has brought back") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  Trouble trouble(story);
  const std::string said = trouble.fail(Trouble::Kind::kMake, "no bees here");
  const k8s::ObjectKey claim{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  // The backup is from before the volume was made: claim and UID are the same, and the disk knows
  // more than the cluster.
  const auto uid =
      LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, claim))["metadata"]["uid"]
          .get<std::string>();
  std::vector<std::filesystem::path> disks;  // any of the base paths may be picked
  for (const std::string& base_path : story.bed->base_paths()) {
    disks.push_back(story.bed->on_disk("node-1", base_path + "/pvc-" + uid + "_app_data"));
    std::filesystem::create_directories(disks.back());
    std::ofstream(disks.back() / "data") << "of a tenant";
  }
  wait_for_event(story, claim, "ProvisioningFailed", said);
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  if (by == By::kAgents) trouble.end();  // they could not look at it either
  wait_for_event(story, claim, "DirectoryKept", "pvc-" + uid + "_app_data");
  for (const auto& disk : disks) CHECK(text_of(disk / "data") == "of a tenant");
}

}  // namespace
}  // namespace lpp::testing
