// SPDX-License-Identifier: Apache-2.0
// Helper pods whose work is done, while the daemon has other things to do.

#include <doctest/doctest.h>

#include <optional>
#include <thread>

#include "harness/watch_tape.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kBurst = 4;

/// Changes a claim that cannot work again and again: the daemon has always something to do.
class Unrest {
 public:
  explicit Unrest(StoryBed& story) {
    LPP_MUST(story.admin().create(
        claim_object({.key = kKey, .access_mode = "ReadWriteMany", .selected_node = "node-1"})));
    thread_ = std::jthread([this, &story](const std::stop_token& stop) {
      for (int i = 0; !stop.stop_requested(); ++i) {
        (void)story.admin().merge(k8s::kPersistentVolumeClaims, kKey,
                                  {{"metadata", {{"labels", {{"unrest", std::to_string(i)}}}}}});
        std::this_thread::sleep_for(milliseconds(20));
      }
    });
  }

 private:
  const k8s::ObjectKey kKey{"app", "unrest"};
  std::jthread thread_;
};

struct SweepStory : StoryBed {
  SweepStory() {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
  }

  k8s::ObjectKey claim(int i) const { return {"app", "c" + std::to_string(i)}; }
  void provision() {
    for (int i = 0; i < kBurst; ++i) {
      LPP_MUST(admin().create(claim_object({.key = claim(i), .selected_node = "node-1"})));
    }
    for (int i = 0; i < kBurst; ++i) LPP_MUST(audit.wait_bound(claim(i)));
  }
  std::vector<VolumeFacts> remove_claims() {
    std::vector<VolumeFacts> volumes;
    for (int i = 0; i < kBurst; ++i) {
      volumes.push_back(LPP_MUST(audit.wait_bound(claim(i))));
      LPP_MUST(admin().remove(k8s::kPersistentVolumeClaims, claim(i)));
    }
    return volumes;
  }
  void wait_deleted(const std::vector<VolumeFacts>& volumes) {
    for (std::size_t i = 0; i < volumes.size(); ++i) {
      LPP_MUST(audit.wait_deleted(claim(static_cast<int>(i)), volumes[i]));
    }
  }
  std::size_t helper_pods() { return LPP_MUST(admin().list(k8s::kPods, kDaemonNamespace)).size(); }
};

}  // namespace

TEST_CASE("helper pods that have done their work wait until nothing else is to be done") {
  SweepStory story;
  std::optional<Unrest> unrest(story);
  story.provision();
  CHECK(story.helper_pods() == kBurst);
  unrest.reset();  // that they go now, and how long they wait, is told in sweeper_test.cpp
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("helper pods that have done their work go at last, however much is to be done") {
  SweepStory story;
  const Unrest unrest(story);
  const auto since = std::chrono::steady_clock::now();
  story.provision();
  LPP_MUST(story.audit.wait_clean());
  CHECK(std::chrono::steady_clock::now() - since > seconds(10));
}

TEST_CASE("a daemon asked to stop leaves no helper pods that have done their work") {
  SweepStory story;
  const Unrest unrest(story);
  story.provision();
  CHECK(story.helper_pods() == kBurst);
  LPP_MUST(story.installation->stop_daemon());
  CHECK(story.helper_pods() == 0);
}

TEST_CASE("helper pods that had done their work before a crash are removed, and that is all") {
  SweepStory story;
  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  std::optional<Unrest> unrest(story);
  story.provision();
  story.installation->kill_daemon();
  REQUIRE(story.helper_pods() == kBurst);
  std::vector<VolumeFacts> deleted;
  SUBCASE("their volumes are in use") {}
  SUBCASE("their claims are deleted meanwhile: each volume's directory is removed once") {
    deleted = story.remove_claims();
  }
  SUBCASE("claims and volumes are deleted meanwhile") {
    deleted = story.remove_claims();
    for (const auto& volume : deleted) {
      LPP_MUST(story.admin().remove(k8s::kPersistentVolumes, {"", volume.pv}));
    }
  }
  unrest.reset();
  LPP_MUST(story.installation->start_daemon());
  story.wait_deleted(deleted);
  LPP_MUST(story.audit.wait_clean());
  CHECK(pods_made(pods) == kBurst + std::ssize(deleted));
}

TEST_CASE("volumes deleted before their helper pods are removed lose their directory once") {
  SweepStory story;
  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  std::optional<Unrest> unrest(story);
  story.provision();
  CHECK(story.helper_pods() == kBurst);
  story.wait_deleted(story.remove_claims());
  unrest.reset();
  LPP_MUST(story.audit.wait_clean());
  CHECK(pods_made(pods) == 2 * kBurst);
}

TEST_CASE("a helper pod that cannot be removed is told, and goes when it can") {
  SweepStory story;
  story.installation->proxy().set_hooks({.before = [](const ApiRequest& request) {
    return request.is("delete", "pods") ? Decision::reply(403) : Decision::forward();
  }});
  story.provision();
  (void)wait_for_event(story, story.claim(0), "ProvisioningFailed", "remove helper pod");
  CHECK(story.helper_pods() == kBurst);
  story.installation->proxy().set_hooks({});
  LPP_MUST(story.audit.wait_clean());
}

}  // namespace lpp::testing
