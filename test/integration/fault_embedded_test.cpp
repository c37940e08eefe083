// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "harness/fault_story.h"
#include "harness/objects.h"
#include "support/story_bed.h"

namespace lpp::testing {
namespace {

TEST_CASE("every API call may fail in every way and the volumes are still finished once") {
  StoryBed story;
  story.start();
  FaultStory faults(*story.installation, "faults");
  const auto summary = LPP_MUST(faults.run());
  MESSAGE(summary.met.size(), " faults were met");
  for (const char* call :
       {"make: create pods", "make: create persistentvolumes", "make: delete pods",
        "remove: create pods", "remove: delete persistentvolumes",
        "remove: patch persistentvolumes", "remove: delete pods"}) {
    for (const Fault& fault : all_faults()) {
      const bool says_gone = fault.name.starts_with("404") || fault.name.starts_with("409");
      if (says_gone && std::string(call).find(" delete ") != std::string::npos) continue;
      const std::string wanted = std::string(call) + ": " + fault.name;
      CAPTURE(wanted);
      CHECK(std::find(summary.met.begin(), summary.met.end(), wanted) != summary.met.end());
    }
  }
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("the first list of every kind may fail in every way") {
  for (const Fault& fault : all_faults()) {
    const bool hangs = fault.decision.kind == Decision::Kind::kHang ||
                       fault.decision.kind == Decision::Kind::kHangAfter;
    if (hangs) continue;  // a list has 30 s; the case below shortens nothing
    CAPTURE(fault.name);
    std::set<std::string> met;
    Mutex mutex;
    StoryBed story;  // goes first: its proxy uses the others
    story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
      if (request.verb != "list") return Decision::forward();
      MutexLock lock(mutex);
      return met.insert(request.resource).second ? fault.decision : Decision::forward();
    }});
    story.start();
    LPP_MUST(story.admin().apply(namespace_object("lists")));
    LPP_MUST(
        story.admin().create(claim_object({.key = {"lists", "c"}, .selected_node = "node-1"})));
    LPP_MUST(story.audit.wait_bound({"lists", "c"}));
    story.installation->proxy().set_hooks({});
    CHECK(met.contains("persistentvolumeclaims"));
    CHECK(met.contains("persistentvolumes"));
    CHECK(met.contains("pods"));
    CHECK(met.contains("storageclasses"));
    CHECK(met.contains("nodes"));
  }
}

TEST_CASE("watches that are cut, truncated or repeat themselves lose nothing") {
  // Each kind's first watch ends in the middle of a frame, later ones now and then between two.
  std::set<std::string> truncated;
  Mutex mutex;
  std::atomic<std::uint64_t> frames = 0;
  std::atomic<int> cuts = 0;
  StoryBed story;  // goes first: its proxy uses the others
  story.installation->proxy().set_hooks(
      {.before =
           [&](const ApiRequest& request) {
             if (!request.is_watch()) return Decision::forward();
             MutexLock lock(mutex);
             const bool first = truncated.insert(request.resource).second;
             return first ? Decision::truncate(10'000) : Decision::forward();
           },
       .frame =
           [&](const ApiRequest&, std::string_view) {
             const auto number = ++frames;
             if (number % 60 == 0) {
               ++cuts;
               return FrameAction::kCut;
             }
             return number % 5 == 0 ? FrameAction::kDuplicate : FrameAction::kForward;
           }});
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("watches")));
  constexpr int kClaims = 20;
  for (int i = 0; i < kClaims; ++i) {
    const k8s::ObjectKey key{"watches", "c" + std::to_string(i)};
    LPP_MUST(story.admin().create(
        claim_object({.key = key, .selected_node = i % 2 == 0 ? "node-1" : "node-2"})));
  }
  std::vector<VolumeFacts> volumes;
  volumes.reserve(kClaims);
  for (int i = 0; i < kClaims; ++i) {
    volumes.push_back(LPP_MUST(story.audit.wait_bound({"watches", "c" + std::to_string(i)})));
  }
  LPP_MUST(story.audit.wait_clean());
  for (int i = 0; i < kClaims; ++i) {
    const k8s::ObjectKey key{"watches", "c" + std::to_string(i)};
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, key));
  }
  for (int i = 0; i < kClaims; ++i) {
    const k8s::ObjectKey key{"watches", "c" + std::to_string(i)};
    LPP_MUST(story.audit.wait_deleted(key, volumes[static_cast<std::size_t>(i)]));
  }
  LPP_MUST(story.audit.wait_clean());
  story.installation->proxy().set_hooks({});
  CHECK(cuts > 3);
}

TEST_CASE("an API server that was away for a while finds the daemon at work again") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("away")));
  story.installation->proxy().refuse(true);
  story.installation->proxy().cut_connections();
  LPP_MUST(story.admin().create(claim_object({.key = {"away", "c"}, .selected_node = "node-1"})));
  LPP_MUST(wait_until("three seconds pass without a volume",
                      [began = std::chrono::steady_clock::now()]() -> std::string {
                        return std::chrono::steady_clock::now() - began > std::chrono::seconds(3)
                                   ? ""
                                   : "not yet";
                      },
                      {}));
  CHECK(story.installation->daemon().alive());
  story.installation->proxy().refuse(false);
  LPP_MUST(story.audit.wait_bound({"away", "c"}));
  LPP_MUST(story.audit.wait_clean());
}

}  // namespace
}  // namespace lpp::testing
