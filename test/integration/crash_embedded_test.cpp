#include <doctest/doctest.h>

#include "harness/crash_story.h"
#include "support/story_bed.h"

namespace lpp::testing {
namespace {

void say(const std::string& text) { MESSAGE(text); }

TEST_CASE("a daemon killed at any API call of its work finishes every volume once") {
  StoryBed story;
  CrashStory crash(*story.installation, "crash", [](const auto& text) { say(text); });
  const auto summary = LPP_MUST(crash.during_work());
  // A story that was never hit proves nothing.
  for (const char* place :
       {"before create pods", "after create pods", "before create persistentvolumes",
        "after create persistentvolumes", "before delete pods", "after delete pods",
        "before delete persistentvolumes", "after delete persistentvolumes"}) {
    CAPTURE(place);
    CHECK(summary.places.contains(place));
  }
}

TEST_CASE("a daemon killed at any API call of its start finishes what waits") {
  StoryBed story;
  CrashStory crash(*story.installation, "crash", [](const auto& text) { say(text); });
  const auto summary = LPP_MUST(crash.during_start());
  CHECK(summary.kills >= 10);
}

}  // namespace
}  // namespace lpp::testing
