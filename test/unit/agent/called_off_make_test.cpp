// SPDX-License-Identifier: Apache-2.0
// A make that is called off: what it may have left stays on record until it is taken back.

#include "agent_bed.h"
#include "agent_scene.h"

namespace lpp::agent {
namespace {

using testing::BaseFolder;
using testing::cancel_and_keep;
using testing::RunningAgent;

/// The next process to lead hears of it from the agent, and of nothing else.
std::optional<State> state_after_restart(const Operation& make, const std::vector<Work>& works) {
  AgentScene next;
  SceneAgent agent(next);
  agent.connect(works);
  return next.state(make);
}

/// An agent has told that it is at work.
struct MakeUnderWay {
  MakeUnderWay() {
    agent.connect();
    (void)scene.executor.start(make_of());
    (void)agent.take();
    agent.tell(make_of(), State::kRunning);
  }
  AgentScene scene;
  SceneAgent agent{scene};
};

}  // namespace

TEST_CASE("a make that is called off while it runs ends, and its outcome stays on record") {
  const BaseFolder base;
  testing::HoldingKernel kernel("mkdirat", 1);
  const Operation make = testing::operation_of(base, Kind::kMake);
  {
    RunningAgent running(base, kernel);
    running.agent.take(testing::start(make));
    REQUIRE(kernel.holds());
    running.agent.take(cancel_and_keep(make));
    kernel.let_go();
    const auto outcome = running.listener.outcome(make);
    REQUIRE(outcome);
    CHECK(outcome->state == State::kSucceeded);
    CHECK(outcome->directory == operation::Directory::kMade);
    running.agent.take(cancel_and_keep(make));  // a repetition changes nothing
    CHECK(running.listener.outcome(make));
  }
  node::Kernel plain;
  RunningAgent again(base, plain);
  const auto known = again.listener.progress(make);
  REQUIRE(known);
  CHECK(known->state == State::kSucceeded);
  again.agent.take(testing::forget(make));
  CHECK(testing::eventually([&] { return testing::work_files(base).empty(); }));
}

TEST_CASE("a make that never began has ended when it is called off, and one that had has failed") {
  const BaseFolder base;
  testing::HoldingKernel kernel("mkdirat", 1, 2);  // both threads for makes
  RunningAgent running(base, kernel);
  std::vector<Operation> makes;
  for (const char* name : {"pvc-1", "pvc-2", "pvc-3"}) {
    makes.push_back(testing::operation_of(base, Kind::kMake, name));
  }
  running.agent.take(testing::start(makes[0]));
  running.agent.take(testing::start(makes[1]));
  REQUIRE(kernel.holds());
  running.agent.take(testing::start(makes[2]));
  running.agent.take(cancel_and_keep(makes[2]));
  CHECK(running.listener.has_ended(makes[2]));
  kernel.let_go();
  CHECK(running.listener.outcome(makes[0]));
}

TEST_CASE("what a make that was called off has left is known to whoever leads next") {
  MakeUnderWay work;
  auto& [scene, agent] = work;
  SUBCASE("it ends after it was called off") {
    CHECK(scene.executor.cancel(make_of().id()).ok());
    CHECK(scene.state(make_of()) == State::kEnding);
    const auto orders = agent.take();
    REQUIRE(orders.size() == 1);
    CHECK(orders[0].what == What::kCancel);
    CHECK(orders[0].keep);
    agent.tell(make_of(), State::kSucceeded);
  }
  SUBCASE("it had ended before that arrived") {
    agent.tell(make_of(), State::kSucceeded);
    CHECK(scene.executor.cancel(make_of().id()).ok());
    CHECK(agent.orders().empty());
  }
  CHECK(scene.state(make_of()) == State::kSucceeded);
  CHECK(state_after_restart(make_of(), {work_of(make_of(), State::kSucceeded)}) ==
        State::kSucceeded);
  CHECK(scene.executor.forget(make_of().id(), When::kNow).value());
  CHECK(agent.orders() == "forget pvc-1");
}

TEST_CASE("an agent of an earlier version drops a make that is called off, and that is all") {
  MakeUnderWay work;
  auto& [scene, agent] = work;
  CHECK(scene.executor.cancel(make_of().id()).ok());
  CHECK(agent.tell(Tell{.ended = {{make_of().id()}}}).ok());
  CHECK_FALSE(scene.state(make_of()));
}

}  // namespace lpp::agent
