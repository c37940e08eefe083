// SPDX-License-Identifier: Apache-2.0
// Helper pods whose work is done, while the daemon has other things to do.

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kBurst = 4;

/// The daemon has always something to do: steps of claims that no node serves are held in their
/// write, for up to ten seconds each. A new one begins long before the one before is given up.
class Unrest {
 public:
  explicit Unrest(StoryBed& story) : story_(story) {
    story.installation->proxy().set_hooks({.before = [](const ApiRequest& request) {
      return is_held(request) ? Decision::hang() : Decision::forward();
    }});
    thread_ = std::jthread([&story](const std::stop_token& stop) {
      SystemClock clock;
      for (int i = 0; !stop.stop_requested(); ++i) {
        (void)story.admin().create(claim_object(
            {.key = {kNamespace, "c" + std::to_string(i)}, .selected_node = "node-2"}));
        clock.sleep_for(seconds(3), stop);
      }
    });
    REQUIRE(story.installation->proxy().wait_for_record(
        [](const ProxyRecord& record) { return is_held(record.request); }, seconds(60)));
  }
  ~Unrest() {
    thread_ = {};
    story_.installation->proxy().set_hooks({});
    story_.installation->proxy().release_hung();
  }
  Unrest(const Unrest&) = delete;
  Unrest& operator=(const Unrest&) = delete;

  static constexpr const char* kNamespace = "unrest";  // their steps leave workers to others

 private:
  static bool is_held(const ApiRequest& request) {
    return request.is("patch", "persistentvolumeclaims") && request.ns == kNamespace;
  }

  StoryBed& story_;
  std::jthread thread_;
};

struct SweepStory : StoryBed {
  SweepStory() {
    nlohmann::json config = installation->default_config();
    config["nodePathMap"].push_back({{"node", "node-2"}, {"paths", nlohmann::json::array()}});
    LPP_MUST(installation->write_config(config));
    start();
    for (const char* name : {"app", Unrest::kNamespace}) {
      LPP_MUST(admin().apply(namespace_object(name)));
    }
  }

  k8s::ObjectKey claim(int i) const { return {"app", "c" + std::to_string(i)}; }
  void provision() {
    for (int i = 0; i < kBurst; ++i) {
      LPP_MUST(admin().create(claim_object({.key = claim(i), .selected_node = "node-1"})));
    }
    for (int i = 0; i < kBurst; ++i) LPP_MUST(audit.wait_bound(claim(i)));
  }
  /// During unrest, when all helper pods are to be there. False when it took so long that some may
  /// have gone: after 10 s they do in any case.
  bool provision_soon() {
    const auto since = std::chrono::steady_clock::now();
    provision();
    const auto pods = helper_pods();
    if (std::chrono::steady_clock::now() - since > seconds(9)) return false;
    REQUIRE(pods == kBurst);
    return true;
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
  std::ptrdiff_t helper_pods_made() const {
    const auto records = installation->proxy().records();
    return std::count_if(records.begin(), records.end(), [](const ProxyRecord& record) {
      return record.request.is("create", "pods") && record.status == 201;
    });
  }
};

}  // namespace

TEST_CASE("helper pods that have done their work wait until nothing else is to be done") {
  try_until_judged([] {
    SweepStory story;
    std::optional<Unrest> unrest(story);
    const bool judged = story.provision_soon();
    unrest.reset();  // that they go now, and how long they wait, is told in sweeper_test.cpp
    LPP_MUST(story.audit.wait_clean());
    return judged;
  });
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
  try_until_judged([] {
    SweepStory story;
    std::optional<Unrest> unrest(story);
    if (!story.provision_soon()) return false;
    // The steps in work end when it has been asked to stop.
    const std::jthread release([&] {
      std::this_thread::sleep_for(milliseconds(500));
      unrest.reset();
    });
    const auto since = std::chrono::steady_clock::now();
    LPP_MUST(story.installation->stop_daemon());
    const auto took = std::chrono::steady_clock::now() - since;
    const auto left = story.helper_pods();
    if (left > 0 && took >= seconds(2)) return false;  // the time that it has for that may be over
    CHECK(left == 0);
    return true;
  });
}

TEST_CASE("helper pods that had done their work before a crash are removed, and that is all") {
  bool claims_go = false;
  bool volumes_go = false;
  SUBCASE("their volumes are in use") {}
  SUBCASE("their claims are deleted meanwhile: each volume's directory is removed once") {
    claims_go = true;
  }
  SUBCASE("claims and volumes are deleted meanwhile") { claims_go = volumes_go = true; }
  try_until_judged([&] {
    SweepStory story;
    std::optional<Unrest> unrest(story);
    const auto since = std::chrono::steady_clock::now();
    story.provision();
    story.installation->kill_daemon();
    if (std::chrono::steady_clock::now() - since > seconds(9)) return false;
    REQUIRE(story.helper_pods() == kBurst);
    std::vector<VolumeFacts> deleted;
    if (claims_go) deleted = story.remove_claims();
    if (volumes_go) {
      for (const auto& volume : deleted) {
        LPP_MUST(story.admin().remove(k8s::kPersistentVolumes, {"", volume.pv}));
      }
    }
    unrest.reset();
    LPP_MUST(story.installation->start_daemon());
    story.wait_deleted(deleted);
    LPP_MUST(story.audit.wait_clean());
    CHECK(story.helper_pods_made() == kBurst + std::ssize(deleted));
    return true;
  });
}

TEST_CASE("volumes deleted before their helper pods are removed lose their directory once") {
  try_until_judged([] {
    SweepStory story;
    std::optional<Unrest> unrest(story);
    if (!story.provision_soon()) return false;
    story.wait_deleted(story.remove_claims());
    unrest.reset();
    LPP_MUST(story.audit.wait_clean());
    CHECK(story.helper_pods_made() == 2 * kBurst);
    return true;
  });
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
