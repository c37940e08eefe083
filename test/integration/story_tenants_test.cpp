// One namespace with very much to do, and another with little.

#include <doctest/doctest.h>

#include "support/story_steps.h"

namespace lpp::testing {
namespace {

/// How many helper pods came before that claim's own.
std::optional<std::size_t> pods_before(const WatchTape& pods, const std::string& claim_uid) {
  const auto story = pods.story();
  std::size_t count = 0;
  for (const std::string& frame : story) {
    if (!frame.starts_with("ADDED ")) continue;
    if (frame.find(claim_uid) != std::string::npos) return count;
    ++count;
  }
  return std::nullopt;
}

// Judged by the order of helper pods: with a client-side limit the calls of the claims that are
// waiting take many times as long as the quiet claim needs.
TEST_CASE("a claim does not wait for the hundreds of another namespace that came before it") {
  StoryBed story({"--kube-client-qps=20", "--kube-client-burst=5"});
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("loud")));
  LPP_MUST(story.admin().apply(namespace_object("quiet")));
  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  constexpr int kLoud = 400;
  for (int i = 0; i < kLoud; ++i) {
    LPP_MUST(story.admin().create(claim_object(
        {.key = {"loud", "c" + std::to_string(i)}, .selected_node = i % 2 ? "node-1" : "node-2"})));
  }
  const auto before = static_cast<std::size_t>(pods_made(pods));
  const auto quiet = LPP_MUST(
      story.admin().create(claim_object({.key = {"quiet", "c"}, .selected_node = "node-1"})));
  const std::string uid = quiet["metadata"]["uid"];
  std::optional<std::size_t> own;
  wait_for(story, "the quiet claim's helper pod is there", [&]() -> std::string {
    own = pods_before(pods, uid);
    return own ? "" : std::to_string(pods_made(pods)) + " others are";
  });
  MESSAGE("helper pods of others: ", before, " when the claim came, ", *own, " before its own");
  CHECK(before < kLoud / 2);  // or the test would show nothing
  CHECK(*own - before <= 40);
  LPP_MUST(story.audit.wait_bound({"quiet", "c"}));
  CHECK(pods_made(pods) < kLoud * 3 / 4);
}

}  // namespace
}  // namespace lpp::testing
