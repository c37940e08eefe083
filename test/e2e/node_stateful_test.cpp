// SPDX-License-Identifier: Apache-2.0
// The story of a user with a StatefulSet, on a real control plane and a real node.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "disk.h"
#include "real_agents.h"

namespace lpp::testing::node_stateful {
namespace {

using nlohmann::json;

constexpr int kReplicas = 3;
constexpr const char* kNamespace = "stateful";

/// Each pod writes its name into its volume once, and what it finds there every time it starts.
constexpr const char* kScript =
    "[ -f /data/owner ] || hostname >/data/owner; "
    "echo \"$(hostname) found $(cat /data/owner)\" >>/data/starts; "
    "trap 'exit 0' TERM; while :; do sleep 0.1; done";

json stateful_set() {
  json pod = pod_object({.key = {kNamespace, "db"}, .claim = "none", .script = kScript});
  json spec = pod["spec"];
  spec.erase("volumes");
  spec["restartPolicy"] = "Always";
  const json labels = {{"app", "db"}};
  json claim = claim_object({.key = {"", "data"}});
  claim["metadata"] = {{"name", "data"}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "StatefulSet"},
          {"metadata", {{"namespace", kNamespace}, {"name", "db"}}},
          {"spec",
           {{"replicas", kReplicas},
            {"serviceName", "db"},
            {"podManagementPolicy", "Parallel"},
            {"selector", {{"matchLabels", labels}}},
            {"template", {{"metadata", {{"labels", labels}}}, {"spec", spec}}},
            {"volumeClaimTemplates", json::array({claim})}}}};
}

k8s::ObjectKey pod_key(int i) { return {kNamespace, "db-" + std::to_string(i)}; }
k8s::ObjectKey claim_key(int i) { return {kNamespace, "data-db-" + std::to_string(i)}; }

/// Waits until the pod is ready and is none of the old ones; returns its UID.
std::string wait_ready(RealStory& story, const k8s::ObjectKey& key,
                       const std::set<std::string>& old) {
  std::string uid;
  LPP_MUST(wait_until(
      "pod " + key.to_string() + " is ready",
      [&]() -> std::string {
        const auto pod = story.admin().get(k8s::kPods, key);
        if (!pod.ok()) return pod.error().message;
        uid = (*pod)["metadata"]["uid"];
        if (old.contains(uid)) return "it is the old one";
        for (const json& condition : (*pod)["status"].value("conditions", json::array())) {
          if (condition["type"] == "Ready" && condition["status"] == "True") return "";
        }
        return (*pod)["status"].dump();
      },
      story.bed->patience()));
  return uid;
}

/// A container is ready when it runs: what its script writes comes after that.
void wait_written(RealStory& story, const std::string& file, const std::string& text) {
  LPP_MUST(wait_until(
      file + " says " + text,
      [&]() -> std::string {
        const std::string found = text_of(file);
        return found == text ? "" : "it says " + found;
      },
      story.bed->patience()));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: the pods of a StatefulSet find their data again and all of it goes") {
  StoryBy played("stateful", by);
  RealStory& story = *played;
  played.start();
  LPP_MUST(story.admin().apply(namespace_object(kNamespace)));
  LPP_MUST(story.admin().create(stateful_set()));
  std::set<std::string> first;
  std::vector<VolumeFacts> volumes;
  for (int i = 0; i < kReplicas; ++i) {
    first.insert(wait_ready(story, pod_key(i), {}));
    volumes.push_back(LPP_MUST(story.audit.wait_bound(claim_key(i))));
    wait_written(story, volumes.back().disk + "/owner", pod_key(i).name + "\n");
  }
  LPP_MUST(story.audit.wait_clean());

  for (int i = 0; i < kReplicas; ++i) LPP_MUST(story.admin().remove(k8s::kPods, pod_key(i)));
  for (int i = 0; i < kReplicas; ++i) {
    wait_ready(story, pod_key(i), first);
    const std::string line = pod_key(i).name + " found " + pod_key(i).name + "\n";
    wait_written(story, volumes[static_cast<std::size_t>(i)].disk + "/starts", line + line);
  }

  LPP_MUST(story.admin().remove(kStatefulSets, {kNamespace, "db"}));
  for (int i = 0; i < kReplicas; ++i) {
    LPP_MUST(story.admin().remove_and_wait(k8s::kPods, pod_key(i), {}, story.bed->patience()));
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim_key(i)));
  }
  for (int i = 0; i < kReplicas; ++i) {
    LPP_MUST(story.audit.wait_deleted(claim_key(i), volumes[static_cast<std::size_t>(i)]));
  }
  LPP_MUST(story.audit.wait_empty());
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("real node: a failing script is told on the claim at once") {
  RealStory story("failing-script");
  story.start();
  const k8s::ObjectKey map{kDaemonNamespace, "local-path-config"};
  const json before = LPP_MUST(story.admin().get(k8s::kConfigMaps, map));
  const std::string good = before["data"]["setup"];
  const std::string bad = "#!/bin/sh\necho 'the disk is full of bees' >&2\nexit 7\n";
  LPP_MUST(story.admin().merge(k8s::kConfigMaps, map, {{"data", {{"setup", bad}}}}));
  LPP_MUST(story.admin().apply(namespace_object("failing")));
  const k8s::ObjectKey claim{"failing", "data"};
  LPP_MUST(story.admin().create(
      claim_object({.key = claim, .selected_node = story.bed->nodes().front()})));
  const auto told = wait_until(
      "an event with the cause",
      [&]() -> std::string {
        for (const auto& event : story.admin().events_about("PersistentVolumeClaim", claim)) {
          if (event.starts_with("Warning ProvisioningFailed: ") &&
              event.find("the disk is full of bees") != std::string::npos) {
            return "";
          }
        }
        return "there is none";
      },
      {.limit = std::chrono::seconds(40), .interval = std::chrono::milliseconds(50)});
  LPP_MUST(story.admin().merge(k8s::kConfigMaps, map, {{"data", {{"setup", good}}}}));
  CHECK_MESSAGE(told.ok(), (told.ok() ? "" : told.error().message));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  LPP_MUST(story.audit.wait_clean());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: a claim for a node that does not exist goes to another one") {
  StoryBy played("reschedule", by);
  RealStory& story = *played;
  played.start();
  LPP_MUST(story.admin().apply(namespace_object("reschedule")));
  const k8s::ObjectKey claim{"reschedule", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "no-such-node"})));
  LPP_MUST(story.admin().create(
      pod_object({.key = {"reschedule", "user"}, .claim = "data", .script = "echo x >/data/x"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(claim));
  CHECK(volume.node == story.bed->nodes().front());
  LPP_MUST(
      story.admin().remove_and_wait(k8s::kPods, {"reschedule", "user"}, 0, story.bed->patience()));
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.audit.wait_deleted(claim, volume));
  LPP_MUST(story.audit.wait_clean());
}

}  // namespace
}  // namespace lpp::testing::node_stateful
