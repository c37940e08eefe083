// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "harness/crash_story.h"
#include "harness/objects.h"
#include "support/story_bed.h"

namespace lpp::testing {
namespace {

void say(const std::string& text) { MESSAGE(text); }

LPP_ALL_EXECUTORS_TEST_CASE(
    "a daemon killed at any API call of its work finishes every volume once") {
  StoryBed story(by);
  if (story.agents) story.start();  // they come back to each next daemon
  CrashStory crash(*story.installation, "crash", [](const auto& text) { say(text); });
  const auto summary = LPP_MUST(crash.during_work());
  // A story that was never hit proves nothing.
  for (const char* place : {"before create persistentvolumes", "after create persistentvolumes",
                            "before delete persistentvolumes", "after delete persistentvolumes"}) {
    CAPTURE(place);
    CHECK(summary.places.contains(place));
  }
  // An agent that is long in coming back leaves the work to helper pods.
  if (by == By::kAgents) return;
  for (const char* place :
       {"before create pods", "after create pods", "before delete pods", "after delete pods"}) {
    CAPTURE(place);
    CHECK(summary.places.contains(place) == (by == By::kHelperPods));
  }
}

LPP_ALL_EXECUTORS_TEST_CASE("a daemon killed at any API call of its start finishes what waits") {
  StoryBed story(by);
  CrashStory crash(*story.installation, "crash", [](const auto& text) { say(text); });
  if (story.agents) {
    story.start();
    // They end with it, as when the power fails: those that go on are longer in coming back.
    crash.on_start([&] {
      for (const auto& node : story.bed->nodes()) story.agents->start(node);
    });
  }
  const auto summary = LPP_MUST(crash.during_start(by == By::kAgents ? 3 : 1));
  CHECK(summary.kills >= 10);
}

TEST_CASE("the audit that judges a crash sees strays, losses and helper pods") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "c"}, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound({"app", "c"}));
  LPP_MUST(story.audit.wait_clean());

  const std::string stray = story.bed->on_disk("node-2", "/opt/local-path-provisioner/stray");
  std::filesystem::create_directories(stray);
  CHECK(story.audit.leftovers().find(stray) != std::string::npos);
  std::filesystem::remove(stray);
  CHECK(story.audit.leftovers().empty());

  std::filesystem::rename(volume.disk, volume.disk + "-away");
  CHECK_FALSE(story.audit.bound_volume({"app", "c"}).ok());
  CHECK_FALSE(story.audit.leftovers().empty());
  std::filesystem::rename(volume.disk + "-away", volume.disk);
  CHECK(story.audit.leftovers().empty());

  story.bed->cluster().nodes().set_faults("node-2", {.dead = true});
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "d"}, .selected_node = "node-2"})));
  LPP_MUST(wait_until(
      "a helper pod is seen",
      [&]() -> std::string {
        return story.audit.leftovers().find("helper pod") != std::string::npos ? "" : "none";
      },
      story.bed->patience()));
}

}  // namespace
}  // namespace lpp::testing
