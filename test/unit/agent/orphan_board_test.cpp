// SPDX-License-Identifier: Apache-2.0
#include "agent/orphan_board.h"

#include <doctest/doctest.h>

#include "agent_scene.h"

namespace lpp::agent {
namespace {

Listed at(const std::string& path) { return {.path = path, .id = "x"}; }

std::vector<std::string> paths(const std::vector<OrphanBoard::Entry>& entries) {
  std::vector<std::string> all;
  all.reserve(entries.size());
  for (const auto& one : entries) all.push_back(one.node + ":" + one.listed.path);
  return all;
}

using Paths = std::vector<std::string>;

TEST_CASE("a list takes the place of the one before when its last part is here") {
  OrphanBoard board;
  board.note("a", {.first = true, .last = true, .directories = {at("/1")}, .left_out = 2});
  CHECK(paths(board.all()) == Paths{"a:/1"});
  CHECK(board.left_out().at("a") == 2);
  board.note("a", {.first = true, .directories = {at("/2")}});
  board.note("b", {.first = true, .last = true, .directories = {at("/1")}});
  CHECK(paths(board.all()) == Paths{"a:/1", "b:/1"});
  board.note("a", {.last = true, .directories = {at("/3")}});
  CHECK(paths(board.all()) == Paths{"a:/2", "a:/3", "b:/1"});
  CHECK(board.left_out().empty());
  SUBCASE("a session that breaks off leaves what was known") {
    board.note("a", {.first = true, .directories = {at("/4")}});
    board.forget_parts("a");
    CHECK(paths(board.all()) == Paths{"a:/2", "a:/3", "b:/1"});
    board.note("a", {.last = true});
    CHECK(paths(board.all()) == Paths{"b:/1"});
  }
  SUBCASE("nodes go") {
    board.forget_node("a");
    board.forget_node("none");
    CHECK(paths(board.all()) == Paths{"b:/1"});
    board.forget_all();
    CHECK(board.all().empty());
  }
}

TEST_CASE("of one node and of all there is a most, and what goes makes room") {
  OrphanBoard board;
  const std::vector<Listed> many(OrphanBoard::kMostOfNode + 5, at("/1"));
  const InventoryPart part{.first = true, .last = true, .directories = many};
  const std::size_t nodes = OrphanBoard::kMost / OrphanBoard::kMostOfNode;
  for (std::size_t i = 0; i < nodes; ++i) board.note("n" + std::to_string(i), part);
  CHECK(board.all().size() == OrphanBoard::kMost);
  CHECK(board.left_out().at("n0") == 5);
  board.note("late", part);
  CHECK(board.all().size() == OrphanBoard::kMost);
  CHECK(board.left_out().at("late") == static_cast<std::int64_t>(many.size()));
  board.forget_node("n0");
  board.note("late", part);
  CHECK(board.all().size() == OrphanBoard::kMost);
  CHECK(board.left_out().at("late") == 5);
}

TEST_CASE("the executor keeps what is nobody's, below the base paths that it asked for") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  scene.owned = {"/opt/local/owned"};
  scene.being_made = {"/opt/local/lost"};  // which passes
  const InventoryPart part{.first = true,
                           .last = true,
                           .directories = {at("/opt/local/owned"), at("/opt/local/lost"),
                                           at("/etc/shadow"), at("/opt/local/pvc-1")}};
  REQUIRE(agent.tell(Tell{.inventory = part}).ok());
  CHECK(paths(scene.executor.orphans()) ==
        Paths{"node-1:/opt/local/lost", "node-1:/opt/local/pvc-1"});
  SUBCASE("without what an agent is at work at") {
    agent.tell(removal_of(), State::kRunning);
    CHECK(paths(scene.executor.orphans()) == Paths{"node-1:/opt/local/lost"});
  }
  SUBCASE("until its agent is away for good") {
    agent.hang_up();
    scene.pass(seconds(5));
    CHECK(scene.executor.orphans().size() == 2);
    scene.pass(seconds(10));
    CHECK(scene.executor.orphans().empty());
  }
  SUBCASE("until this process leads no more") {
    scene.executor.end(Duration::zero());
    CHECK(scene.executor.orphans().empty());
  }
}

TEST_CASE("a leftover may be swept unless somebody needs it or works there") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  agent.tell(removal_of("busy"), State::kRunning);
  scene.owned = {"/opt/local/owned"};
  scene.being_made = {"/opt/local/made"};
  const auto asked = [&](const Listed& one) {
    const auto told = agent.tell(Tell{.sweeps = {one}});
    REQUIRE(told.ok());
    return !told->sweep.empty();
  };
  CHECK(asked({.path = "/opt/local/lost", .id = "lost", .state = Listed::State::kRemoving}));
  CHECK_FALSE(asked({.path = "/opt/local/owned", .id = "owned"}));
  CHECK_FALSE(asked({.path = "/opt/local/made", .id = "made"}));
  CHECK_FALSE(asked({.path = "/opt/local/busy", .id = "busy"}));
  CHECK_FALSE(asked({.path = "/opt/local/.local-path-provisioner/gone.busy", .id = "busy"}));
  CHECK_FALSE(asked({.path = "/etc/x", .id = "x"}));
}

TEST_CASE("an agent hears which cluster it is in") {
  AgentScene scene;
  CHECK(scene.executor.hello({"node-1", "pod"}, {})->cluster == "cluster-1");
}

}  // namespace
}  // namespace lpp::agent
