// SPDX-License-Identifier: Apache-2.0
// Stops, restarts and replicas of the daemon.

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <memory>

#include "harness/standby.h"
#include "harness/watch_tape.h"
#include "support/story_steps.h"
#include "support/trouble.h"

namespace lpp::testing {
namespace {

using std::chrono::seconds;

/// What the daemon writes first when it makes a volume.
const char* first_written(By by) { return by == By::kHelperPods ? "pods" : "persistentvolumes"; }

// A claim comes, and from the creation of its helper pod or volume on the API server answers
// nothing more. Everything before must be answered: the leader may still be reading what there is.
void silent_in_the_middle(StoryBed& story) {
  const std::string first = first_written(story.by);
  auto silent = std::make_shared<std::atomic<bool>>(false);
  story.installation->proxy().set_hooks({.before = [silent, first](const ApiRequest& request) {
    if (request.is("create", first)) *silent = true;
    return *silent ? Decision::hang() : Decision::forward();
  }});
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "c"}, .selected_node = "node-1"})));
  REQUIRE(story.installation->proxy().wait_for_record(
      [&](const ProxyRecord& record) { return record.request.is("create", first); },
      story.bed->patience().limit));
}

/// Helper pods do not end, or the node's agent does not hear of its orders, until go_on().
void hold_work(StoryBed& story, Trouble& trouble) {
  if (!story.agents) return trouble.hold(Trouble::Kind::kMake, Trouble::Moment::kAfter);
  story.agents->freeze("node-1");
}
void wait_begun(StoryBed& story, std::size_t count) {
  wait_for(story, "the work is begun", [&]() -> std::string {
    if (story.agents) {
      const auto begun = LPP_MUST(metric(story, "local_path_provisioner_agent_operations"));
      return begun == std::to_string(count) ? "" : begun;
    }
    const auto pods = story.admin().list(k8s::kPods, kDaemonNamespace);
    if (!pods.ok()) return pods.error().message;
    return pods->size() == count ? "" : std::to_string(pods->size());
  });
}
void go_on(StoryBed& story, Trouble& trouble) {
  if (!story.agents) return trouble.end();
  story.agents->thaw("node-1");
}

/// Calls of API clients and agents are given up after 10 s.
constexpr seconds kSoonerThanCalls{9};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon asked to stop in the middle of work ends soon and goes on where it stood") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  Trouble trouble(story);
  hold_work(story, trouble);
  constexpr int kClaims = 5;
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"app", "c" + std::to_string(i)}, .selected_node = "node-1"})));
  }
  wait_begun(story, kClaims);
  // The work ends only later: who waits for it is killed, and who waits for a call to time out.
  LPP_MUST(story.installation->stop_daemon(kSoonerThanCalls));
  // The next one need not wait for the lease to run out.
  CHECK(holder_of_lease(story) == "");
  LPP_MUST(story.installation->start_daemon(Installation::OldLease::kKeep));
  LPP_MUST(story.installation->wait_ready());
  go_on(story, trouble);
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.audit.wait_bound({"app", "c" + std::to_string(i)}));
  }
  LPP_MUST(story.audit.wait_clean());
}

/// False when this machine was so busy that the first signal may have ended it alone, as it does
/// after some seconds.
bool judge_two_signals(By by) {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  wait_for_log(story, "leading identity=");
  // A call that gets no answer keeps the daemon from ending at the first signal.
  silent_in_the_middle(story);
  auto& daemon = story.installation->daemon();
  const auto since = std::chrono::steady_clock::now();
  daemon.signal(SIGTERM);
  wait_for(story, "it has heard the first signal", [&]() -> std::string {
    const auto ready = http_get(daemon.health_port(), "/ready", story.bed->patience().limit);
    return ready.ok() && ready->status == 200 ? "it is ready" : "";
  });
  daemon.signal(SIGTERM);
  const bool is_judged = std::chrono::steady_clock::now() - since < seconds(3);
  const auto exit = daemon.wait(story.bed->patience().limit);
  REQUIRE(exit.has_value());
  // By the first one it would end too, some seconds later and with code 0.
  if (is_judged) CHECK(*exit == ChildExit{.code = 1});
  return is_judged;
}

