// SPDX-License-Identifier: Apache-2.0
// Who leads, and who must not write any more: leaders that are cut off, paused or replaced.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "harness/process_probe.h"
#include "harness/standby.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

using std::chrono::seconds;

constexpr seconds kLeaseDuration{4};
constexpr int kClaimsAtOnce = 10;

using Arguments = std::vector<std::string>;

Arguments lease_args() {
  return {"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s",
          "--leader-elect-retry-period=1s"};
}

bool renews_lease(const ApiRequest& request, int status) {
  return request.is("update", "leases") && status == 200;
}

/// Two replicas; the first one leads, and its helper pods take a second. Agents know both. The
/// other one has the lease when it is let, not when a busy machine keeps the first one from it.
struct TwoReplicas : StoryBed {
  explicit TwoReplicas(By executor, const Arguments& arguments = lease_args())
      : StoryBed(arguments, {.manifest = repository("deploy/local-path-storage.yaml")}, executor),
        standby(LPP_MUST(Installation::create(
            *bed, {.daemon = daemon_program(),
                   .folder = standby_folder.path(),
                   .extra_args = agents ? agents->with_port(arguments) : arguments,
                   .env = {}}))) {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
    wait_for_log(*this, "leading identity=");
    standby->proxy().set_hooks(
        {.before = [this](const ApiRequest& request) { return standby_before(request); }});
    LPP_MUST(standby->start_daemon(Installation::OldLease::kKeep));
    LPP_MUST(standby->wait_ready());
    for (const char* node : {"node-1", "node-2"}) {
      ++wanted;
      const k8s::ObjectKey key{"app", std::string("before-on-") + node};
      LPP_MUST(admin().create(claim_object({.key = key, .selected_node = node})));
      wait_bound_and_write(key);
    }
    LPP_MUST(audit.wait_clean());
    installation->proxy().clear_records();
    if (by == By::kHelperPods) change_script(*this, "setup", "sleep 1");
  }
  void make_claims(int first) {
    wanted += kClaimsAtOnce;
    for (int i = first; i < first + kClaimsAtOnce; ++i) {
      LPP_MUST(admin().create(claim_object({.key = {"app", "c" + std::to_string(i)},
                                            .selected_node = i % 2 ? "node-1" : "node-2"})));
    }
  }
  /// They are bound, and what has been written to any volume is there.
  void check_claims(int first) {
    for (int i = first; i < first + kClaimsAtOnce; ++i) {
      wait_bound_and_write({"app", "c" + std::to_string(i)});
    }
    LPP_MUST(audit.wait_clean());
    for (const auto& one : volumes) {
      const auto& volume = one.second;
      CAPTURE(one.first.name);
      CHECK(LPP_MUST(audit.bound_volume(one.first)).disk == volume.disk);
      CHECK(text_of(volume.disk + "/data") == one.first.name);
    }
    if (agents) check_made_by_agents();
  }
  /// When all are bound: each once.
  void check_made_by_agents() {
    CHECK(pods_asked_for(*installation) + pods_asked_for(*standby) == 0);
    if (written < wanted) return;
    CHECK(made_by_agent(*this, "node-1") + made_by_agent(*this, "node-2") == wanted);
  }
  /// Claims whose work is begun and not yet over: of helper pods that run, or of an agent that has
  /// not heard of it yet.
  void begin_claims(int first) {
    if (agents) agents->freeze("node-1");
    make_claims(first);
    if (!agents) return wait_first_pod();
    wait_work_is_given_away(kClaimsAtOnce / 2);
  }
  /// That many helper pods that are dead nodes' are there, or orders that agents have not taken;
  /// the leader has written what it has to before they end.
  void wait_work_is_given_away(int count) {
    wait_for(*this, "the nodes have work to do", [&]() -> std::string {
      if (agents) {
        const auto works = LPP_MUST(metric(*this, "local_path_provisioner_agent_operations"));
        return works == std::to_string(count) ? "" : works;
      }
      const auto records = installation->proxy().records();
      const auto made = std::count_if(records.begin(), records.end(), [](const auto& record) {
        return record.request.is("create", "pods") && record.status == 201;
      });
      return made == count ? "" : std::to_string(made);
    });
  }
  void go_on() {
    if (agents) agents->thaw("node-1");
  }
  void wait_first_pod() {
    REQUIRE(installation->proxy().wait_for_record(
        [](const ProxyRecord& record) { return record.request.is("create", "pods"); },
        bed->patience().limit));
  }
  Decision standby_before(const ApiRequest& request) const {
    return as_standby(request, standby_may_lead);
  }
  void wait_standby_leads() {
    standby_may_lead = true;
    REQUIRE(standby->proxy().wait_for_record(
        [](const ProxyRecord& record) { return renews_lease(record.request, record.status); },
        bed->patience().limit));
  }
  VolumeFacts wait_bound_and_write(const k8s::ObjectKey& key) {
    const auto volume = LPP_MUST(audit.wait_bound(key));
    if (volumes.emplace(key, volume).second) {
      std::ofstream(volume.disk + "/data") << key.name;
      ++written;
    }
    return volume;
  }

