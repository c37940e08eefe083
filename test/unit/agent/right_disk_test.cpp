// SPDX-License-Identifier: Apache-2.0
// For which disk a make is ordered.

#include "agent/work.h"
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

/// Agents that tell what they see at their base path.
struct Seen : AgentScene {
  void see(SceneAgent& agent, const std::string& disk, const std::string& problem = {}) {
    std::vector bases{Base{.path = "/opt/local", .problem = problem, .identity = disk}};
    REQUIRE(agent.tell(Tell{.bases = std::move(bases)}).ok());
  }
  std::string why() const { return executor.why_unfit("node-1", "/opt/local"); }
  std::string sight() const { return executor.sight("node-1", "/opt/local"); }
};

}  // namespace

TEST_CASE("a base path is unfit while its agent sees another disk than volumes there name") {
  Seen scene;
  CHECK(scene.why().empty());
  SceneAgent agent(scene);
  scene.disks_named = {"disk-2", "disk-1"};
  CHECK(scene.why().empty());  // nobody has looked
  agent.connect();
  CHECK(scene.why() ==
        "/opt/local on node node-1 is not on its disk: disk-2 belongs there, and there is none; "
        "mount it, or if its data is given up take the annotation local.path.provisioner/disk off "
        "all volumes that name it");
  scene.see(agent, "disk-9");
  CHECK(scene.why().find("there is disk disk-9") != std::string::npos);
  scene.see(agent, "", "EIO");
  CHECK(scene.why().find("cannot tell: EIO") != std::string::npos);
  scene.see(agent, "disk-1");
  CHECK(scene.why().empty());
  CHECK(scene.executor.why_unfit("node-1", "/elsewhere").empty());
  CHECK(scene.executor.why_unfit("node-2", "/opt/local").empty());
  scene.see(agent, "disk-9");
  scene.disks_named.clear();  // its data is given up
  CHECK(scene.why().empty());
  scene.disks_named = {"disk-1"};
  agent.hang_up();
  CHECK(scene.why().empty());  // it may be back by the time that it speaks again
}

TEST_CASE("who waits for a node's disks is woken when others are seen, and only then") {
  Seen scene;
  std::vector<std::string> seen;
  scene.executor.begin({.wake = [](const Operation&) {},
                        .is_quiet = [] { return true; },
                        .wake_node = [&](const std::string& node) { seen.push_back(node); }});
  SceneAgent agent(scene);
  agent.connect();
  const std::string before = scene.sight();
  seen.clear();
  scene.see(agent, "disk-1");
  CHECK(seen == std::vector<std::string>{"node-1"});
  CHECK(scene.sight() != before);
  scene.see(agent, "disk-1");
  CHECK(seen.size() == 1);
  scene.see(agent, "", "EIO");
  CHECK(seen.size() == 2);
}

TEST_CASE("a disk has its identity from the first make on, before its agent has looked again") {
  Seen scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  (void)agent.take();
  Work made = work_of(make_of(), State::kSucceeded);
  made.progress.disk = "disk-1";
  REQUIRE(agent.tell(Tell{.works = {made}}).ok());
  scene.disks_named = {"disk-1"};  // by its volume
  CHECK(scene.why().empty());
  SUBCASE("another disk is seen there then") { scene.see(agent, "disk-2"); }
  SUBCASE("what was told at the beginning of a session may be of another time") {
    made.operation = make_of("pvc-2");
    agent.hello();
    REQUIRE(agent
                .tell(Tell{.everything = true,
                           .bases = std::vector{Base{.path = "/opt/local"}},
                           .works = {made}})
                .ok());
    agent.poll();
  }
  CHECK_FALSE(scene.why().empty());
}

TEST_CASE("what is seen of a base path counts more than where something was made there before") {
  Seen scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  (void)agent.take();
  Work made = work_of(make_of(), State::kSucceeded);
  made.progress.disk = "disk-1";
  Tell tell{.works = {made}};
  SUBCASE("in the same word") { tell.bases = std::vector{Base{.path = "/opt/local"}}; }
  SUBCASE("in one before") {
    scene.see(agent, "disk-1");
    scene.see(agent, "");
  }
  REQUIRE(agent.tell(tell).ok());
  scene.disks_named = {"disk-1"};
  CHECK(scene.why().find("there is none") != std::string::npos);
  CHECK(scene.sight().empty());
}

TEST_CASE("a make that is refused for its disk may be served elsewhere, whatever its class") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  for (const Operation& operation : {make_of(), resize_of("pvc-2")}) {
    (void)scene.executor.start(operation);
    (void)agent.take();
    Work refused = work_of(operation, State::kFailed);
    refused.progress.reason = kOtherDisk;
    REQUIRE(agent.tell(Tell{.works = {refused}}).ok());
    CHECK(scene.progress(operation)->unfit == (operation.kind == Kind::kMake));
  }
}

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

TEST_CASE("what is taken back is ordered for a disk that it may have been made on") {
  Operation undo = make_of();
  undo.kind = Kind::kTakeBack;
  undo.disk = "disk-1 disk-2";
  CHECK(ordered_disk("disk-2", {"disk-9"}, undo) == "disk-2");
  CHECK(ordered_disk("disk-9", {"disk-9"}, undo) == "disk-1");
  undo.disk = "disk-3";
  CHECK(ordered_disk("disk-1", {"disk-1"}, undo) == "disk-3");
  undo.disk.clear();
  CHECK(ordered_disk("disk-1", {"disk-1"}, undo).empty());
}

TEST_CASE("what is no make is ordered for the disk of its volume") {
  Operation removal = removal_of();
  removal.disk = "disk-3";
  CHECK(ordered_disk("disk-1", {"disk-1"}, removal) == "disk-3");
  CHECK(ordered_disk("disk-1", {"disk-1"}, resize_of()).empty());
}

}  // namespace lpp::agent
