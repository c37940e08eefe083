// SPDX-License-Identifier: Apache-2.0
// The daemon with agents on the nodes, all of them real processes.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "agent/protocol.h"
#include "fakes/builders.h"
#include "harness/raw_client.h"
#include "helperpod/manifest.h"
#include "support/agent_story.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using agent::kHelloTarget;
using agent::kPollTarget;
using agent::kTellTarget;
using nlohmann::json;

using Steady = std::chrono::steady_clock;

std::int64_t ms_since(Steady::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin).count();
}

TEST_CASE("with agents a claim becomes a directory and goes again without any helper pod") {
  AgentStory story;
  story.start_with_all();
  std::vector<std::int64_t> made;
  std::vector<std::int64_t> removed;
  for (int i = 0; i < 10; ++i) {
    const auto begin = Steady::now();
    const auto claim = story.want("data" + std::to_string(i), i % 2 == 0 ? "node-1" : "node-2");
    const auto volume = story.wait_bound_and_write(claim);
    made.push_back(ms_since(begin));
    CHECK(volume.node == (i % 2 == 0 ? "node-1" : "node-2"));
    CHECK((fs::status(volume.disk).permissions() & fs::perms::mask) == fs::perms::all);
    const auto going = Steady::now();
    story.remove_and_wait(claim, volume);
    removed.push_back(ms_since(going));
  }
  std::sort(made.begin(), made.end());
  std::sort(removed.begin(), removed.end());
  MESSAGE("from claim to bound: ", made.front(), " ms at best, ", made[made.size() / 2],
          " ms in the middle; from deletion to gone: ", removed.front(), " and ",
          removed[removed.size() / 2], " ms");
  CHECK(story.helper_pods_made() == 0);
  story.wait_for_metric("local_path_provisioner_agents_connected 2");
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  const std::string page = story.page("/metrics");
  const std::string expiry =
      "\nlocal_path_provisioner_agents_certificate_expiry_timestamp_seconds ";
  REQUIRE(page.find(expiry) != std::string::npos);
  CHECK(std::stod(page.substr(page.find(expiry) + expiry.size())) >
        static_cast<double>(std::time(nullptr)));
  const std::string own = page_at(story.agents->of("node-1").health_port(), "/metrics");
  for (const char* line : {
           "local_path_provisioner_agent_connected 1",
           "local_path_provisioner_agent_operation_duration_seconds_count{operation=\"provision\","
           "result=\"succeeded\"} 5",
           "local_path_provisioner_agent_operation_duration_seconds_count{operation=\"delete\","
           "result=\"succeeded\"} 5",
       }) {
    CAPTURE(own);
    CHECK(own.find("\n" + std::string(line) + "\n") != std::string::npos);
  }
  LPP_MUST(story.audit.wait_clean());
  story.wait_no_records();
  LPP_MUST(story.installation->stop_daemon());
  for (const auto& node : story.bed->nodes()) {
    CHECK(LPP_MUST(story.agents->of(node).terminate(std::chrono::seconds(15))) == ChildExit{});
  }
}

TEST_CASE("an agent killed in the middle of many claims costs none of them") {
  AgentStory story;
  story.start_with_all();
  const auto claims = story.want_many(30);
  story.wait_directories(4);
  story.agents->start("node-1");  // the former one is killed
  for (const auto& claim : claims) story.wait_bound_and_write(claim);
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.audit.directories().size() == claims.size());

  for (const auto& claim : claims) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
  }
  wait_for(story, "some directories are gone", [&]() -> std::string {
    return story.audit.directories().size() < claims.size() - 3 ? "" : "not yet";
  });
  story.agents->start("node-1");
  story.remove_all({});
}

