// SPDX-License-Identifier: Apache-2.0
// When an agent may begin a removal.

#include "agent_scene.h"

namespace lpp::agent {
namespace {

TEST_CASE("a removal that an agent has no record of any more is put back all the same") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(removal_of());
  (void)agent.orders();
  agent.tell(removal_of(), State::kRunning);
  agent.connect();  // its disk was full: it noted nothing
  CHECK(agent.take().empty());
  CHECK(scene.progress(removal_of())->outdated);
  CHECK(scene.executor.cancel(removal_of().id()).ok());
  const auto orders = agent.take();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].what == Order::What::kCancel);
  CHECK(orders[0].operation);
  CHECK(scene.state(removal_of()) == State::kEnding);
}

TEST_CASE("a removal may begin as long as it is ordered and not called off, and no other") {
  AgentScene scene;
  SceneAgent agent(scene);
  const operation::Id id = removal_of().id();
  const auto granted = [&](const Tell& tell = {}) {
    Tell asking = tell;
    asking.asks = {removal_of("of nobody").id(), id};
    const auto answer = agent.tell(asking);
    REQUIRE(answer.ok());
    return !answer->begin.empty() && answer->begin == std::vector{id};
  };
  SUBCASE("ordered") {
    agent.connect();
    CHECK_FALSE(granted());
    (void)scene.executor.start(removal_of());
    (void)agent.take();
    CHECK(granted({.works = {work_of(removal_of(), State::kWaiting)}}));
    CHECK(granted());  // the answer was lost
    CHECK_FALSE(scene.progress(removal_of())->outdated);
    SUBCASE("and called off") { CHECK(scene.executor.cancel(id).ok()); }
    SUBCASE("and over") { agent.tell(removal_of(), State::kSucceeded); }
    SUBCASE("and by another process, that leads no more") {
      scene.executor.end(Duration::zero());
      CHECK_FALSE(agent.tell(Tell{.asks = {id}}).ok());
      scene.executor.begin({.wake = [](const auto&) {}, .is_quiet = [] { return true; }});
      agent.connect();
    }
    CHECK_FALSE(granted());
  }
  SUBCASE("ordered, but that was before:") {
    agent.connect();
    (void)scene.executor.start(removal_of());
    SUBCASE("the agent has come back since") {
      SUBCASE("with it") {
        (void)agent.take();
        agent.connect({work_of(removal_of(), State::kWaiting)});
      }
      SUBCASE("without it") {
        (void)agent.take();
        agent.connect();
      }
      SUBCASE("and it was never given") { agent.connect(); }
    }
    SUBCASE("its turn was long in coming") {
      (void)agent.take();
      scene.pass(seconds(3));
    }
    CHECK_FALSE(granted());
    CHECK(scene.progress(removal_of())->outdated);
    // The owner calls it off, and wants it still.
    CHECK(scene.executor.cancel(id).ok());
    (void)agent.take();
    CHECK(agent.tell(Tell{.ended = {{id}}}).ok());
    CHECK(scene.executor.recorded(removal_of().volume_name).empty());
    CHECK(scene.executor.start(removal_of()).ok());
    (void)agent.take();
    CHECK(granted());
  }
  SUBCASE("found, by who has not decided yet") {
    agent.connect({work_of(removal_of(), State::kRunning)});
    CHECK_FALSE(granted());
    scene.pass(seconds(60));
    CHECK_FALSE(granted());
  }
}

TEST_CASE("a repeated word that a removal has ended is not about the one that began since") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  const operation::Id id = removal_of().id();
  (void)scene.executor.start(removal_of());
  (void)agent.take();
  agent.tell(removal_of(), State::kRunning);
  CHECK(scene.executor.cancel(id).ok());
  (void)agent.take();
  CHECK(agent.tell(Tell{.ended = {{id}}}).ok());
  CHECK(scene.executor.start(removal_of()).ok());
  (void)agent.take();
  CHECK(agent.tell(Tell{.ended = {{id}}}).ok());
  CHECK(scene.state(removal_of()) == State::kWaiting);
}

TEST_CASE("a removal that cannot be called off yet, and is ordered again, fails") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(removal_of());
  (void)agent.take();
  Work work = work_of(removal_of(), State::kEnding);
  work.progress.reason = kCannotCallOff;
  work.progress.message = "called off, but: it is another disk";
  CHECK(agent.tell(Tell{.works = {work}}).ok());
  CHECK(scene.state(removal_of()) == State::kFailed);
}

TEST_CASE("that a directory is not in its place is told only of a removal that had begun") {
  for (const auto left : {operation::Directory::kUnknown, operation::Directory::kKept}) {
    AgentScene scene;
    SceneAgent agent(scene);
    agent.connect();
    (void)scene.executor.start(removal_of());
    (void)agent.take();
    CHECK(scene.executor.cancel(removal_of().id()).ok());
    Work work = work_of(removal_of(), State::kEnding);
    work.progress.reason = kCannotCallOff;
    work.progress.message = "called off, but: it is another disk";
    work.progress.directory = left;
    CHECK(agent.tell(Tell{.works = {work}}).ok());
    CHECK_FALSE(scene.state(removal_of()));
    CHECK(scene.not_put_back.size() == (left == operation::Directory::kKept ? 0 : 1));
  }
}

}  // namespace
}  // namespace lpp::agent