  std::atomic<bool> standby_may_lead = false;
  const TempDir standby_folder;
  const std::unique_ptr<Installation> standby;
  std::map<k8s::ObjectKey, VolumeFacts> volumes;  // with data
  int wanted = 0;                                 // claims, over all
  int written = 0;
};

bool is_leaders_work(const ApiRequest& request) {
  return request.is_write() && request.resource != "leases" && request.resource != "events";
}

/// What the first one writes when its lease is over. It is in the middle of nothing then, with much
/// to do as soon as the nodes go on: nothing keeps a write that was looked at a moment ago from
/// being sent.
class AfterTheLease {
 public:
  /// The nodes are dead, and have work to do. This outlives the story.
  void watch(TwoReplicas& story) {
    story.standby->proxy().set_hooks({
        .before = [&story](const ApiRequest& request) { return story.standby_before(request); },
        .after =
            [this](const ApiRequest& request, int status) {
              if (renews_lease(request, status)) is_over_ = true;
            },
    });
    story.installation->proxy().set_hooks({
        .before = [this](const ApiRequest& request) { return before(request); },
        .after =
            [this](const ApiRequest& request, int status) {
              // As it may, if the other one comes to a halt.
              if (is_over_ && renews_lease(request, status)) leads_again_ = true;
            },
    });
    for (const char* node : {"node-1", "node-2"}) set_dead(story, node, true);
    story.make_claims(0);
    story.wait_work_is_given_away(kClaimsAtOnce);
  }
  /// The nodes go on, and both have much to do.
  void go_on(TwoReplicas& story) {
    for (const char* node : {"node-1", "node-2"}) set_dead(story, node, false);
    story.make_claims(kClaimsAtOnce);
  }
  /// Returns when the lease is over.
  void cut_off_from_lease() {
    cut_off_ = true;
    std::this_thread::sleep_for(kLeaseDuration);
    is_over_ = true;
  }
  std::string writes() const {
    MutexLock lock(mutex_);
    return writes_;
  }

 private:
  Decision before(const ApiRequest& request) {
    // Only the lease is out of reach: nothing but the leader itself keeps it from its work.
    if (cut_off_ && request.resource == "leases") return Decision::cut_before();
    if (is_over_ && !leads_again_ && is_leaders_work(request)) {
      MutexLock lock(mutex_);
      writes_ += request.to_string() + "\n";
    }
    return Decision::forward();
  }

  std::atomic<bool> cut_off_ = false;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> leads_again_ = false;
  mutable Mutex mutex_;
  std::string writes_ LPP_GUARDED_BY(mutex_);
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a leader that cannot renew stops writing before another one can lead") {
  AfterTheLease first;
  TwoReplicas story(by);
  first.watch(story);
  first.cut_off_from_lease();
  first.go_on(story);
  story.wait_standby_leads();
  story.check_claims(0);
  story.check_claims(kClaimsAtOnce);
  CHECK(first.writes() == "");
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a leader that slept while another one took over writes nothing when it wakes up") {
  AfterTheLease first;
  TwoReplicas story(by);
  first.watch(story);
  REQUIRE(freeze(story.installation->daemon().pid()));
  story.wait_standby_leads();
  first.go_on(story);
  story.installation->daemon().signal(SIGCONT);
  story.check_claims(0);
  story.check_claims(kClaimsAtOnce);
  CHECK(first.writes() == "");
  CHECK(story.installation->daemon().alive());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a leader that is stopped hands over at once, as in a rolling update") {
  // Longer than is waited for the other one.
  TwoReplicas story(by, {"--leader-elect-lease-duration=600s", "--leader-elect-renew-deadline=400s",
                         "--leader-elect-retry-period=1s"});
  story.begin_claims(0);
  const std::string leader = holder_of_lease(story);
  LPP_MUST(story.installation->stop_daemon(seconds(9)));
  CHECK(holder_of_lease(story) != leader);  // nobody waits for the lease to run out
  story.wait_standby_leads();
  story.go_on();
  // The new version of the first one becomes the standby while claims come.
  LPP_MUST(story.installation->start_daemon(Installation::OldLease::kKeep));
  story.make_claims(kClaimsAtOnce);
  LPP_MUST(story.installation->wait_ready());
  LPP_MUST(story.standby->stop_daemon());
  story.check_claims(0);
  story.check_claims(kClaimsAtOnce);
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "both replicas are killed, and what they had begun is finished once") {
  TwoReplicas story(by);
  story.begin_claims(0);
  story.standby->kill_daemon();
  story.installation->kill_daemon();
  story.standby_may_lead = true;
  LPP_MUST(story.standby->start_daemon(Installation::OldLease::kKeep));
  story.go_on();
  story.check_claims(0);
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "a lease that is removed or edited by hand is had again, and nothing is done twice") {
  TwoReplicas story(by);
  story.standby_may_lead = true;
  const k8s::ObjectKey lease{kDaemonNamespace, kDaemonLease};
  SUBCASE("removed") { LPP_MUST(story.admin().remove(k8s::kLeases, lease)); }
  SUBCASE("given to somebody else") {
    LPP_MUST(story.admin().merge(
        k8s::kLeases, lease,
        {{"spec", {{"holderIdentity", "somebody"}, {"leaseDurationSeconds", 2}}}}));
  }
  SUBCASE("given to nobody") {
    LPP_MUST(story.admin().merge(k8s::kLeases, lease, {{"spec", {{"holderIdentity", ""}}}}));
  }
  story.make_claims(0);
  story.check_claims(0);
}

