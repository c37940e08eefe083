// SPDX-License-Identifier: Apache-2.0
// What the reconcilers ask of the executor, whatever state the agent is in.

#include "agent_scene.h"

namespace lpp::agent {
namespace {

TEST_CASE("an operation is ordered, followed, and forgotten on both sides") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  const Operation make = make_of();
  CHECK(scene.executor.start(make).value() == Start::kRecorded);
  CHECK(scene.state(make) == State::kWaiting);
  CHECK_FALSE(scene.is_free(make));
  CHECK(agent.orders() == "start pvc-1");
  for (const State state : {State::kWaiting, State::kRunning, State::kSucceeded}) {
    (void)scene.take_woken();
    agent.tell(make, state);
    CHECK(scene.state(make) == state);
    CHECK(scene.was_woken("pvc-1") == (state != State::kWaiting));
  }
  CHECK(scene.executor.start(make).value() == Start::kRecorded);
  CHECK(agent.orders().empty());
  CHECK(scene.executor.forget(make.id(), When::kNow).value());
  CHECK_FALSE(scene.state(make));
  CHECK(scene.is_free(make));
  CHECK(agent.orders() == "forget pvc-1");
}

TEST_CASE("what is forgotten for a quiet moment does not hold up what is begun") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  CHECK(agent.orders() == "start pvc-1");
  agent.tell(make_of(), State::kSucceeded);
  CHECK(scene.executor.forget(make_of().id(), When::kWhenQuiet).value());
  CHECK(agent.orders().empty());
  SUBCASE("it goes along with the next order") {
    (void)scene.executor.start(make_of("pvc-2"));
    CHECK(agent.orders() == "forget pvc-1, start pvc-2");
  }
  SUBCASE("or by itself after a moment") {
    scene.pass(seconds(1));
    CHECK(agent.orders() == "forget pvc-1");
  }
}

TEST_CASE("under a number that is taken the record counts, not what is to be started") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  Operation other = make_of();
  other.owner_uid = "another";
  CHECK(scene.executor.start(other).value() == Start::kOtherFound);
  CHECK(scene.executor.cancel(other.id()).ok());
  CHECK(scene.executor.forget(other.id(), When::kNow).value());
  CHECK(scene.state(make_of()) == State::kWaiting);
}

TEST_CASE("what the agent still has on record to be forgotten is not begun under its number") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  CHECK(agent.orders() == "start pvc-1");
  agent.tell(make_of(), State::kSucceeded);
  (void)scene.executor.forget(make_of().id(), When::kNow);
  CHECK(scene.executor.start(make_of()).value() == Start::kOtherFound);
  agent.tell(make_of(), State::kSucceeded);  // told again, since the answer was lost
  CHECK_FALSE(scene.state(make_of()));
  CHECK(agent.orders() == "forget pvc-1");  // and taken
  CHECK(scene.executor.start(make_of()).value() == Start::kRecorded);
  CHECK(scene.state(make_of()) == State::kWaiting);
}

TEST_CASE("nothing is begun where no agent is connected, nor while nobody leads") {
  AgentScene scene;
  SceneAgent agent(scene);
  const auto refused = [&] {
    const auto started = scene.executor.start(make_of());
    return !started.ok() && started.error().is(ErrorCode::kUnavailable);
  };
  SUBCASE("none was ever there") {}
  SUBCASE("it has not told everything") { agent.hello(); }
  SUBCASE("it has told a part") {
    agent.hello();
    CHECK(agent.tell(Tell{.everything = true, .last = false}).ok());
  }
  SUBCASE("it has hung up") {
    agent.connect();
    agent.hang_up();
  }
  SUBCASE("it does not come back for more") {
    agent.connect();
    (void)scene.executor.start(make_of("pvc-2"));
    scene.pass(seconds(15));
  }
  SUBCASE("nobody leads") {
    agent.connect();
    scene.executor.end({});
  }
  CHECK(refused());
  CHECK_FALSE(scene.state(make_of()));
  CHECK(scene.is_free(make_of()));
  CHECK_FALSE(scene.executor.can_resize(make_of()).ok());
}

TEST_CASE("what is cancelled before any agent has heard of it goes at once") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of("first"));  // takes the poll's answer
  (void)scene.executor.start(make_of());
  CHECK(scene.executor.cancel(make_of().id()).ok());
  CHECK_FALSE(scene.state(make_of()));
  CHECK(scene.is_free(make_of()));
  CHECK(agent.orders() == "start first");
  CHECK(agent.orders().empty());
}

