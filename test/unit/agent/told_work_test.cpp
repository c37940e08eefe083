// SPDX-License-Identifier: Apache-2.0
// What agents tell of work that nobody here has ordered: legitimate after a restart, and else what
// somebody says who has taken a node over.

#include <doctest/doctest.h>

#include "unit/agent/agent_scene.h"

namespace lpp::agent::told_works {
namespace {

constexpr State kTold[] = {State::kWaiting, State::kRunning, State::kSucceeded, State::kFailed};

TEST_CASE("a directory that can be no volume's is taken from no agent, in whatever state") {
  for (const State state : kTold) {
    for (const Kind kind : {Kind::kMake, Kind::kTakeBack, Kind::kRemove, Kind::kResize}) {
      AgentScene scene;
      SceneAgent agent(scene);
      agent.connect();
      Operation lie = make_of();
      lie.kind = kind;
      SUBCASE("outside") { lie.path = "/etc"; }
      SUBCASE("the base path itself") { lie.path = lie.base_path; }
      SUBCASE("without a base path") { lie.base_path.clear(); }
      SUBCASE("up and out") { lie.path = "/opt/local/../../etc"; }
      SUBCASE("where the records are") { lie.path = "/opt/local/.local-path-provisioner/volumes"; }
      SUBCASE("as the cluster knows better") { scene.doubts["pvc-1"] = "it is another's"; }
      agent.tell(lie, state);
      CHECK(scene.executor.recorded("pvc-1").empty());
      CHECK(scene.executor.left_out()["unbelievable"] == 1);
      CHECK(scene.is_free(make_of()));
      // Neither it is removed.
      CHECK(agent.orders().empty());
    }
  }
}

TEST_CASE("of what was ordered here an agent's word changes the progress only") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  Operation make = make_of();
  make.shape = operation::Shape{.affinity_key = "kubernetes.io/hostname", .affinity_value = "n"};
  REQUIRE(scene.executor.start(make).ok());
  scene.doubts["pvc-1"] = "the claim is another one by now";
  Operation lie = make;
  lie.perm = "0777";
  lie.shape->affinity_key = "kubernetes.io/os";
  agent.tell(lie, State::kRunning);
  agent.tell(lie, State::kSucceeded);
  CHECK(scene.state(make) == State::kSucceeded);
  const auto all = scene.executor.recorded("pvc-1");
  REQUIRE(all.size() == 1);
  CHECK(all[0].operation->perm == make.perm);
  CHECK(all[0].operation->shape == make.shape);
}

/// As another leader orders it under the same number, with another configuration.
std::vector<Operation> others_of(const Operation& operation) {
  std::vector<Operation> others(4, operation);
  others[0].path = "/opt/local/elsewhere";
  others[1].base_path = "/opt";
  others[2].claim_uid = "uid-another";
  others[3].size_bytes /= 2;
  if (operation.kind == Kind::kRemove || operation.kind == Kind::kTakeBack) others.pop_back();
  return others;
}

constexpr Kind kKinds[] = {Kind::kMake, Kind::kTakeBack, Kind::kRemove, Kind::kResize};

Operation of_kind(Kind kind) {
  Operation operation = make_of();
  operation.kind = kind;
  operation.claim_uid = "uid-claim";
  return operation;
}

TEST_CASE("what was done of other work under its number is none of what is ordered now") {
  for (const Kind kind : kKinds) {
    const Operation ordered = of_kind(kind);
    for (const Operation& other : others_of(ordered)) {
      for (const State state : kTold) {
        AgentScene scene;
        SceneAgent agent(scene);
        scene.doubts["pvc-1"] = "it does not lie below a path of the configuration";
        const auto told = [&](const std::string& serial) {
          Work work = work_of(other, state);
          work.serial = serial;
          return work;
        };
        agent.connect({told("former")});
        REQUIRE(scene.executor.start(ordered).value() == Start::kRecorded);
        std::string serial;
        for (const Order& order : agent.take()) serial = order.serial;
        // Told before the order was heard of.
        CHECK(agent.tell(Tell{.works = {told("former")}}).ok());
        CHECK(scene.state(ordered) == State::kWaiting);
        agent.connect({told("former")});
        CHECK(scene.state(ordered) == State::kWaiting);
        CHECK(scene.executor.left_out()["other"] == 2);
        // An agent of an earlier version goes on with the other one.
        CHECK(agent.tell(Tell{.works = {told(serial)}}).ok());
        CHECK(scene.state(ordered) == State::kFailed);
        CHECK(scene.progress(ordered)->reason == "OtherWork");
        CHECK(scene.progress(ordered)->directory == operation::Directory::kUnknown);
      }
    }
  }
}

TEST_CASE("what was told is not taken for other work that is to be ordered under its number") {
  for (const Kind kind : kKinds) {
    const Operation told = of_kind(kind);
    for (const Operation& other : others_of(told)) {
      AgentScene scene;
      SceneAgent agent(scene);
      agent.connect({work_of(told, State::kSucceeded)});
      CHECK(scene.executor.start(other).value() == Start::kOtherFound);
      CHECK(scene.executor.start(told).value() == Start::kRecorded);
      // Nor does it become other work by an agent's word.
      CHECK(agent.tell(Tell{.works = {work_of(other, State::kFailed)}}).ok());
      CHECK(scene.state(told) == State::kSucceeded);
    }
  }
}

TEST_CASE("a number that another node's agent has taken does not keep the volume's own node out") {
  AgentScene scene;
  SceneAgent agent(scene);
  SceneAgent other(scene, "node-2");
  agent.connect();
  other.connect();
  const Operation squatted = make_of("pvc-1", "node-2");
  SUBCASE("told first") {
    other.tell(squatted, State::kSucceeded);
    // Nobody takes that for what is ordered elsewhere.
    CHECK(scene.executor.start(make_of()).value() == Start::kOtherFound);
    SUBCASE("the other is not at home") {
      scene.homes["pvc-1"] = "node-1";
      agent.tell(make_of(), State::kRunning);
      const auto all = scene.executor.recorded("pvc-1");
      REQUIRE(all.size() == 1);
      CHECK(all[0].operation->node == "node-1");
      CHECK(all[0].progress.state == State::kRunning);
    }
    SUBCASE("nobody knows who is at home") {
      agent.tell(make_of(), State::kRunning);
      CHECK(scene.executor.left_out()["foreign"] == 1);
    }
  }
  SUBCASE("ordered first") {
    REQUIRE(scene.executor.start(make_of()).ok());
    scene.homes["pvc-1"] = "node-2";
    other.tell(squatted, State::kSucceeded);
    CHECK(scene.state(make_of()) == State::kWaiting);
    CHECK(scene.executor.left_out()["foreign"] == 1);
  }
}

TEST_CASE("what is left out is told once for each thing, and shown as long as it is told") {
  AgentScene scene;
  SceneAgent agent(scene);
  scene.doubts["pvc-1"] = "no volume of that name is made for a claim of that UID";
  const std::vector<Work> told{work_of(make_of(), State::kSucceeded),
                               work_of(make_of("pvc-2", "node-9"), State::kRunning)};
  const auto shown = [&] { return scene.executor.agents().at(0); };
  agent.connect(told);
  REQUIRE(scene.left_out.size() == 2);
  CHECK(scene.left_out[0].first == "node-1");
  CHECK(scene.left_out[0].second.operation->volume_name == "pvc-1");
  CHECK(scene.left_out[0].second.words.find("no volume of that name") != std::string::npos);
  CHECK(scene.left_out[1].second.operation->volume_name == "pvc-2");
  CHECK(shown().left_out == 2);
  CHECK(shown().left_out_words.size() == 2);
  agent.connect(told);
  CHECK(scene.left_out.size() == 2);
  CHECK(shown().left_out == 2);
  SUBCASE("its session ends for a new configuration") {
    // Also where only another node's was left out.
    agent.connect({told[1]});
    CHECK(shown().left_out == 1);
    scene.base_paths["node-1"].push_back("/other");
    scene.executor.bases_changed();
    CHECK_FALSE(agent.tell(Tell{}).ok());
  }
  SUBCASE("it is believed") {
    scene.doubts.clear();
    CHECK(agent.tell(Tell{.works = {told[0]}}).ok());
    CHECK(shown().left_out == 1);
  }
  SUBCASE("it has ended") {
    CHECK(agent.tell(Tell{.ended = {{told[0].operation.id()}, {told[1].operation.id()}}}).ok());
    CHECK(shown().left_out == 0);
  }
  SUBCASE("another leader hears it") {
    scene.executor.end(Duration::zero());
    scene.begin();
    agent.connect(told);
    CHECK(scene.left_out.size() == 4);
  }
}

TEST_CASE("two pods that speak for one node are told, and one that follows another is not") {
  AgentScene scene;
  SceneAgent first(scene);
  SceneAgent second(scene);
  second.identity.pod = "other-pod";
  first.connect();
  second.connect();
  first.connect();  // about to end
  CHECK(scene.rivals.empty());
  CHECK(scene.executor.agents().at(0).rival.empty());
  SUBCASE("the next one of an update") {
    second.identity.pod = "next-pod";
    second.connect();
    second.connect();
    CHECK(scene.rivals.empty());
  }
  SUBCASE("much later") {
    scene.pass(std::chrono::minutes(6));
    second.connect();
    CHECK(scene.rivals.empty());
  }
  SUBCASE("both of them, all the time") {
    second.connect();
    CHECK(scene.rivals == std::vector<std::string>{"node-1: other-pod agent-pod"});
    CHECK(scene.executor.agents().at(0).pod == "other-pod");
    CHECK(scene.executor.agents().at(0).rival == "agent-pod");
    for (int i = 0; i < 20; ++i) (i % 2 == 0 ? first : second).connect();
    CHECK(scene.rivals.size() == 1);
    scene.pass(std::chrono::minutes(4));
    for (int i = 0; i < 4; ++i) (i % 2 == 0 ? first : second).connect();
    scene.pass(std::chrono::minutes(4));
    for (int i = 0; i < 4; ++i) (i % 2 == 0 ? first : second).connect();
    scene.pass(std::chrono::minutes(4));
    for (int i = 0; i < 4; ++i) (i % 2 == 0 ? first : second).connect();
    scene.pass(std::chrono::minutes(4));
    for (int i = 0; i < 4; ++i) (i % 2 == 0 ? first : second).connect();
    CHECK(scene.rivals.size() == 2);
    scene.pass(std::chrono::minutes(6));
    CHECK(scene.executor.agents().at(0).rival.empty());
  }
}

TEST_CASE("what was not believed is heard anew when the configuration is another one") {
  AgentScene scene;
  SceneAgent agent(scene);
  scene.doubts["pvc-1"] = "it does not lie below a path that the configuration has for the node";
  agent.connect({work_of(make_of(), State::kSucceeded)});
  CHECK(scene.executor.recorded("pvc-1").empty());
  // Nothing is ordered for it, and the session goes on.
  CHECK(agent.orders().empty());
  CHECK(scene.executor.presence("node-1") == Presence::kConnected);
  scene.doubts.clear();
  scene.base_paths["node-1"].push_back("/other");
  scene.executor.bases_changed();
  REQUIRE(agent.answered);
  REQUIRE_FALSE(agent.answered->ok());
  CHECK(agent.answered->error().is(ErrorCode::kExpired));
  CHECK_FALSE(agent.tell(Tell{}).ok());
  agent.connect({work_of(make_of(), State::kSucceeded)});
  CHECK(scene.state(make_of()) == State::kSucceeded);
}

TEST_CASE("what was left out is heard anew when nothing speaks against it any more") {
  AgentScene scene;
  SceneAgent agent(scene);
  SceneAgent other(scene, "node-2");
  const std::vector<Work> told{work_of(make_of(), State::kSucceeded),
                               work_of(make_of("pvc-2", "node-9"), State::kRunning)};
  const auto has_to_begin_anew = [&] {
    scene.pass(std::chrono::minutes(1));
    return agent.answered && !agent.answered->ok();
  };
  const Operation theirs = make_of("pvc-1", "node-2");
  SUBCASE("as the claim was not in the cache yet") {
    scene.doubts["pvc-1"] = "no volume of that name is made for a claim of that UID";
    agent.connect(told);
    CHECK_FALSE(has_to_begin_anew());
    scene.doubts.clear();
  }
  SUBCASE("as another node had told of it, where the claim is no more") {
    other.connect({work_of(theirs, State::kRunning)});
    agent.connect(told);
    CHECK_FALSE(has_to_begin_anew());
    scene.homes["pvc-1"] = "node-1";
  }
  SUBCASE("as another node had it to do, which is over") {
    other.connect();
    REQUIRE(scene.executor.start(theirs).ok());
    agent.connect(told);
    CHECK_FALSE(has_to_begin_anew());
    other.tell(theirs, State::kFailed);
    (void)scene.executor.forget(theirs.id(), When::kNow);
  }
  CHECK(scene.state(make_of()) != State::kSucceeded);
  CHECK(has_to_begin_anew());
  CHECK_FALSE(agent.tell(Tell{}).ok());
  agent.connect(told);
  CHECK(scene.state(make_of()) == State::kSucceeded);
  // What is another node's stays left out, and nothing is asked for it.
  CHECK(scene.executor.agents().at(0).left_out == 1);
  CHECK_FALSE(has_to_begin_anew());
}

TEST_CASE("what is another node's takes no room from what may be heard some day") {
  AgentScene scene;
  SceneAgent agent(scene);
  std::vector<Work> told;
  for (int i = 0; i < 300; ++i) {
    told.push_back(work_of(make_of("pvc-" + std::to_string(i + 2), "node-9"), State::kRunning));
  }
  told.push_back(work_of(make_of(), State::kSucceeded));
  scene.doubts["pvc-1"] = "no volume of that name is made for a claim of that UID";
  agent.connect(told);
  CHECK(scene.executor.recorded("pvc-1").empty());
  scene.doubts.clear();
  scene.pass(std::chrono::minutes(1));
  CHECK_FALSE(agent.tell(Tell{}).ok());
  agent.connect(told);
  CHECK(scene.state(make_of()) == State::kSucceeded);
}

}  // namespace
}  // namespace lpp::agent::told_works
