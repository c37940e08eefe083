// SPDX-License-Identifier: Apache-2.0
// Stops, restarts and replicas of the daemon.

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "harness/watch_tape.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A claim comes, and from the creation of its helper pod on the API server answers nothing more.
// Everything before must be answered: the leader may still be reading what there is.
void silent_from_the_first_helper_pod(StoryBed& story) {
  auto silent = std::make_shared<std::atomic<bool>>(false);
  story.installation->proxy().set_hooks({.before = [silent](const ApiRequest& request) {
    if (request.is("create", "pods")) *silent = true;
    return *silent ? Decision::hang() : Decision::forward();
  }});
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "c"}, .selected_node = "node-1"})));
  REQUIRE(story.installation->proxy().wait_for_record(
      [](const ProxyRecord& record) { return record.request.is("create", "pods"); }, seconds(20)));
}

TEST_CASE("a daemon asked to stop while helper pods run ends soon and goes on where it stood") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const std::string quick = change_script(story, "setup", "sleep 2");
  constexpr int kClaims = 5;
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"app", "c" + std::to_string(i)}, .selected_node = "node-1"})));
  }
  wait_for(story, "the helper pods run", [&]() -> std::string {
    const auto pods = story.admin().list(k8s::kPods, kDaemonNamespace);
    if (!pods.ok()) return pods.error().message;
    return pods->size() == kClaims ? "" : std::to_string(pods->size());
  });
  const auto ended = LPP_MUST(story.installation->daemon().terminate(seconds(12)));
  CHECK(ended.exit == ChildExit{});
  CHECK(ended.took < milliseconds(is_sanitized() ? 5000 : 3000));
  // The lease was released: the next one starts without waiting for it to run out.
  LPP_MUST(story.installation->start_daemon(Installation::OldLease::kKeep));
  LPP_MUST(story.installation->wait_ready());
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.audit.wait_bound({"app", "c" + std::to_string(i)}));
  }
  LPP_MUST(story.audit.wait_clean());
}

TEST_CASE("a second signal ends the daemon at once") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  wait_for_log(story, "leading identity=");
  // A call that gets no answer keeps the daemon from ending at the first signal.
  silent_from_the_first_helper_pod(story);
  story.installation->daemon().signal(SIGTERM);
  CHECK_FALSE(story.installation->daemon().wait(milliseconds(50)).has_value());
  story.installation->daemon().signal(SIGTERM);
  const auto exit = story.installation->daemon().wait(seconds(is_sanitized() ? 6 : 2));
  REQUIRE(exit.has_value());
  CHECK(*exit == ChildExit{.code = 1});
}

TEST_CASE("a daemon asked to stop ends within 12 seconds while the API server is silent") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  wait_for_log(story, "leading identity=");
  silent_from_the_first_helper_pod(story);
  LPP_MUST(story.installation->stop_daemon());
}

TEST_CASE("a daemon asked to stop before the API server ever answered ends soon") {
  StoryBed story;
  story.start();
  LPP_MUST(story.installation->stop_daemon());
  auto& proxy = story.installation->proxy();
  const std::size_t before = proxy.records().size();
  proxy.set_hooks({.before = [](const ApiRequest&) { return Decision::cut_before(); }});
  LPP_MUST(story.installation->start_daemon(Installation::OldLease::kKeep));
  wait_for(story, "it asks",
           [&]() -> std::string { return proxy.records().size() > before ? "" : "no request"; });
  const auto ended = LPP_MUST(story.installation->daemon().terminate(seconds(12)));
  CHECK(ended.exit == ChildExit{});
  CHECK(ended.took < milliseconds(is_sanitized() ? 5000 : 3000));
}

TEST_CASE("a standby takes over when the leader is killed, and nothing is done twice") {
  const std::vector<std::string> quick_lease = {"--leader-elect-lease-duration=4s",
                                                "--leader-elect-renew-deadline=3s",
                                                "--leader-elect-retry-period=1s"};
  StoryBed story(quick_lease);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const TempDir folder;
  const auto standby = LPP_MUST(Installation::create(
      *story.bed,
      {.daemon = daemon_program(), .folder = folder.path(), .extra_args = quick_lease}));
  LPP_MUST(standby->start_daemon(Installation::OldLease::kKeep));

  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  change_script(story, "setup", "sleep 1");
  constexpr int kClaims = 10;
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"app", "c" + std::to_string(i)}, .selected_node = "node-1"})));
  }
  REQUIRE(story.installation->proxy().wait_for_record(
      [](const ProxyRecord& record) { return record.request.is("create", "pods"); }, seconds(20)));
  story.installation->kill_daemon();
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.audit.wait_bound({"app", "c" + std::to_string(i)}));
  }
  LPP_MUST(story.audit.wait_clean());
  CHECK(pods_made(pods) == kClaims);
  LPP_MUST(standby->wait_ready());
  // Before it led, the standby wrote nothing but the lease.
  bool led = false;
  for (const ProxyRecord& record : standby->proxy().records()) {
    led = led || record.request.is("update", "leases");
    if (!led) CHECK_FALSE(record.request.is_write());
  }
  LPP_MUST(standby->stop_daemon());
}

TEST_CASE("what was begun before a crash is finished where it was begun, whatever has changed") {
  StoryBed story;
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  const k8s::ObjectKey key{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = key, .selected_node = "node-1"})));
  REQUIRE(story.installation->proxy().wait_for_record(
      [](const ProxyRecord& record) {
        return record.request.is("create", "pods") && record.status == 201;
      },
      seconds(20)));
  story.installation->kill_daemon();
  REQUIRE(pods.wait_for(1));
  SUBCASE("the base path") {
    nlohmann::json other = {{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"}};
    other["paths"] = nlohmann::json::array({"/srv/other"});
    LPP_MUST(story.installation->write_config({{"nodePathMap", nlohmann::json::array({other})}}));
    LPP_MUST(story.installation->start_daemon());
    const auto volume = LPP_MUST(story.audit.wait_bound(key));
    CHECK_FALSE(volume.path.starts_with("/srv/other"));
    LPP_MUST(story.audit.wait_clean());
    CHECK(pods_made(pods) == 1);
  }
  SUBCASE("the claim is gone") {
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, key));
    LPP_MUST(story.installation->start_daemon());
    LPP_MUST(story.audit.wait_clean());
    CHECK(pods_made(pods) == 2);
  }
}

}  // namespace
}  // namespace lpp::testing
