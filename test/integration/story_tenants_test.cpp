// SPDX-License-Identifier: Apache-2.0
// One namespace with very much to do, and another with little.

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "support/story_steps.h"

namespace lpp::testing {
namespace {

/// How many helper pods or volumes came before that claim's own.
std::optional<std::size_t> others_before(const WatchTape& tape, const std::string& claim_uid) {
  const auto story = tape.story();
  std::size_t count = 0;
  for (const std::string& frame : story) {
    if (!frame.starts_with("ADDED ")) continue;
    if (frame.find(claim_uid) != std::string::npos) return count;
    ++count;
  }
  return std::nullopt;
}

// Judged by the order of helper pods, of which an agent has none: then by that of volumes. Whatever
// time it takes.
LPP_PODS_AND_AGENTS_TEST_CASE(
    "a claim does not wait for the hundreds of another namespace that came before it") {
  StoryBed story({"--worker-threads=1"}, by);
  const auto judged = by == By::kAgents ? k8s::kPersistentVolumes : k8s::kPods;
  LPP_MUST(story.admin().apply(namespace_object("loud")));
  LPP_MUST(story.admin().apply(namespace_object("quiet")));
  constexpr int kLoud = 200;
  for (int i = 0; i < kLoud; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"loud", "c" + std::to_string(i)}, .selected_node = "node-1"})));
  }
  const auto quiet = LPP_MUST(
      story.admin().create(claim_object({.key = {"quiet", "c"}, .selected_node = "node-2"})));
  // Slow enough for all of them to wait when the first is at work.
  story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
    return request.is("create", judged.plural)
               ? Decision::after_delay(std::chrono::milliseconds(50))
               : Decision::forward();
  }});
  const WatchTape made(story.admin(), judged, judged.namespaced ? kDaemonNamespace : "", {});
  story.start();
  const std::string uid = quiet["metadata"]["uid"];
  std::optional<std::size_t> others;
  wait_for(story, "the quiet claim has its own", [&]() -> std::string {
    others = others_before(made, uid);
    return others ? "" : std::to_string(pods_made(made)) + " others have";
  });
  CHECK(*others <= 5);
  LPP_MUST(story.audit.wait_bound({"quiet", "c"}));
  // And its volume came when most of the others had not begun.
  const auto records = story.installation->proxy().records();
  const auto own_volume =
      std::find_if(records.begin(), records.end(), [&](const ProxyRecord& record) {
        return record.request.is("create", "persistentvolumes") &&
               record.request.body.find(uid) != std::string::npos;
      });
  REQUIRE(own_volume != records.end());
  CHECK(std::count_if(records.begin(), own_volume, [&](const ProxyRecord& record) {
          return record.request.is("create", judged.plural);
        }) < kLoud / 2);
}

}  // namespace
}  // namespace lpp::testing
