// SPDX-License-Identifier: Apache-2.0
// What comes of it when somebody speaks as an agent who is none, or who has taken a node over.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "agent/protocol.h"
#include "harness/raw_client.h"
#include "support/agent_story.h"
#include "support/story_steps.h"

namespace lpp::testing::agent_lies {
namespace {

namespace fs = std::filesystem;
using agent::kHelloTarget;
using agent::kPollTarget;
using agent::kTellTarget;
using nlohmann::json;
using operation::Kind;
using operation::Operation;

TEST_CASE("who is no agent is refused, and an agent can do nothing for another node") {
  AgentStory story;
  story.start_with({"node-2"});
  const auto answer = [&](const std::string& token, std::string_view target,
                          const std::string& body) {
    RawClient client(story.agents->port());
    REQUIRE(client.connected());
    return client.ask(std::string(target), token, body);
  };
  const std::string hello = encode(agent::Hello{});
  CHECK(answer("", kHelloTarget, hello).status == 401);
  CHECK(answer("wrong", kHelloTarget, hello).status == 401);
  const std::string audience(agent::kAudience);
  const k8s::ObjectKey other{kDaemonNamespace, "local-path-provisioner-service-account"};
  CHECK(answer(LPP_MUST(request_token(story.admin(), other, {audience})), kHelloTarget, hello)
            .status == 403);
  const std::string mine = story.agents->token("node-1");
  const k8s::ObjectKey account{kDaemonNamespace, kAgentAccount};
  // Of the agents' account, but of no pod, and for the API server.
  CHECK(answer(LPP_MUST(request_token(story.admin(), account, {audience})), kHelloTarget, hello)
            .status == 403);
  CHECK(answer(LPP_MUST(request_token(story.admin(), account, {"somebody"}, "agent-node-1")),
               kHelloTarget, hello)
            .status == 401);

  const auto welcomed = answer(mine, kHelloTarget, hello);
  REQUIRE(welcomed.status == 200);
  const std::string session = LPP_MUST(agent::decode_welcome(welcomed.body)).session;
  const auto tell = [&](agent::Tell what) {
    what.session = session;
    return answer(mine, kTellTarget, encode(what));
  };
  std::vector<agent::Base> bases;
  for (const auto& base : story.bed->base_paths()) bases.push_back({.path = base});
  CHECK(tell({.everything = true, .bases = bases}).status == 200);

  // Its node's orders it gets, the other node's it does not, nor can it say that they are done.
  RawClient poll(story.agents->port());
  REQUIRE(poll.post(std::string(kPollTarget), mine, encode(agent::Poll{.session = session})));
  const auto theirs = story.wait_bound_and_write(story.want("theirs", "node-2"));
  story.want("ours", "node-1");
  const auto orders = LPP_MUST(agent::decode_orders(poll.answer().body)).orders;
  REQUIRE(orders.size() == 1);
  REQUIRE(orders[0].operation);
  CHECK(orders[0].operation->claim.name == "ours");
  Operation lie = *orders[0].operation;
  lie.node = "node-2";
  lie.volume_name = theirs.pv;
  lie.path = theirs.path;
  for (const Kind kind : {Kind::kMake, Kind::kRemove}) {
    lie.kind = kind;
    // That is left out, and the rest is heard.
    const auto told =
        tell({.works = {{.operation = lie,
                         .progress = {.state = operation::Progress::State::kSucceeded}}}});
    CHECK(told.status == 200);
  }
  story.wait_for_metric(R"(local_path_provisioner_agent_refused_total{reason="foreign"} 2)");
  CHECK(text_of(theirs.disk + "/below/data") == kTenantsData);
  CHECK(LPP_MUST(story.audit.bound_volume({"app", "theirs"})).pv == theirs.pv);
  // Nor can it have its own node's claim get another directory, or one on other nodes, by telling
  // of an attempt that nobody has ordered.
  Operation made = *orders[0].operation;
  made.attempt = 1000;
  const auto lies = [&](const auto& change) {
    Operation one = made;
    change(one);
    for (const auto state :
         {operation::Progress::State::kRunning, operation::Progress::State::kSucceeded}) {
      ++made.attempt;
      one.attempt = made.attempt;
      CHECK(tell({.works = {{.operation = one, .progress = {.state = state}}}}).status == 200);
    }
  };
  lies([](Operation& one) { one.path = "/etc"; });
  lies([](Operation& one) {
    one.base_path = "/";
    one.path = "/etc";
  });
  lies([](Operation& one) {
    one.base_path = "/etc";
    one.path = "/etc/kubernetes";
  });
  lies([](Operation& one) { one.path = one.base_path; });
  lies([](Operation& one) { one.path = one.base_path + "/.local-path-provisioner/volumes"; });
  lies([](Operation& one) { one.size_bytes *= 2; });
  lies([&](Operation& one) { one.volume_name = theirs.pv; });
  story.wait_for_metric(R"(local_path_provisioner_agent_refused_total{reason="unbelievable"} 14)");
  // Work that never ends, of the other node's volume: it keeps nothing waiting there.
  for (const Kind kind : {Kind::kRemove, Kind::kResize}) {
    Operation endless = made;
    endless.kind = kind;
    endless.volume_name = theirs.pv;
    endless.owner_uid =
        LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", theirs.pv}))["metadata"]["uid"];
    endless.path = theirs.path;
    const auto told =
        tell({.works = {{.operation = endless,
                         .progress = {.state = operation::Progress::State::kRunning}}}});
    CHECK(told.status == 200);
  }
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, {"app", "theirs"}));
  LPP_MUST(story.audit.wait_deleted({"app", "theirs"}, theirs));
  // Told at first as being made: what it says later of the shape is heard as little.
  fs::create_directories(story.bed->on_disk("node-1", made.path));
  Operation shaped = made;
  shaped.shape = operation::Shape{
      .affinity_key = "kubernetes.io/os", .affinity_value = "linux", .reclaim_policy = "Retain"};
  // With one word, or the next attempt would be ordered between the two.
  CHECK(tell({.works = {{.operation = *orders[0].operation,
                         .progress = {.state = operation::Progress::State::kFailed,
                                      .message = "the disk is full of bees",
                                      .reason = "NodeTrouble"}},
                        {.operation = shaped,
                         .progress = {.state = operation::Progress::State::kRunning}}}})
            .status == 200);
  CHECK(tell({.works = {{.operation = shaped,
                         .progress = {.state = operation::Progress::State::kSucceeded}}}})
            .status == 200);
  // A session is its agent's only.
  CHECK(answer(story.agents->token("node-2"), kTellTarget, encode(agent::Tell{.session = session}))
            .status == 410);
  // The volume is its node's alone, below a base path, and as its class says.
  const auto ours = LPP_MUST(story.audit.wait_bound({"app", "ours"}));
  const json spec = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", ours.pv}))["spec"];
  CHECK(spec["hostPath"]["path"] == made.path);
  CHECK(spec["persistentVolumeReclaimPolicy"] == "Delete");
  CHECK(
      spec["nodeAffinity"]["required"]["nodeSelectorTerms"] ==
      json::array({{{"matchExpressions", json::array({{{"key", "kubernetes.io/hostname"},
                                                       {"operator", "In"},
                                                       {"values", json::array({"node-1"})}}})}}}));

