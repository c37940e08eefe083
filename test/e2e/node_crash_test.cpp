// SPDX-License-Identifier: Apache-2.0
// The crash story of the integration tests, on a real control plane and a real node.

#include <doctest/doctest.h>

#include "harness/crash_story.h"
#include "real_agents.h"

namespace lpp::testing {
namespace {

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: a daemon killed at any API call of its work finishes every volume once") {
  StoryBy played("crash-work", by);
  RealStory& story = *played;
  if (by == By::kAgents) played.start();  // they come back to each next daemon
  CrashStory crash(*story.installation, "crash-work", [](const auto& text) { MESSAGE(text); });
  const auto summary = LPP_MUST(crash.during_work());
  std::vector<const char*> places = {
      "before create persistentvolumes", "after create persistentvolumes",
      "before delete persistentvolumes", "after delete persistentvolumes"};
  if (by == By::kHelperPods) {
    places.insert(places.end(), {"before create pods", "after create pods", "before delete pods",
                                 "after delete pods"});
  }
  for (const char* place : places) {
    CAPTURE(place);
    CHECK(summary.places.contains(place));
  }
}

/// By agents, and at each call: on the embedded cluster. Here each of the starts takes seconds.
TEST_CASE("real node: a daemon killed at any API call of its start finishes what waits") {
  RealStory story("crash-start");
  CrashStory crash(*story.installation, "crash-start", [](const auto& text) { MESSAGE(text); });
  const auto summary = LPP_MUST(crash.during_start(4));
  CHECK(summary.kills >= 5);
}

}  // namespace
}  // namespace lpp::testing
