// SPDX-License-Identifier: Apache-2.0
// What an agent is told of its base paths.

#include "agent_scene.h"

namespace lpp::agent {
namespace {

TEST_CASE("an agent hears of base paths that change while it says hello") {
  AgentScene scene;
  SceneAgent agent(scene);
  scene.meanwhile = [&] {
    scene.base_paths["node-1"] = {"/opt/local", "/data"};
    scene.executor.bases_changed();  // it knows no agent yet
  };
  agent.connect();
  const auto orders = agent.take();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].base_paths == scene.base_paths["node-1"]);
}

TEST_CASE("an agent hears when its base paths change, and only then") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  scene.executor.bases_changed();
  CHECK(agent.orders().empty());
  scene.base_paths["node-1"] = {"/opt/local", "/data"};
  scene.executor.bases_changed();
  const auto orders = agent.take();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].what == What::kBases);
  CHECK(orders[0].base_paths == scene.base_paths["node-1"]);
  scene.executor.bases_changed();
  CHECK(agent.orders().empty());
}

}  // namespace
}  // namespace lpp::agent