TEST_CASE("agents come back to the next daemon, with nothing done twice and nothing lost") {
  AgentStory story;
  story.start_with_all();
  const auto claims = story.want_many(30);
  story.wait_directories(4);
  story.installation->kill_daemon();
  LPP_MUST(story.installation->start_daemon());
  std::vector<VolumeFacts> volumes;
  for (const auto& claim : claims) volumes.push_back(story.wait_bound_and_write(claim));
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.audit.directories().size() == claims.size());
  for (const auto& node : story.bed->nodes()) story.agents->wait_connected(node);

  // Half of them go, while the daemon is killed again.
  for (std::size_t i = 0; i < claims.size(); i += 2) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claims[i]));
  }
  wait_for(story, "a directory is gone", [&]() -> std::string {
    return story.audit.directories().size() < claims.size() ? "" : "not yet";
  });
  story.installation->kill_daemon();
  LPP_MUST(story.installation->start_daemon());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (i % 2 == 0) LPP_MUST(story.audit.wait_deleted(claims[i], volumes[i]));
    if (i % 2 == 1) CHECK(text_of(volumes[i].disk + "/below/data") == kTenantsData);
  }
  LPP_MUST(story.audit.wait_clean());
  for (std::size_t i = 1; i < claims.size(); i += 2) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claims[i]));
  }
  story.remove_all({});
}

TEST_CASE("nodes with and without an agent live side by side, and agents come and go") {
  AgentStory story;
  story.start_with({"node-1"});
  const auto here = story.want("here", "node-1");
  const auto there = story.want("there", "node-2");
  const auto by_agent = story.wait_bound_and_write(here);
  const auto by_pod = story.wait_bound_and_write(there);
  CHECK(story.helper_pods_made() == 1);

  story.agents->start("node-2");
  story.agents->wait_connected("node-2");
  const auto late = story.want("late", "node-2");
  const auto moved = story.wait_bound_and_write(late);
  // Each can remove what the other has made.
  story.remove_and_wait(there, by_pod);
  CHECK(story.helper_pods_made() == 1);
  story.agents->of("node-1").kill();
  // Whether it is at work all the same nobody knows until its pod is gone, too.
  LPP_MUST(story.admin().remove(k8s::kPods, {kDaemonNamespace, "agent-node-1"}, 0));
  story.remove_and_wait(here, by_agent);
  CHECK(story.helper_pods_made() == 2);
  story.remove_and_wait(late, moved);
  CHECK(story.helper_pods_made() == 2);
  LPP_MUST(story.audit.wait_empty());
}

TEST_CASE("what helper pods have begun when an agent comes is ended by them, what is left by it") {
  AgentStory story;
  story.start_with({"node-1"});
  constexpr int kBurst = 50;
  constexpr int kPods = 40;  // of 50 helper pods on one node, a fifth is for removals
  std::vector<fs::path> holds;
  for (const auto& base : story.bed->base_paths()) {
    holds.emplace_back(story.bed->on_disk("node-2", base) + "/.hold");
  }
  SUBCASE("their pods wait for the kubelet") {
    story.bed->cluster().nodes().set_faults("node-2", {.dead = true});
  }
  SUBCASE("their scripts are at work") {
    change_script(story, "setup",
                  "while [ -e \"${VOL_BASE_DIR:-${VOL_DIR%/*}}/.hold\" ]; do sleep 0.5; done");
    for (const auto& file : holds) {
      fs::create_directories(file.parent_path());
      std::ofstream(file).close();
    }
  }
  const bool at_work = fs::exists(holds.front());
  std::vector<k8s::ObjectKey> claims;
  for (int i = 0; i < kBurst; ++i) {
    claims.push_back(story.want("c" + std::to_string(i), "node-2"));
  }
  wait_for(story, "as many helper pods as there may be", [&]() -> std::string {
    const auto pods = LPP_MUST(story.admin().list(k8s::kPods, kDaemonNamespace,
                                                  helperpod::label_selector(kProvisionerName)));
    for (const auto& pod : pods) {
      const std::string now = pod["status"].value("phase", "");
      if (at_work && now != "Running") return "one is " + now;
    }
    return pods.size() == kPods ? "" : std::to_string(pods.size());
  });

  story.agents->start("node-2");
  const auto bound = [&] {
    return std::count_if(claims.begin(), claims.end(),
                         [&](const auto& claim) { return story.audit.bound_volume(claim).ok(); });
  };
  wait_for(story, "the rest is made by the agent", [&]() -> std::string {
    const auto now = bound();
    return now == kBurst - kPods ? "" : std::to_string(now);
  });
  const auto late = story.want("late", "node-2");
  story.wait_bound_and_write(late);
  CHECK(made_by_agent(story, "node-2") == kBurst - kPods + 1);
  CHECK(bound() == kBurst - kPods);  // the others are with their pods

  for (const auto& file : holds) fs::remove(file);
  story.bed->cluster().nodes().set_faults("node-2", {});
  claims.push_back(late);
  for (const auto& claim : claims) story.wait_bound_and_write(claim);
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.audit.directories().size() == claims.size());
  CHECK(made_by_agent(story, "node-2") == kBurst - kPods + 1);
  CHECK(story.helper_pods_made() == kPods);
  story.remove_all(claims);
  CHECK(story.helper_pods_made() == kPods);
}

