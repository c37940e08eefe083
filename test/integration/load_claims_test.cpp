// SPDX-License-Identifier: Apache-2.0
// Many claims at once.

#include <doctest/doctest.h>

#include <algorithm>

#include "support/story_steps.h"

namespace lpp::testing {
namespace {

constexpr int kClaims = 200;

LPP_PODS_AND_AGENTS_TEST_CASE("200 claims at once do not wait for one another") {
  // What the daemon can do, not what a node may bear.
  StoryBed story({"--helper-pods-per-node=0"},
                 {.manifest = repository("deploy/local-path-storage.yaml")}, by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("load")));
  const auto nodes = story.bed->nodes();
  // Nothing of the work ends before all that may be at once is under way: of what an agent may
  // have, 100, a fifth is for removals.
  const int at_once = story.agents ? 160 : kClaims;
  for (const auto& node : nodes) {
    if (story.agents) story.agents->freeze(node);
    if (!story.agents) story.bed->cluster().nodes().set_faults(node, {.dead = true});
  }
  for (std::size_t i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(claim_object(
        {.key = {"load", "c" + std::to_string(i)}, .selected_node = nodes[i % nodes.size()]})));
  }
  wait_for(story, "all work is under way", [&]() -> std::string {
    const std::string now =
        story.agents
            ? LPP_MUST(metric(story, "local_path_provisioner_agent_operations"))
            : std::to_string(LPP_MUST(story.admin().list(k8s::kPods, kDaemonNamespace)).size());
    return now == std::to_string(at_once) ? "" : now + " are";
  });
  for (const auto& node : nodes) {
    if (story.agents) story.agents->thaw(node);
    if (!story.agents) story.bed->cluster().nodes().set_faults(node, {});
  }
  wait_for(story, "all claims are bound", [&]() -> std::string {
    const auto claims = story.admin().list(k8s::kPersistentVolumeClaims, "load");
    if (!claims.ok()) return claims.error().message;
    const auto bound =
        std::count_if(claims->begin(), claims->end(), [](const nlohmann::json& claim) {
          return claim.value("status", nlohmann::json::object()).value("phase", "") == "Bound";
        });
    return bound == kClaims ? "" : std::to_string(bound) + " are";
  });
  LPP_MUST(story.audit.wait_clean());

  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"load", "c" + std::to_string(i)}));
  }
  wait_for(story, "all volumes are gone", [&]() -> std::string {
    const auto volumes = story.admin().list(k8s::kPersistentVolumes);
    if (!volumes.ok()) return volumes.error().message;
    if (volumes->empty()) return "";
    return std::to_string(volumes->size()) + " are left, one is " +
           volumes->front()["metadata"]["name"].get<std::string>();
  });
  LPP_MUST(story.audit.wait_empty());
  if (by == By::kAgents) CHECK(pods_asked_for(story) == 0);
}

// They are served while hundreds fail, and none of those writes twice; that namespaces take turns,
// however long the queue of one is, is judged in story_tenants_test.cpp and by the work queue's
// tests.
LPP_PODS_AND_AGENTS_TEST_CASE("a claim that fails over and over does not slow its neighbours") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("good")));
  LPP_MUST(story.admin().apply(namespace_object("bad")));
  // Refused ones, and ones whose node does not answer: each has its Event, for none anything runs.
  set_dead(story, "node-1", true);
  const int kBad = is_sanitized() ? 200 : 1000;
  for (int i = 0; i < kBad; ++i) {
    ClaimSpec spec{.key = {"bad", "c" + std::to_string(i)}, .selected_node = "node-1"};
    if (i % 10 != 0) spec.annotations["volumeType"] = "tape";
    LPP_MUST(story.admin().create(claim_object(spec)));
  }
  for (const char* name : {"first", "second"}) {
    // All of them are to be looked at once more.
    LPP_MUST(story.admin().merge(k8s::kStorageClasses, {"", "local-path"},
                                 {{"metadata", {{"labels", {{"for", name}}}}}}));
    const k8s::ObjectKey claim{"good", name};
    LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-2"})));
    LPP_MUST(story.audit.wait_bound(claim));
  }
  const auto records = story.installation->proxy().records();
  const auto about_bad = std::count_if(records.begin(), records.end(), [](const auto& record) {
    return record.request.is_write() && record.request.ns == "bad";
  });
  CHECK(about_bad <= kBad);
}

}  // namespace
}  // namespace lpp::testing