TEST_CASE("what is cancelled is on record until it is certain that it acts no more") {
  for (const auto told :
       {std::optional<State>{}, std::optional(State::kWaiting), std::optional(State::kRunning)}) {
    AgentScene scene;
    SceneAgent agent(scene);
    agent.connect();
    const Operation make = make_of();
    (void)scene.executor.start(make);
    CHECK(agent.orders() == "start pvc-1");
    if (told) agent.tell(make, *told);
    for (int i = 0; i < 2; ++i) {
      CHECK(scene.executor.cancel(make.id()).ok());
      CHECK(scene.state(make) == State::kEnding);
      CHECK_FALSE(scene.is_free(make));
    }
    CHECK(agent.orders() == "cancel pvc-1");
    agent.tell(make, State::kRunning);  // as an order that has not arrived yet lets it
    CHECK(scene.state(make) == State::kEnding);
    CHECK_FALSE(scene.executor.forget(make.id(), When::kNow).value());
    (void)scene.take_woken();
    SUBCASE("the agent says so") { CHECK(agent.tell(Tell{.ended = {{make.id()}}}).ok()); }
    SUBCASE("another session has it no more") { agent.connect(); }
    SUBCASE("another session still has it") {
      agent.connect({work_of(make, State::kRunning)});
      CHECK(scene.state(make) == State::kEnding);
      CHECK(agent.orders() == "cancel pvc-1");
      CHECK(agent.tell(Tell{.ended = {{make.id()}}}).ok());
    }
    SUBCASE("it is away meanwhile") {
      agent.hang_up();
      scene.pass(seconds(130));
      CHECK(scene.state(make) == State::kEnding);
      CHECK(scene.progress(make)->reason == "AgentAway");
      CHECK_FALSE(scene.progress(make)->message.empty());
      agent.connect();
    }
    CHECK_FALSE(scene.state(make));
    CHECK(scene.is_free(make));
    CHECK(scene.was_woken("pvc-1"));
  }
}

TEST_CASE("forgetting what is over ends its record, and cancelling a make does not") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  CHECK(agent.orders() == "start pvc-1");
  agent.tell(make_of(), State::kFailed);
  CHECK(scene.progress(make_of())->message == "the disk is full of bees");
  SUBCASE("cancelled, which it stays on record for") {
    CHECK(scene.executor.cancel(make_of().id()).ok());
    CHECK(scene.state(make_of()) == State::kFailed);
    CHECK(scene.executor.forget(make_of().id(), When::kNow).value());
  }
  SUBCASE("forgotten") { CHECK(scene.executor.forget(make_of().id(), When::kNow).value()); }
  SUBCASE("forgotten while the agent is away") {
    agent.hang_up();
    CHECK(scene.executor.forget(make_of().id(), When::kNow).value());
    CHECK_FALSE(scene.state(make_of()));
    agent.connect({work_of(make_of(), State::kFailed)});
  }
  CHECK_FALSE(scene.state(make_of()));
  CHECK(agent.orders() == "forget pvc-1");
  // A session that has it no more has nothing to forget.
  agent.connect();
  CHECK(agent.orders().empty());
  CHECK(scene.executor.start(make_of()).value() == Start::kRecorded);
}

TEST_CASE("why an operation does not get on is said, and when it should be over it is late") {
  for (const Kind kind : {Kind::kMake, Kind::kResize}) {
    AgentScene scene;
    SceneAgent agent(scene);
    agent.connect();
    Operation operation = make_of();
    operation.kind = kind;
    (void)scene.executor.start(operation);
    (void)agent.orders();
    agent.tell(operation, State::kRunning);
    CHECK(scene.progress(operation)->changes_at == scene.clock.now() + seconds(120));
    SUBCASE("the agent is there") {
      scene.pass(seconds(120));
      CHECK(scene.progress(operation)->reason == "Timeout");
    }
    SUBCASE("the agent is away") {
      agent.hang_up();
      CHECK(scene.progress(operation)->message.empty());  // it may come back in a moment
      CHECK(scene.progress(operation)->changes_at == scene.clock.now() + seconds(10));
      (void)scene.take_woken();
      scene.pass(seconds(10));
      CHECK(scene.was_woken("pvc-1"));
      CHECK(scene.state(operation) == State::kRunning);
      CHECK(scene.progress(operation)->reason == "AgentAway");
      scene.pass(seconds(110));
      CHECK(scene.progress(operation)->reason == "AgentAway");
    }
    CHECK(scene.state(operation) == State::kLate);
    CHECK(scene.progress(operation)->message.find("node-1") != std::string::npos);
  }
}

