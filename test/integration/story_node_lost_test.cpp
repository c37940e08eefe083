// SPDX-License-Identifier: Apache-2.0
// What a user sees when a node is deleted from the cluster: with onNodeLost: release, without the
// right to it, with the command, and when the node comes back.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/command_run.h"
#include "places/places.h"
#include "support/story_steps.h"

namespace lpp::testing::story_node_lost {
namespace {

using nlohmann::json;

constexpr const char* kMark = "local.path.provisioner/node-lost";
const k8s::ObjectKey kClaim{"app", "data-db-0"};

json stateful_set(const std::string& storage_class) {
  json pod =
      pod_object({.key = {"app", "db"},
                  .claim = "of-the-template",
                  .script = "[ -f /data/owner ] || echo first >/data/owner; trap 'exit 0' TERM; "
                            "while :; do sleep 0.1; done"});
  json spec = pod["spec"];
  spec["restartPolicy"] = "Always";
  const json labels = {{"app", "db"}};
  json claim = claim_object({.key = {"", "data"}, .storage_class = storage_class});
  claim["metadata"] = {{"name", "data"}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "StatefulSet"},
          {"metadata", {{"namespace", "app"}, {"name", "db"}}},
          {"spec",
           {{"replicas", 1},
            {"serviceName", "db"},
            {"selector", {{"matchLabels", labels}}},
            {"template", {{"metadata", {{"labels", labels}}}, {"spec", spec}}},
            {"volumeClaimTemplates", json::array({claim})}}}};
}

/// The daemon, a class that lets claims go after a second, and one that does not.
struct Story : StoryBed {
  explicit Story(By executor, bool has_right = true) : StoryBed(executor) {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
    if (has_right) LPP_MUST(apply_manifest(admin(), repository("deploy/node-lost.yaml")));
    LPP_MUST(admin().create(class_object(
        {.name = "let-go", .parameters = {{"onNodeLost", "release"}, {"onNodeLostAfter", "1s"}}})));
    LPP_MUST(admin().create(class_object({.name = "kept", .reclaim_policy = "Retain"})));
  }
  std::string claim_uid() {
    const auto claim = admin().find(k8s::kPersistentVolumeClaims, kClaim);
    return claim.ok() && claim->has_value() ? (**claim)["metadata"]["uid"] : "";
  }
  json volume(const std::string& name) {
    const auto found = admin().find(k8s::kPersistentVolumes, {"", name});
    return found.ok() && found->has_value() ? **found : json();
  }
  void lose(const std::string& node) { bed->cluster().nodes().remove_node(node); }
  /// Under its name and with its disk; another object of another UID.
  void bring_back(const std::string& node) {
    LPP_MUST(bed->cluster().nodes().add_node(node, {}, node));
  }
  void wait_volume_gone(const std::string& name) {
    wait_for(*this, "volume " + name + " is gone",
             [&] { return volume(name).is_null() ? "" : volume(name).dump(); });
  }
  void wait_marked(const std::string& name, bool is_marked) {
    wait_for(*this, "whether the volume is marked", [&]() -> std::string {
      const json annotations = volume(name)["metadata"].value("annotations", json::object());
      return annotations.contains(kMark) == is_marked ? "" : annotations.dump();
    });
  }
  /// A bound claim whose pod has ended.
  VolumeFacts with_data(const std::string& storage_class) {
    LPP_MUST(admin().create(claim_object({.key = kClaim, .storage_class = storage_class})));
    const k8s::ObjectKey pod{"app", "writer"};
    LPP_MUST(admin().create(
        pod_object({.key = pod, .claim = kClaim.name, .script = "echo first >/data/owner"})));
    auto facts = LPP_MUST(audit.wait_bound(kClaim));
    wait_for_phase(*this, pod, "Succeeded");
    LPP_MUST(admin().remove_and_wait(k8s::kPods, pod, 0));
    return facts;
  }
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "the pod of a StatefulSet comes up elsewhere when its node was deleted, and says so") {
  Story story(by);
  LPP_MUST(story.admin().create(stateful_set("let-go")));
  const auto first = LPP_MUST(story.audit.wait_bound(kClaim));
  wait_for(story, "the pod has written",
           [&] { return text_of(first.disk + "/owner") == "first\n" ? "" : "it has not"; });
  const std::string uid = story.claim_uid();
  story.lose(first.node);

  wait_for_event(story, kClaim, "NodeLost", "node " + first.node + " was deleted");
  wait_for_event(story, kClaim, "ClaimReleased", "its data stays in " + first.path);
  wait_for(story, "the claim is another one", [&]() -> std::string {
    const std::string now = story.claim_uid();
    return !now.empty() && now != uid ? "" : now;
  });
  const auto second = LPP_MUST(story.audit.wait_bound(kClaim));
  CHECK(second.node != first.node);
  wait_for_phase(story, {"app", "db-0"}, "Running");
  story.wait_volume_gone(first.pv);
  CHECK(text_of(first.disk + "/owner") == "first\n");

  // Another machine, or the same one: nobody's data is removed from it.
  story.bring_back(first.node);
  const k8s::ObjectKey other{"app", "other"};
  LPP_MUST(story.admin().create(claim_object({.key = other, .selected_node = first.node})));
  const auto goes = LPP_MUST(story.audit.wait_bound(other));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, other));
  LPP_MUST(story.audit.wait_deleted(other, goes));
  CHECK(text_of(first.disk + "/owner") == "first\n");
  LPP_MUST(story.installation->stop_daemon());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a node that comes back while a lost claim is still going keeps what is on its disk") {
  Story story(by);
  const auto facts = story.with_data("let-go");
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, kClaim,
                               {{"metadata", {{"finalizers", {"example.com/hold"}}}}}));
  story.lose(facts.node);
  wait_for_event(story, kClaim, "ClaimReleased");
  story.bring_back(facts.node);
  // The daemon that decided it is gone, too.
  LPP_MUST(story.installation->stop_daemon());
  LPP_MUST(story.installation->start_daemon());
  LPP_MUST(story.installation->wait_ready());
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, kClaim,
                               {{"metadata", {{"finalizers", nullptr}}}}));
  story.wait_volume_gone(facts.pv);
  CHECK(text_of(facts.disk + "/owner") == "first\n");
  const auto told = story.admin().events_about("PersistentVolume", {"", facts.pv});
  CHECK(std::any_of(told.begin(), told.end(), [](const std::string& event) {
    return event.find("DirectoryKept") != std::string::npos;
  }));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "without the permission nothing is deleted, an Event says which, and a node that is back mends "
    "it") {
  Story story(by, /*has_right=*/false);
  const auto facts = story.with_data("let-go");
  const std::string uid = story.claim_uid();
  story.lose(facts.node);
  wait_for_event(story, kClaim, "ClaimReleaseFailed", "deploy/node-lost.yaml");
  story.wait_marked(facts.pv, true);
  story.bring_back(facts.node);
  story.wait_marked(facts.pv, false);
  CHECK(story.claim_uid() == uid);
  // From here on it goes as any other.
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, kClaim));
  LPP_MUST(story.audit.wait_deleted(kClaim, facts));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "release lets the claims of a deleted node go; a volume with policy Retain and its data stay") {
  Story story(by, /*has_right=*/false);
  const auto facts = story.with_data("kept");
  const auto run = [&](std::vector<std::string> args) {
    return LPP_MUST(run_command({.program = daemon_program(),
                                 .args = std::move(args),
                                 .env = {{"KUBECONFIG", story.bed->cluster().kubeconfig()}}},
                                std::chrono::seconds(is_sanitized() ? 60 : 20)));
  };
  const auto refused = run({"release", "--node", facts.node});
  CHECK(refused.code == 1);
  CHECK(refused.text.find("is registered") != std::string::npos);
  story.lose(facts.node);
  const auto planned = run({"release", "--node", facts.node, "--dry-run"});
  CHECK_MESSAGE(planned.code == 0, planned.text);
  CHECK(planned.text.find("app/data-db-0") != std::string::npos);
  CHECK_FALSE(story.claim_uid().empty());

  const auto done = run({"release", "--node", facts.node, "-o", "json"});
  CHECK_MESSAGE(done.code == 0, done.text);
  CHECK(json::parse(done.text)["items"][0]["action"] == "deleted");
  wait_for_event(story, kClaim, "ClaimReleased");
  wait_for(story, "the volume is released", [&]() -> std::string {
    const std::string phase = story.volume(facts.pv)["status"].value("phase", "");
    return phase == "Released" ? "" : phase;
  });
  // Whoever wants it gone by now does not get the directory removed, either.
  story.bring_back(facts.node);
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", facts.pv},
                               {{"spec", {{"persistentVolumeReclaimPolicy", "Delete"}}}}));
  story.wait_volume_gone(facts.pv);
  CHECK(text_of(facts.disk + "/owner") == "first\n");
}

}  // namespace
}  // namespace lpp::testing::story_node_lost
