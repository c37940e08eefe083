// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/fault_story.h"
#include "harness/objects.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using Calls = std::vector<std::string>;

/// The calls of which it is known what they do; each must have met every fault.
Calls known_calls(By by) {
  Calls calls{"make: create persistentvolumes", "remove: delete persistentvolumes",
              "remove: patch persistentvolumes"};
  if (by == By::kHelperPods) {
    calls.insert(calls.end(), {"make: create pods", "make: delete pods", "remove: create pods",
                               "remove: delete pods"});
  }
  return calls;
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "every API call may fail in every way and the volumes are still finished once") {
  StoryBed story(by);
  story.start();
  FaultStory faults(*story.installation, "faults");
  const auto summary = LPP_MUST(faults.run());
  MESSAGE(summary.met.size(), " faults were met");
  for (const std::string& call : known_calls(by)) {
    for (const Fault& fault : all_faults()) {
      const bool says_gone = fault.name.starts_with("404") || fault.name.starts_with("409");
      if (says_gone && call.find(" delete ") != std::string::npos) continue;
      const std::string wanted = call + ": " + fault.name;
      CAPTURE(wanted);
      CHECK(std::find(summary.met.begin(), summary.met.end(), wanted) != summary.met.end());
    }
  }
  if (by == By::kAgents) CHECK(pods_asked_for(story) == 0);
  LPP_MUST(story.installation->stop_daemon());
}

/// Lists, and what is asked and made for agents before they can work.
bool is_of_a_start(const ApiRequest& request) {
  return request.verb == "list" || request.resource == "tokenreviews" ||
         request.resource == "secrets" || request.resource == "configmaps";
}

Calls calls_of_a_start(By by) {
  Calls calls{"list persistentvolumeclaims", "list persistentvolumes", "list pods",
              "list storageclasses", "list nodes"};
  if (by == By::kAgents) {
    calls.insert(calls.end(),
                 {"create tokenreviews", "get secrets", "create secrets", "create configmaps"});
  }
  return calls;
}

/// A cluster on which the first call of every kind of the daemon's start meets a fault.
struct FaultyStart {
  FaultyStart(const Fault& what, By by) : fault(what), story(by) {
    story.installation->proxy().set_hooks({.before = [this](const ApiRequest& request) {
      if (request.is_watch() || !is_of_a_start(request)) return Decision::forward();
      MutexLock lock(mutex);
      return met.insert(request.kind()).second ? fault.decision : Decision::forward();
    }});
    LPP_MUST(story.installation->start_daemon());
  }
  bool has_met(const std::string& call) {
    MutexLock lock(mutex);
    return met.contains(call);
  }

  const Fault& fault;
  Mutex mutex;
  std::set<std::string> met LPP_GUARDED_BY(mutex);
  StoryBed story;  // goes first: its proxy uses the others
};

LPP_PODS_AND_AGENTS_TEST_CASE("the first call of every kind of a start may fail in every way") {
  std::vector<std::unique_ptr<FaultyStart>>
      starts;  // at the same time, so that waiting costs little
  for (const Fault& fault : all_faults()) {
    const bool hangs = fault.decision.kind == Decision::Kind::kHang ||
                       fault.decision.kind == Decision::Kind::kHangAfter;
    if (hangs) continue;  // a list has 30 s; the case below shortens nothing
    starts.push_back(std::make_unique<FaultyStart>(fault, by));
  }
  for (const auto& start : starts) {
    CAPTURE(start->fault.name);
    LPP_MUST(start->story.installation->wait_ready());
    if (by != By::kAgents) continue;
    start->story.agents->take_ca();
    for (const auto& node : start->story.bed->nodes()) start->story.agents->start(node);
  }
  const k8s::ObjectKey claim{"lists", "c"};
  for (const auto& start : starts) {
    StoryBed& story = start->story;
    CAPTURE(start->fault.name);
    if (by == By::kAgents) {
      for (const auto& node : story.bed->nodes()) story.agents->wait_connected(node);
    }
    LPP_MUST(story.admin().apply(namespace_object(claim.ns)));
    LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
    LPP_MUST(story.audit.wait_bound(claim));
    story.installation->proxy().set_hooks({});
    for (const auto& call : calls_of_a_start(by)) {
      CAPTURE(call);
      CHECK(start->has_met(call));
    }
    if (by == By::kAgents) CHECK(pods_asked_for(story) == 0);
  }
}

LPP_PODS_AND_AGENTS_TEST_CASE("watches that are cut, truncated or repeat themselves lose nothing") {
  // Each kind's first watch ends in the middle of a frame, later ones now and then between two.
  std::set<std::string> truncated;
  Mutex mutex;
  const std::uint64_t until_cut = by == By::kHelperPods ? 60 : 20;  // without pods there are fewer
  std::atomic<std::uint64_t> frames = 0;
  std::atomic<int> cuts = 0;
  StoryBed story(by);  // goes first: its proxy uses the others
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
             if (number % until_cut == 0) {
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
    std::ofstream(volumes.back().disk + "/data") << i;
  }
  LPP_MUST(story.audit.wait_clean());
  for (int i = 0; i < kClaims; ++i) {
    CHECK(text_of(volumes[static_cast<std::size_t>(i)].disk + "/data") == std::to_string(i));
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

LPP_PODS_AND_AGENTS_TEST_CASE(
    "an API server that was away for a while finds the daemon at work again") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("away")));
  const k8s::ObjectKey before{"away", "before"};
  LPP_MUST(story.admin().create(claim_object({.key = before, .selected_node = "node-1"})));
  const auto volume = LPP_MUST(story.audit.wait_bound(before));
  std::ofstream(volume.disk + "/data") << "from before";
  LPP_MUST(story.audit.wait_clean());
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
  CHECK(text_of(volume.disk + "/data") == "from before");
}

}  // namespace
}  // namespace lpp::testing