TEST_CASE("a removal takes as long as its agent works on it, and is late without one") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(removal_of());
  (void)agent.orders();
  agent.tell(removal_of(), State::kRunning);
  scene.pass(std::chrono::hours(2));
  (void)agent.orders();
  CHECK(scene.state(removal_of()) == State::kRunning);
  agent.hang_up();
  scene.pass(seconds(119));
  CHECK(scene.state(removal_of()) == State::kRunning);
  scene.pass(seconds(1));
  CHECK(scene.state(removal_of()) == State::kLate);
}

TEST_CASE("how far a removal is stands with what an agent has on record") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(removal_of());
  (void)agent.orders();
  agent.tell(removal_of(), State::kRunning);
  (void)scene.take_woken();
  Work work = work_of(removal_of(), State::kRunning);
  work.gone = 512;
  CHECK(agent.tell(Tell{.works = {decode_work(encode(work)).value()}}).ok());
  CHECK(scene.executor.oldest_works("node-1").at(0).gone == 512);
  CHECK(scene.take_woken().empty());  // nobody decides by it
  CHECK(scene.state(removal_of()) == State::kRunning);
}

TEST_CASE("of a node that is gone nothing is on record any more") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  (void)agent.orders();
  agent.tell(make_of(), State::kRunning);
  scene.gone.insert("node-1");
  scene.executor.node_changed("node-1");
  CHECK(scene.was_woken("pvc-1"));
  CHECK(scene.state(make_of()) == State::kRunning);  // its agent is there
  CHECK(scene.asked_for_nodes == 0);
  agent.hang_up();
  scene.pass(seconds(10));
  CHECK_FALSE(scene.state(make_of()));
  CHECK(scene.is_free(make_of()));
  CHECK(scene.executor.lost(make_of()).state == State::kFailed);
  CHECK_FALSE(scene.executor.lost(make_of()).message.empty());
}

TEST_CASE("no node gets more than it may, and who waits is woken when there is room") {
  AgentScene scene(1);
  SceneAgent agent(scene);
  agent.connect();
  {
    const auto room = scene.executor.admit(make_of("a"));
    REQUIRE(room);
    (void)scene.executor.start(make_of("a"));
  }
  CHECK_FALSE(scene.executor.admit(make_of("b")));
  (void)agent.orders();
  agent.tell(make_of("a"), State::kRunning);
  CHECK_FALSE(scene.executor.admit(make_of("b")));
  (void)scene.take_woken();
  SUBCASE("it is over") { agent.tell(make_of("a"), State::kSucceeded); }
  SUBCASE("it was cancelled") {
    (void)scene.executor.cancel(make_of("a").id());
    CHECK_FALSE(scene.executor.admit(make_of("b")));
    CHECK(agent.tell(Tell{.ended = {{make_of("a").id()}}}).ok());
  }
  CHECK(scene.was_woken("b"));
  CHECK(scene.executor.admit(make_of("b")));
}

TEST_CASE("when the work ends everything is let go, and a new beginning hears it from the agents") {
  AgentScene scene(1);
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  CHECK(agent.orders() == "start pvc-1");
  agent.tell(make_of(), State::kRunning);
  scene.executor.end({});
  REQUIRE(agent.answered);
  CHECK(agent.answered->error().is(ErrorCode::kUnavailable));
  CHECK_FALSE(scene.state(make_of()));
  CHECK(scene.is_free(make_of()));
  (void)scene.take_woken();
  scene.executor.node_changed("node-1");
  CHECK(scene.take_woken().empty());
  CHECK(scene.executor.hello(agent.identity, {}).error().is(ErrorCode::kUnavailable));
  CHECK(agent.tell(Tell{}).error().is(ErrorCode::kUnavailable));

  scene.begin();
  CHECK(scene.executor.presence("node-1") == Presence::kExpected);
  CHECK(agent.tell(Tell{}).error().is(ErrorCode::kExpired));
  agent.connect({work_of(make_of(), State::kRunning)});
  CHECK(scene.was_woken("pvc-1"));
  CHECK(scene.state(make_of()) == State::kRunning);
  CHECK_FALSE(scene.is_free(make_of()));
  CHECK_FALSE(scene.executor.admit(make_of("b")));
}

}  // namespace
}  // namespace lpp::agent
