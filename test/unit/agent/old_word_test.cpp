// SPDX-License-Identifier: Apache-2.0
// What an agent told before it was lost, and what of it still counts.

#include "agent_scene.h"

namespace lpp::agent {
namespace {

using Standing = Progress::Standing;

Work made_on(const std::string& disk) {
  Work work = work_of(make_of(), State::kSucceeded);
  work.progress.directory = operation::Directory::kMade;
  work.progress.disk = disk;
  return work;
}

Tell everything_on(const std::string& disk, std::vector<Work> works = {}) {
  return {.everything = true,
          .bases = std::vector{Base{.path = "/opt/local", .identity = disk}},
          .works = std::move(works)};
}

Standing standing(AgentScene& scene) {
  const auto progress = scene.progress(make_of());
  REQUIRE(progress);
  CHECK(progress->state == State::kSucceeded);
  return progress->standing;
}

/// An agent has made a directory that no volume shows yet.
struct MadeBefore {
  MadeBefore() {
    agent.hello();
    REQUIRE(agent.tell(everything_on("disk-1")).ok());
    agent.poll();
    (void)scene.executor.start(make_of());
    (void)agent.take();
    REQUIRE(agent.tell(Tell{.works = {made_on("disk-1")}}).ok());
    CHECK(standing(scene) == Standing::kCertain);
  }
  AgentScene scene;
  SceneAgent agent{scene};
};

}  // namespace

TEST_CASE("a make that has succeeded is not certain while its agent is away") {
  MadeBefore before;
  AgentScene& scene = before.scene;
  before.agent.hang_up();
  CHECK(standing(scene) == Standing::kAwaited);
  scene.pass(seconds(10));
  CHECK(standing(scene) == Standing::kDoubtful);
  (void)scene.take_woken();
  SceneAgent again(scene);
  again.hello();
  CHECK(standing(scene) != Standing::kCertain);
  SUBCASE("its agent has it on record") {
    REQUIRE(again.tell(everything_on("disk-1", {made_on("disk-1")})).ok());
    CHECK(standing(scene) == Standing::kCertain);
    CHECK(scene.was_woken("pvc-1"));
  }
  SUBCASE("its disk is another one") {
    REQUIRE(again.tell(everything_on("disk-2")).ok());
    CHECK_FALSE(scene.state(make_of()));
  }
}

TEST_CASE("a make that has failed is as uncertain as one that has not while its agent is away") {
  MadeBefore before;
  (void)before.scene.executor.start(make_of("pvc-2"));
  (void)before.agent.take();
  REQUIRE(before.agent.tell(Tell{.works = {work_of(make_of("pvc-2"), State::kFailed)}}).ok());
  CHECK(before.scene.progress(make_of("pvc-2"))->standing == Standing::kCertain);
  before.agent.poll();
  before.agent.hang_up();
  const auto progress = before.scene.progress(make_of("pvc-2"));
  REQUIRE(progress);
  CHECK(progress->standing == Standing::kAwaited);
  CHECK(progress->message == "the disk is full of bees");
}

TEST_CASE("the first make on a disk is certain though a look before it saw no identity") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  REQUIRE(agent.tell(everything_on("")).ok());
  agent.poll();
  (void)scene.executor.start(make_of());
  (void)agent.take();
  scene.clock.advance(seconds(1));
  REQUIRE(agent.tell(Tell{.works = {made_on("disk-1")}}).ok());
  CHECK(standing(scene) == Standing::kCertain);
  scene.clock.advance(seconds(1));
  REQUIRE(agent.tell(everything_on("disk-1", {made_on("disk-1")})).ok());
  CHECK(standing(scene) == Standing::kCertain);
}

TEST_CASE("what a new leader hears first is not certain on a disk that is not there") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  REQUIRE(agent.tell(everything_on("", {made_on("disk-1")})).ok());
  CHECK(standing(scene) == Standing::kAwaited);
  REQUIRE(agent.tell(Tell{.bases = everything_on("disk-1").bases}).ok());
  CHECK(standing(scene) == Standing::kCertain);
}

TEST_CASE("what is told otherwise than before is not certain on a disk that is not there") {
  MadeBefore before;
  before.scene.clock.advance(seconds(1));
  SceneAgent again(before.scene);
  again.hello();
  Work work = made_on("disk-1");
  work.progress.message = "told in other words";
  REQUIRE(again.tell(everything_on("", {work})).ok());
  CHECK(standing(before.scene) == Standing::kAwaited);
}

TEST_CASE("of an agent that says hello and no more, nothing is looked at in vain") {
  MadeBefore before;
  AgentScene& scene = before.scene;
  before.agent.hang_up();
  scene.pass(seconds(60));
  SceneAgent again(scene);
  again.hello();
  const auto progress = scene.progress(make_of());
  REQUIRE(progress);
  CHECK(progress->standing == Standing::kAwaited);
  REQUIRE(progress->changes_at);
  CHECK(*progress->changes_at > scene.clock.now());
}

TEST_CASE("a make that has succeeded on a disk that is not there now is not certain") {
  MadeBefore before;
  AgentScene& scene = before.scene;
  (void)scene.take_woken();
  const auto now = [&](Base base) {
    base.path = "/opt/local";
    REQUIRE(before.agent.tell(Tell{.bases = std::vector{std::move(base)}}).ok());
  };
  SUBCASE("another one") { now({.identity = "disk-2"}); }
  SUBCASE("nothing, and nothing is wrong with what is there instead") {
    scene.clock.advance(seconds(1));
    now({.identity = ""});
  }
  SUBCASE("none") { now({.problem = "nothing is mounted there", .identity = ""}); }
  CHECK(standing(scene) == Standing::kAwaited);
  CHECK(scene.progress(make_of())->message.find("/opt/local") != std::string::npos);
  CHECK(scene.was_woken("pvc-1"));
  now({.identity = "disk-1"});
  CHECK(standing(scene) == Standing::kCertain);
  CHECK(scene.was_woken("pvc-1"));
}

TEST_CASE("what an agent tells of all that it has is newer than what it told before") {
  MadeBefore before;
  AgentScene& scene = before.scene;
  SceneAgent again(scene);
  again.hello();
  // A power cut: its book does not say any more that it has ended.
  REQUIRE(again.tell(everything_on("disk-1", {work_of(make_of(), State::kRunning)})).ok());
  again.poll();
  REQUIRE(scene.progress(make_of()));
  CHECK(scene.progress(make_of())->state == State::kRunning);
  CHECK(scene.progress(make_of())->outdated);
  CHECK(scene.executor.start(make_of()).value() == Start::kRecorded);
  CHECK(again.orders() == "start pvc-1");
  REQUIRE(again.tell(Tell{.works = {made_on("disk-1")}}).ok());
  CHECK(standing(scene) == Standing::kCertain);
}

}  // namespace lpp::agent