TEST_CASE("what is deleted while an agent is away stays, and goes when it is back") {
  AgentStory story;
  story.start_with_all();
  const auto claim = story.want("data");
  const auto volume = story.wait_bound_and_write(claim);
  const auto other = story.want("other");
  const auto others = story.wait_bound_and_write(other);
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  // Its pod is there all the time: it may be at work.
  const std::string waits = "its pod is there and may be at work";
  bool frozen = false;
  SUBCASE("it hangs") {
    frozen = true;
    story.agents->freeze("node-1");
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    story.wait_for_metric("local_path_provisioner_agent_operations 1");  // on its way
  }
  SUBCASE("it is killed") {
    story.agents->of("node-1").kill();
    // Before that is noticed, a removal is ordered, and waits for it in another way.
    story.wait_for_metric("local_path_provisioner_agents_connected 1");
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    wait_for_log(story, waits);
  }
  SUBCASE("it is killed, and the daemon") {
    story.agents->of("node-1").kill();
    story.installation->kill_daemon();
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    LPP_MUST(story.installation->start_daemon());
    LPP_MUST(story.installation->wait_ready());
    wait_for_log(story, waits);
  }
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  // Nobody else is delayed, and serves the node meanwhile.
  story.wait_bound_and_write(story.want("elsewhere", "node-2"));
  const auto is_there = [&] {
    return LPP_MUST(story.admin().find(k8s::kPersistentVolumes, {"", volume.pv})).has_value();
  };
  CHECK(is_there());
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  CHECK(story.helper_pods_made() == 0);

  if (frozen) story.agents->thaw("node-1");
  if (!frozen) story.agents->start("node-1");
  wait_for(story, "the volume goes", [&]() -> std::string {
    const bool there = is_there();
    // The directory goes first.
    if (!there) CHECK_FALSE(fs::exists(volume.disk));
    return there ? "it is there" : "";
  });
  CHECK(text_of(others.disk + "/below/data") == kTenantsData);
  story.remove_all({other, {"app", "elsewhere"}});
  CHECK(story.helper_pods_made() == 0);
}

TEST_CASE("a certificate that somebody has emptied is made anew, and agents believe it") {
  AgentStory story;
  story.start_with_all();
  story.wait_bound_and_write(story.want("before"));
  story.installation->kill_daemon();
  const k8s::ObjectKey secret{kDaemonNamespace, "local-path-provisioner-agents-tls"};
  const k8s::ObjectKey bundle{kDaemonNamespace, "local-path-provisioner-agents-ca"};
  json emptied = LPP_MUST(story.admin().get(kSecrets, secret))["data"];
  for (auto& value : emptied) value = "";
  LPP_MUST(story.admin().merge(kSecrets, secret, {{"data", emptied}}));
  LPP_MUST(story.admin().merge(k8s::kConfigMaps, bundle, {{"data", {{"ca.crt", ""}}}}));
  LPP_MUST(story.installation->start_daemon());
  LPP_MUST(story.installation->wait_ready());
  story.agents->take_ca();
  story.wait_for_metric("local_path_provisioner_agents_connected 2");
  story.wait_bound_and_write(story.want("after"));
  CHECK(story.helper_pods_made() == 0);
  story.remove_all({{"app", "before"}, {"app", "after"}});
}

