// SPDX-License-Identifier: Apache-2.0
// Volumes on nodes that run nothing: what can be seen in the API alone.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "real_story.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

TEST_CASE("hollow node: claims get volumes and give them back") {
  constexpr int kClaims = 50;
  RealStory story("hollow-claims");
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("hollow")));
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(claim_object({.key = {"hollow", "c" + std::to_string(i)},
                                                .selected_node = story.bed->nodes().front()})));
  }
  const auto count = [&](const std::string& phase) {
    const auto claims = LPP_MUST(story.admin().list(k8s::kPersistentVolumeClaims, "hollow"));
    int n = 0;
    for (const json& claim : claims) {
      if (claim.value("status", json::object()).value("phase", "") == phase) ++n;
    }
    return n;
  };
  LPP_MUST(wait_until(
      "all claims are bound",
      [&] { return count("Bound") == kClaims ? "" : std::to_string(count("Bound")); },
      story.bed->patience()));
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(
        story.admin().remove(k8s::kPersistentVolumeClaims, {"hollow", "c" + std::to_string(i)}));
  }
  LPP_MUST(wait_until(
      "all volumes and helper pods are gone",
      [&]() -> std::string {
        const auto volumes = story.admin().list(k8s::kPersistentVolumes);
        if (!volumes.ok()) return volumes.error().message;
        return volumes->empty() ? story.audit.leftovers() : std::to_string(volumes->size());
      },
      story.bed->patience()));
  LPP_MUST(story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