  // The node's own agent ends the session of whoever had its token, and does the work.
  story.agents->start("node-1");
  LPP_MUST(story.audit.wait_bound(story.want("after", "node-1")));
  CHECK(tell({}).status == 410);
  CHECK(story.helper_pods_made() == 0);
  story.remove_all({{"app", "ours"}, {"app", "after"}});
}

/// "" if an Event of this reason says so.
std::string missing_event(AgentStory& story, const char* kind, const k8s::ObjectKey& key,
                          const std::string& reason, const std::string& part) {
  const auto events = story.admin().events_about(kind, key);
  for (const auto& event : events) {
    if (event.starts_with("Warning " + reason + ": ") && event.find(part) != std::string::npos) {
      return "";
    }
  }
  return fmt::format("{} {}: {}", kind, key.to_string(), fmt::join(events, " | "));
}

TEST_CASE("a lie is told on its agent's node and what is there, and on nothing of other nodes") {
  AgentStory story;
  story.start_with({"node-2"});
  const auto theirs = story.wait_bound_and_write(story.want("theirs", "node-2"));
  const json their_claim =
      LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, {"app", "theirs"}));
  const auto ask = [&](std::string_view target, const std::string& body,
                       const std::string& pod = "") {
    RawClient client(story.agents->port());
    REQUIRE(client.connected());
    return client.ask(std::string(target), story.agents->token("node-1", pod), body);
  };
  const auto welcome = [&](const std::string& pod) {
    const auto answer = ask(kHelloTarget, encode(agent::Hello{}), pod);
    REQUIRE(answer.status == 200);
    return LPP_MUST(agent::decode_welcome(answer.body)).session;
  };
  const std::string session = welcome("");
  std::vector<agent::Base> bases;
  for (const auto& base : story.bed->base_paths()) bases.push_back({.path = base});
  const auto tell = [&](agent::Tell what) {
    what.session = session;
    CHECK(ask(kTellTarget, encode(what)).status == 200);
  };
  tell({.everything = true, .bases = bases});
  const auto lie = [&](const char* name, const json& claim, const std::string& path) {
    const std::string uid = claim["metadata"]["uid"];
    agent::Work work;
    work.operation.volume_name = "pvc-" + uid;
    work.operation.owner_uid = uid;
    work.operation.claim = {"app", name};
    work.operation.attempt = 1000;
    work.operation.node = "node-1";
    work.operation.base_path = "/etc";
    work.operation.path = path;
    work.operation.size_bytes = 1 << 20;
    work.progress.state = operation::Progress::State::kSucceeded;
    tell({.works = {work}});
  };
  RawClient poll(story.agents->port());
  REQUIRE(poll.post(std::string(kPollTarget), story.agents->token("node-1"),
                    encode(agent::Poll{.session = session})));
  story.want("ours", "node-1");
  REQUIRE(LPP_MUST(agent::decode_orders(poll.answer().body)).orders.size() == 1);
  const json our_claim = LPP_MUST(story.admin().get(k8s::kPersistentVolumeClaims, {"app", "ours"}));
  lie("ours", our_claim, "/etc/ours");
  lie("theirs", their_claim, "/etc/theirs");
  lie("ours", our_claim, "/etc/later");
  for (const char* path : {"/etc/ours", "/etc/theirs", "/etc/later"}) {
    wait_for(story, "the node's Event", [&] {
      return missing_event(story, "Node", {"", "node-1"}, "AgentDisbelieved", path);
    });
  }
  for (const char* path : {"/etc/ours", "/etc/later"}) {
    wait_for(story, "the claim's Event", [&] {
      return missing_event(story, "PersistentVolumeClaim", {"app", "ours"}, "AgentDisbelieved",
                           path);
    });
  }

  // A second pod that speaks for the node, again and again.
  wait_for(story, "the Event of two agents", [&] {
    welcome("another-agent");
    welcome("");
    return missing_event(story, "Node", {"", "node-1"}, "TwoAgents", "another-agent");
  });

  // Warnings of a namespace are sent in the order in which they came up, and so are those of nodes
  // and volumes: these would be there since the later ones of both are.
  CHECK(missing_event(story, "PersistentVolumeClaim", {"app", "theirs"}, "AgentDisbelieved", "") !=
        "");
  CHECK(missing_event(story, "PersistentVolume", {"", theirs.pv}, "AgentDisbelieved", "") != "");
  CHECK(missing_event(story, "Node", {"", "node-2"}, "AgentDisbelieved", "") != "");
}

}  // namespace
}  // namespace lpp::testing::agent_lies