TEST_CASE("a volume that is to be kept after all, before its agent has heard, keeps every file") {
  AgentStory story;
  story.start_with_all();
  const auto claim = story.want("data");
  const auto volume = story.wait_bound_and_write(claim);
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  story.agents->freeze("node-1");
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  // Ordered, and on its way.
  story.wait_for_metric("local_path_provisioner_agent_operations 1");
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                               {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}}));
  wait_for_log(story, "removal of the directory is cancelled");
  story.agents->thaw("node-1");
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
}

TEST_CASE("a removal that its agent hears of late is not begun on the word of a cache") {
  AgentStory story;
  story.start_with_all();
  const auto claim = story.want("data");
  const auto volume = story.wait_bound_and_write(claim);
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  story.agents->freeze("node-1");
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  story.wait_for_metric("local_path_provisioner_agent_operations 1");
  // From here on the daemon sees nothing of volumes unless it asks for one.
  story.installation->proxy().set_hooks({.before = [](const ApiRequest& request) {
    const bool many =
        request.is("list", "persistentvolumes") || request.is("watch", "persistentvolumes");
    return many ? Decision::reply(500) : Decision::forward();
  }});
  story.installation->proxy().cut_connections();
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                               {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}}));
  SUBCASE("it was frozen") {
    wait_until_old(story, "delete", 3);  // older than an order is good for
    story.agents->thaw("node-1");
  }
  SUBCASE("it was killed") { story.agents->start("node-1"); }
  wait_for_log(story, "whether it is wanted is asked anew");
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  story.installation->proxy().set_hooks({});
  wait_for(story, "the volume object goes, the directory stays", [&]() -> std::string {
    const auto there = story.admin().find(k8s::kPersistentVolumes, {"", volume.pv});
    return there.ok() && !*there ? "" : "it is there";
  });
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
}