TEST_CASE("a leader that does not know a claim yet leaves its directory to the other leader") {
  const auto asks_for_claim = [](const ProxyRecord& record) {
    return record.request.is("list", "persistentvolumeclaims") &&
           !query_value(record.request.target, "fieldSelector").empty();
  };
  const auto makes_pod = [](const ProxyRecord& record) {
    return record.request.is("create", "pods");
  };
  const auto makes_volume = [](const ProxyRecord& record) {
    return record.request.is("create", "persistentvolumes");
  };
  // With a lease as long as that the one who is cut off from it still believes that he leads.
  TwoReplicas story(By::kHelperPods,
                    {"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s",
                     "--leader-elect-retry-period=1s"});
  FaultProxy& old_leader = story.installation->proxy();
  FaultProxy& new_leader = story.standby->proxy();
  old_leader.set_hooks({
      .before =
          [](const ApiRequest& request) {
            return request.resource == "leases" ? Decision::hang() : Decision::forward();
          },
      .frame =
          [](const ApiRequest& request, std::string_view) {
            return request.resource == "persistentvolumeclaims" ? FrameAction::kDrop
                                                                : FrameAction::kForward;
          },
  });
  // The new leader's volume comes after the old one has made up his mind.
  new_leader.set_hooks({.before = [](const ApiRequest& request) {
    return request.is("create", "persistentvolumes") ? Decision::hang() : Decision::forward();
  }});
  LPP_MUST(story.admin().remove(k8s::kLeases, {kDaemonNamespace, kDaemonLease}));
  story.wait_standby_leads();
  const k8s::ObjectKey key{"app", "data"};
  LPP_MUST(story.admin().create(claim_object({.key = key, .selected_node = "node-1"})));
  CHECK(old_leader.wait_for_record(
      [&](const ProxyRecord& record) { return asks_for_claim(record) || makes_pod(record); },
      story.bed->patience().limit));
  // Either may be the first to see that the helper pod has ended.
  REQUIRE(new_leader.wait_for_record(makes_volume, story.bed->patience().limit));
  new_leader.set_hooks({});
  new_leader.release_hung();
  const VolumeFacts volume = LPP_MUST(story.audit.wait_bound(key));
  LPP_MUST(story.audit.wait_clean());
  for (const ProxyRecord& record : old_leader.records()) {
    CAPTURE(record.request.body);
    CHECK_FALSE(makes_pod(record));
  }

  // The claim goes, and with it the directory.
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, key));
  LPP_MUST(story.audit.wait_deleted(key, volume));
}

LPP_PODS_AND_AGENTS_TEST_CASE("a new leader knows what its watches did not tell it before") {
  std::atomic<bool> held_back = true;
  TwoReplicas story(by);  // goes first: its proxy uses the other
  story.standby->proxy().set_hooks({
      .before =
          [&](const ApiRequest& request) {
            // From the new leader's first renewal on.
            const Decision decision = story.standby_before(request);
            if (request.is("update", "leases") && story.standby_may_lead) held_back = false;
            return decision;
          },
      .frame =
          [&](const ApiRequest&, std::string_view) {
            return held_back ? FrameAction::kDrop : FrameAction::kForward;
          },
  });
  // The first volume is lost while nobody leads, the second claim is new.
  story.make_claims(0);
  story.check_claims(0);
  const k8s::ObjectKey gone{"app", "c0"};
  const VolumeFacts volume = LPP_MUST(story.audit.wait_bound(gone));
  story.volumes.erase(gone);
  story.installation->kill_daemon();
  story.standby_may_lead = true;
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, gone));
  story.make_claims(kClaimsAtOnce);
  story.check_claims(kClaimsAtOnce);
  LPP_MUST(story.audit.wait_deleted(gone, volume));
}

}  // namespace
}  // namespace lpp::testing
