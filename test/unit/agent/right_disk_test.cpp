// SPDX-License-Identifier: Apache-2.0
// For which disk a make is ordered.

#include "agent_scene.h"

namespace lpp::agent {
namespace {

/// The disk that the agent is to make the directory on.
std::string ordered_disk(const std::string& told, const std::vector<std::string>& named,
                         const Operation& operation) {
  AgentScene scene;
  scene.disks_named = named;
  SceneAgent agent(scene);
  agent.hello();
  REQUIRE(agent
              .tell(Tell{.everything = true,
                         .bases = std::vector{Base{.path = "/opt/local", .identity = told}}})
              .ok());
  agent.poll();
  REQUIRE(scene.executor.start(operation).ok());
  for (const Order& order : agent.take()) {
    if (order.what == Order::What::kStart) return order.operation->disk;
  }
  FAIL("there is no order");
  return {};
}

}  // namespace

TEST_CASE("a make is ordered for a disk that volumes there are on, if there are any") {
  using Disks = std::vector<std::string>;
  CHECK(ordered_disk("disk-1", {"disk-1"}, make_of()) == "disk-1");
  CHECK(ordered_disk("disk-1", {"disk-2", "disk-1"}, make_of()) == "disk-1");
  // It is missing, or another one is in its place.
  CHECK(ordered_disk("", {"disk-1"}, make_of()) == "disk-1");
  CHECK(ordered_disk("disk-9", {"disk-2", "disk-1"}, make_of()) == "disk-2");
  // Nobody knows better than the agent, and it may have seen another one before.
  for (const std::string told : {"", "disk-1"}) {
    CHECK(ordered_disk(told, Disks(), make_of()).empty());
  }
}

TEST_CASE("the next attempt of a make goes to the disk that is right by then") {
  Operation again = make_of();
  again.attempt = 2;
  again.disk = "disk-1";
  CHECK(ordered_disk("disk-2", {}, again).empty());
  CHECK(ordered_disk("disk-2", {"disk-2"}, again) == "disk-2");
}

TEST_CASE("what is no make is ordered for the disk of its volume") {
  Operation removal = removal_of();
  removal.disk = "disk-3";
  CHECK(ordered_disk("disk-1", {"disk-1"}, removal) == "disk-3");
  CHECK(ordered_disk("disk-1", {"disk-1"}, resize_of()).empty());
}

}  // namespace lpp::agent