LPP_PODS_AND_AGENTS_TEST_CASE("a second signal ends the daemon at once") {
  try_until_judged([&] { return judge_two_signals(by); });
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon asked to stop ends within 12 seconds while the API server is silent") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  wait_for_log(story, "leading identity=");
  silent_in_the_middle(story);
  LPP_MUST(story.installation->stop_daemon());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon asked to stop after it has lost its lease does not wait for calls without an "
    "answer") {
  const std::string first = first_written(by);
  std::atomic<bool> silent = false;
  // Soon seen to be another's, and long enough for a machine that is busy.
  StoryBed story({"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s",
                  "--leader-elect-retry-period=1s"},
                 {.manifest = repository("deploy/local-path-storage.yaml")}, by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  wait_for_log(story, "leading identity=");
  // Writes end with the lease, what is read does not.
  story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
    if (silent) {
      return request.resource == "leases" ? Decision::forward() : Decision::hang();
    }
    if (!request.is("create", first)) return Decision::forward();
    silent = true;
    return Decision::reply(409, "AlreadyExists");
  }});
  LPP_MUST(story.admin().create(claim_object({.key = {"app", "c"}, .selected_node = "node-1"})));
  wait_for(story, "the API server is silent",
           [&]() -> std::string { return silent ? "" : "it is not"; });
  LPP_MUST(story.admin().merge(k8s::kLeases, {kDaemonNamespace, kDaemonLease},
                               {{"spec", {{"holderIdentity", "somebody-else"}}}}));
  wait_for_log(story, "leadership is lost");
  LPP_MUST(story.installation->stop_daemon());
  wait_for_log(story, "their calls are cut short");
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a daemon asked to stop before the API server ever answered ends soon") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.installation->stop_daemon());
  auto& proxy = story.installation->proxy();
  const std::size_t before = proxy.records().size();
  proxy.set_hooks({.before = [](const ApiRequest&) { return Decision::cut_before(); }});
  LPP_MUST(story.installation->start_daemon(Installation::OldLease::kKeep));
  wait_for(story, "it asks",
           [&]() -> std::string { return proxy.records().size() > before ? "" : "no request"; });
  LPP_MUST(story.installation->stop_daemon(kSoonerThanCalls));
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a standby takes over when the leader is killed, and nothing is done twice") {
  const std::vector<std::string> quick_lease = {"--leader-elect-lease-duration=4s",
                                                "--leader-elect-renew-deadline=3s",
                                                "--leader-elect-retry-period=1s"};
  std::atomic<bool> killed = false;
  StoryBed story(quick_lease, {.manifest = repository("deploy/local-path-storage.yaml")}, by);
  const TempDir folder;
  const auto standby = LPP_MUST(Installation::create(
      *story.bed,
      {.daemon = daemon_program(),
       .folder = folder.path(),
       .extra_args = story.agents ? story.agents->with_port(quick_lease) : quick_lease}));
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  wait_for_log(story, "leading identity=");
  // Not before, though a busy machine keeps the leader from its lease.
  standby->proxy().set_hooks(
      {.before = [&killed](const ApiRequest& request) { return as_standby(request, killed); }});
  LPP_MUST(standby->start_daemon(Installation::OldLease::kKeep));

  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  if (by == By::kHelperPods) change_script(story, "setup", "sleep 1");
  constexpr int kClaims = 10;
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.admin().create(
        claim_object({.key = {"app", "c" + std::to_string(i)}, .selected_node = "node-1"})));
  }
  const std::string first = first_written(by);
  REQUIRE(story.installation->proxy().wait_for_record(
      [&](const ProxyRecord& record) { return record.request.is("create", first); },
      story.bed->patience().limit));
  story.installation->kill_daemon();
  killed = true;
  for (int i = 0; i < kClaims; ++i) {
    LPP_MUST(story.audit.wait_bound({"app", "c" + std::to_string(i)}));
  }
  LPP_MUST(story.audit.wait_clean());
  if (by == By::kHelperPods) CHECK(pods_made(pods, kClaims) == kClaims);
  if (by == By::kAgents) {
    CHECK(pods_asked_for(story) + pods_asked_for(*standby) == 0);
    CHECK(made_by_agent(story, "node-1") == kClaims);
  }
  LPP_MUST(standby->wait_ready());
  // Before it led, the standby wrote nothing but the lease.
  bool led = false;
  for (const ProxyRecord& record : standby->proxy().records()) {
    led = led || (record.request.is("update", "leases") && record.status == 200);
    if (!led && record.request.resource != "leases") CHECK_FALSE(record.request.is_write());
  }
  LPP_MUST(standby->stop_daemon());
}

/// Killed when the first thing is written for the claim's volume, or when it is about to be.
void kill_in_the_middle(StoryBed& story, const k8s::ObjectKey& key) {
  Installation& installation = *story.installation;
  if (story.agents) {
    installation.proxy().set_hooks({.before = [&installation](const ApiRequest& request) {
      if (!request.is("create", "persistentvolumes")) return Decision::forward();
      installation.kill_daemon();
      return Decision::cut_before();
    }});
  }
  LPP_MUST(story.admin().create(claim_object({.key = key, .selected_node = "node-1"})));
  const std::string first = first_written(story.by);
  REQUIRE(installation.proxy().wait_for_record(
      [&](const ProxyRecord& record) {
        return record.request.is("create", first) && (story.agents || record.status == 201);
      },
      story.bed->patience().limit));
  installation.proxy().set_hooks({});
  installation.kill_daemon();
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "what was begun before a crash is finished where it was begun, whatever has changed") {
  StoryBed story(by);
  story.start();
  LPP_MUST(story.admin().apply(namespace_object("app")));
  const WatchTape pods(story.admin(), k8s::kPods, kDaemonNamespace, {});
  const k8s::ObjectKey key{"app", "data"};
  kill_in_the_middle(story, key);
  if (by == By::kHelperPods) REQUIRE(pods.wait_for(1));
  // With agents those of the agents alone.
  const std::ptrdiff_t others = by == By::kHelperPods ? 0 : 2;
  const auto helper_pods_made = [&](std::ptrdiff_t at_least) {
    return pods_made(pods, at_least + others) - others;
  };
  SUBCASE("the base path") {
    nlohmann::json other = {{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"}};
    other["paths"] = nlohmann::json::array({"/srv/other"});
    LPP_MUST(story.installation->write_config({{"nodePathMap", nlohmann::json::array({other})}}));
    LPP_MUST(story.installation->start_daemon());
    const auto volume = LPP_MUST(story.audit.wait_bound(key));
    CHECK_FALSE(volume.path.starts_with("/srv/other"));
    LPP_MUST(story.audit.wait_clean());
    const std::ptrdiff_t made = by == By::kHelperPods ? 1 : 0;
    CHECK(helper_pods_made(made) == made);
  }
  SUBCASE("the claim is gone") {
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, key));
    LPP_MUST(story.installation->start_daemon());
    wait_for(story, "no directory is left", [&]() -> std::string {
      const auto left = story.audit.directories();
      return left.empty() ? "" : left.front();
    });
    LPP_MUST(story.audit.wait_clean());
    const std::ptrdiff_t made = by == By::kHelperPods ? 2 : 0;
    CHECK(helper_pods_made(made) == made);
  }
}

}  // namespace
}  // namespace lpp::testing