TEST_CASE("what the claim before has kept survives a claim that does not come to be") {
  AgentStory story;
  story.start_with_all();
  LPP_MUST(story.admin().create(
      class_object({.name = "named",
                    .reclaim_policy = "Retain",
                    .parameters = {{"pathPattern", "{{.PVC.Namespace}}/{{.PVC.Name}}"},
                                   {"nodePath", "/opt/local-path-provisioner"}}})));
  const auto claim = story.want("data", "node-1", "named");
  const auto first = story.wait_bound_and_write(claim);
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", first.pv}));
  // From here on only the directory itself and its record tell of the first claim.
  SUBCASE("it gets the directory, and is kept as well") {
    story.want("data", "node-1", "named");
    const auto second = LPP_MUST(story.audit.wait_bound(claim));
    CHECK(second.disk == first.disk);
    CHECK(second.pv != first.pv);
  }
  SUBCASE("it goes while its directory is made") {
    bool again = false;
    // The volume is not published: the claim is gone by then.
    story.installation->proxy().set_hooks({.before = [&](const ApiRequest& request) {
      if (request.is("create", "persistentvolumes") && !std::exchange(again, true)) {
        story.installation->kill_daemon();
      }
      return Decision::forward();
    }});
    story.want("data", "node-1", "named");
    wait_for(story, "the daemon is killed",
             [&] { return story.installation->daemon().alive() ? "it runs" : ""; });
    story.installation->proxy().set_hooks({});
    LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    for (const auto& volume : LPP_MUST(story.admin().list(k8s::kPersistentVolumes))) {
      LPP_MUST(
          story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", volume["metadata"]["name"]}));
    }
    LPP_MUST(story.installation->start_daemon());
    LPP_MUST(story.installation->wait_ready());
    story.wait_for_metric("local_path_provisioner_agents_connected 2");
    story.wait_for_metric("local_path_provisioner_agent_operations 0");
    wait_for_event(story, claim, "DirectoryKept");
  }
  CHECK(text_of(first.disk + "/below/data") == kTenantsData);
}

TEST_CASE(
    "a claim moved away from a node whose agent hangs gets its volume, and leaves none there") {
  AgentStory story;
  story.start_with_all();
  story.agents->freeze("node-1");
  const auto claim = story.want("data", "node-1");
  story.wait_for_metric("local_path_provisioner_agent_operations 1");  // on its way
  LPP_MUST(story.admin().merge(
      k8s::kPersistentVolumeClaims, claim,
      {{"metadata", {{"annotations", {{"volume.kubernetes.io/selected-node", "node-2"}}}}}}));
  const auto volume = story.wait_bound_and_write(claim);
  CHECK(volume.node == "node-2");
  story.agents->thaw("node-1");
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  LPP_MUST(story.audit.wait_clean());
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  CHECK(story.helper_pods_made() == 0);
  story.remove_all({claim});
}

TEST_CASE("what an agent says its volumes take up is in the metrics and on the page") {
  AgentStory story;
  story.start_with({"node-1"});
  const auto claim = story.want("data");
  const auto volume = story.wait_bound_and_write(claim);
  // Nothing limits it, so that nothing is known of it.
  CHECK(story.page("/usage") == R"({"agents":[{"node":"node-1"}],"volumes":[]})");
  story.agents->of("node-1").kill();

  // The agent of a file system with limits.
  const std::string token = story.agents->token("node-1");
  RawClient client(story.agents->port());
  RawClient poll(story.agents->port());
  const auto welcomed = client.ask(std::string(kHelloTarget), token, encode(agent::Hello{}));
  REQUIRE(welcomed.status == 200);
  const std::string session = LPP_MUST(agent::decode_welcome(welcomed.body)).session;
  const auto tell = [&](std::int64_t bytes, bool everything) {
    const operation::Usage usage{.bytes = bytes, .limit_bytes = 100};
    const agent::Tell told{.session = session,
                           .everything = everything,
                           .uses = {{.path = volume.path, .usage = usage},
                                    {.path = "/etc/" + volume.pv, .usage = usage}}};
    return client.ask(std::string(kTellTarget), token, encode(told)).status;
  };
  CHECK(tell(5, true) == 200);
  REQUIRE(poll.post(std::string(kPollTarget), token, encode(agent::Poll{.session = session})));
  const std::string labels =
      R"({namespace="app",persistentvolumeclaim="data",node="node-1",class="local-path"})";
  story.wait_for_metric("local_path_provisioner_volume_stats_used_bytes" + labels + " 5");
  CHECK(tell(95, false) == 200);
  story.wait_for_metric("local_path_provisioner_volume_stats_used_bytes" + labels + " 95");
  story.wait_for_metric("local_path_provisioner_volume_stats_available_bytes" + labels + " 5");
  const auto page = json::parse(story.page("/usage"));
  REQUIRE(page["volumes"].size() == 1);
  CHECK(page["volumes"][0]["volume"] == volume.pv);
  CHECK(page["volumes"][0]["usedBytes"] == 95);

  // The real one knows better.
  story.agents->start("node-1");
  story.agents->wait_connected("node-1");
  wait_for(story, "the usage is forgotten", [&]() -> std::string {
    const auto now = story.page("/usage");
    return now == R"({"agents":[{"node":"node-1"}],"volumes":[]})" ? "" : now;
  });
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  story.remove_all({claim});
}

TEST_CASE("with agents a claim grows in numbers, without a helper pod") {
  AgentStory story;
  story.start_with_all();
  json growing = class_object({.name = "growing"});
  growing["allowVolumeExpansion"] = true;
  LPP_MUST(story.admin().create(growing));
  const auto claim = story.want("data", "node-1", "growing");
  const auto volume = story.wait_bound_and_write(claim);
  LPP_MUST(story.admin().merge(k8s::kPersistentVolumeClaims, claim,
                               {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}}));
  wait_for(story, "it has grown", [&]() -> std::string {
    const json status = LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, claim))["status"];
    const bool grown =
        status["capacity"]["storage"] == "2Gi" && !status.contains("allocatedResourceStatuses");
    return grown ? "" : status.dump();
  });
  wait_for_event(story, claim, "VolumeResizeSuccessful");
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  CHECK(story.helper_pods_made() == 0);
  story.remove_all({claim});
  CHECK(story.helper_pods_made() == 0);
}

}  // namespace
}  // namespace lpp::testing
