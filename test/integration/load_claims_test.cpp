// SPDX-License-Identifier: Apache-2.0
// Many claims at once.

#include <doctest/doctest.h>

#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kClaims = 200;

LPP_PODS_AND_AGENTS_TEST_CASE("200 claims at once do not wait for one another") {
  // What the daemon can do, not what a node may bear; helper pods take a second each.
  StoryBed story({"--helper-pods-per-node=0"},
                 {.manifest = repository("deploy/local-path-storage.yaml")}, by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("load")));
  if (by == By::kHelperPods) change_script(story, "setup", "sleep 1");
  const auto nodes = story.bed->nodes();
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(claim_object(
        {.key = {"load", "c" + std::to_string(i)}, .selected_node = nodes[i % nodes.size()]})));
  }
  const auto created = std::chrono::steady_clock::now();
  wait_for(story, "all claims are bound", [&]() -> std::string {
    const auto claims = story.admin().list(k8s::kPersistentVolumeClaims, "load");
    if (!claims.ok()) return claims.error().message;
    const auto bound =
        std::count_if(claims->begin(), claims->end(), [](const nlohmann::json& claim) {
          return claim.value("status", nlohmann::json::object()).value("phase", "") == "Bound";
        });
    return bound == kClaims ? "" : std::to_string(bound) + " are";
  });
  const auto bound = std::chrono::steady_clock::now();
  const auto took = std::chrono::duration_cast<milliseconds>(bound - began);
  MESSAGE(kClaims, " claims bound in ", took.count(), " ms, ",
          std::chrono::duration_cast<milliseconds>(created - began).count(),
          " ms of them to create the claims");
  // One after another would be 200 s; the embedded cluster itself needs most of these.
  CHECK(took < milliseconds(is_sanitized() ? 60'000 : 20'000));
  LPP_MUST(story.audit.wait_clean());

  const auto removal = std::chrono::steady_clock::now();
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
  MESSAGE(
      kClaims, " volumes removed in ",
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - removal).count(),
      " ms");
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.audit.directories().empty());
  if (by == By::kAgents) CHECK(pods_asked_for(story) == 0);
}

}  // namespace
}  // namespace lpp::testing
