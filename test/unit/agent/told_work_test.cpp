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
  lie.path = "/etc";
  lie.base_path = "/";
  lie.size_bytes = 1;
  lie.shape->affinity_key = "kubernetes.io/os";
  agent.tell(lie, State::kRunning);
  agent.tell(lie, State::kSucceeded);
  CHECK(scene.state(make) == State::kSucceeded);
  const auto all = scene.executor.recorded("pvc-1");
  REQUIRE(all.size() == 1);
  CHECK(all[0].operation->path == make.path);
  CHECK(all[0].operation->size_bytes == make.size_bytes);
  CHECK(all[0].operation->shape == make.shape);
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

}  // namespace
}  // namespace lpp::agent::told_works
