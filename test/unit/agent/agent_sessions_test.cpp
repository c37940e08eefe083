// SPDX-License-Identifier: Apache-2.0
// What agents say, in whichever order and however often.

#include "agent_scene.h"

namespace lpp::agent {
namespace {

TEST_CASE("an agent is expected at first, and connected once it has told everything") {
  AgentScene scene;
  SceneAgent agent(scene);
  CHECK(scene.executor.presence("node-1") == Presence::kExpected);
  scene.pass(seconds(10));
  CHECK(scene.executor.presence("node-1") == Presence::kAbsent);
  CHECK(scene.present == std::vector<std::string>{""});

  agent.hello();
  CHECK(agent.base_paths == std::vector<std::string>{"/opt/local"});
  CHECK(scene.executor.presence("node-1") == Presence::kExpected);
  CHECK(agent.tell(Tell{.everything = true, .last = false}).ok());
  CHECK(scene.executor.presence("node-1") == Presence::kExpected);
  CHECK_FALSE(scene.executor.sees("node-1", "/opt/local"));
  CHECK(agent
            .tell(Tell{.everything = true,
                       .bases = {{{.path = "/opt/local"}, {.path = "/bad", .problem = "none"}}}})
            .ok());
  CHECK(scene.executor.presence("node-1") == Presence::kConnected);
  CHECK(scene.executor.sees("node-1", "/opt/local"));
  CHECK_FALSE(scene.executor.sees("node-1", "/bad"));
  CHECK_FALSE(scene.executor.sees("node-2", "/opt/local"));
  CHECK(scene.told["node-1"].size() == 1);  // the other one is not the node's
  CHECK(scene.executor.can_resize(make_of()).value());
  CHECK(scene.executor.presence("node-2") == Presence::kAbsent);
}

TEST_CASE("an agent that is lost is expected for a moment, and absent then") {
  for (const bool hangs_up : {true, false}) {
    AgentScene scene;
    SceneAgent agent(scene);
    agent.connect();
    scene.pass(seconds(100));
    CHECK(scene.executor.presence("node-1") == Presence::kConnected);
    scene.present.clear();
    if (hangs_up) {
      agent.hang_up();
      CHECK(scene.present == std::vector<std::string>{"node-1"});
    } else {
      (void)scene.executor.start(make_of());  // it does not come back for more
      scene.pass(seconds(14));
      CHECK(scene.executor.presence("node-1") == Presence::kConnected);
      scene.pass(seconds(1));
    }
    CHECK(scene.executor.presence("node-1") == Presence::kExpected);
    SUBCASE("it comes back with the session it had") {
      agent.poll();
      CHECK(scene.executor.presence("node-1") == Presence::kConnected);
    }
    SUBCASE("it stays away") {
      scene.pass(seconds(10));
      CHECK(scene.executor.presence("node-1") == Presence::kAbsent);
      const auto all = scene.executor.agents();
      REQUIRE(all.size() == 1);
      CHECK(all[0].pod == "agent-pod");
      CHECK(all[0].program == "0.9");
      scene.pass(std::chrono::minutes(10));
      CHECK(scene.executor.agents().empty() == hangs_up);  // else something is on record
    }
  }
}

TEST_CASE("an agent that falls silent is expected, also before anybody has looked at the time") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  scene.pass(seconds(100));
  (void)scene.executor.start(make_of());
  scene.clock.advance(seconds(20));
  CHECK(scene.executor.presence("node-1") == Presence::kExpected);
  CHECK(scene.progress(make_of())->message.empty());
  CHECK(scene.progress(make_of())->changes_at == scene.clock.now() + seconds(10));
  scene.pass(seconds(10));
  CHECK(scene.executor.presence("node-1") == Presence::kExpected);
  scene.pass(seconds(1));
  CHECK(scene.executor.presence("node-1") == Presence::kAbsent);
}

TEST_CASE("a poll without orders is answered in time, and one that nobody waits for is not") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  SUBCASE("in time") {
    scene.pass(seconds(240));
    REQUIRE(agent.answered);
    CHECK((*agent.answered)->orders.empty());
  }
  SUBCASE("a second one of the session takes its place") {
    Result<Orders> first{Error{}};
    agent.hang_up();
    (void)scene.executor.poll(agent.identity, {.session = agent.session},
                              [&](Result<Orders> orders) { first = std::move(orders); });
    agent.poll();
    CHECK(first.value().orders.empty());
    CHECK_FALSE(agent.answered);
  }
  SUBCASE("nobody waits") {
    agent.hang_up();
    scene.pass(seconds(300));
    CHECK_FALSE(agent.answered);
  }
}

TEST_CASE("orders are repeated until they are taken, and numbered within the session") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of("a"));
  (void)scene.executor.start(make_of("b"));
  REQUIRE(agent.answered);
  CHECK((*agent.answered)->orders.size() == 1);
  for (int i = 0; i < 2; ++i) {
    agent.poll();  // the answer was lost
    REQUIRE(agent.answered);
    REQUIRE((*agent.answered)->orders.size() == 2);
    CHECK((*agent.answered)->orders[0].number == 1);
    CHECK((*agent.answered)->orders[1].number == 2);
  }
  agent.taken = 1;
  CHECK((agent.poll(), agent.orders()) == "start b");
  CHECK(agent.orders().empty());
  agent.taken = 7;
  agent.poll();
  CHECK(agent.answered->error().is(ErrorCode::kInvalid));
}

TEST_CASE("of many orders an answer holds no more than a message may") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  agent.hang_up();
  agent.poll();
  std::string padding;
  std::size_t expected = kMaxOrders;
  std::size_t count = 300;
  SUBCASE("small ones") {}
  SUBCASE("large ones") {
    padding = std::string(100'000, 'x');
    expected = kMaxMessage / 2 / 100'200;
    count = 4 * expected;
  }
  (void)scene.executor.start(make_of("first"));
  for (std::size_t i = 0; i < count; ++i) {
    Operation operation = make_of("v" + std::to_string(i));
    operation.storage_class = padding;
    CHECK(scene.executor.start(operation).ok());
  }
  CHECK(agent.take().size() == 1);
  std::size_t all = 0;
  while (agent.answered) {
    const auto orders = agent.take();
    CHECK(encode(Orders{orders}).size() <= kMaxMessage);
    if (all == 0) CHECK(orders.size() == expected);
    all += orders.size();
  }
  CHECK(all == count);
}

TEST_CASE("a newer session ends the older one, and everything not done is ordered again") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  for (const char* volume : {"unsent", "sent", "waiting", "running", "over", "ended"}) {
    (void)scene.executor.start(make_of(volume));
    if (std::string_view(volume) != "unsent") continue;
    (void)agent.take();
  }
  for (int i = 0; i < 3; ++i) (void)agent.take();
  agent.tell(make_of("waiting"), State::kWaiting);
  agent.tell(make_of("running"), State::kRunning);
  agent.tell(make_of("ended"), State::kRunning);
  agent.tell(make_of("over"), State::kSucceeded);
  CHECK_FALSE(agent.answered);

  SceneAgent again(scene);
  again.hello();
  REQUIRE(agent.answered);
  CHECK(agent.answered->error().is(ErrorCode::kExpired));
  CHECK(agent.tell(Tell{}).error().is(ErrorCode::kExpired));
  agent.poll();
  CHECK(agent.answered->error().is(ErrorCode::kExpired));
  (void)scene.take_woken();
  CHECK(again
            .tell(Tell{.everything = true,
                       .last = false,
                       .works = {work_of(make_of("over"), State::kSucceeded)}})
            .ok());
  CHECK(scene.state(make_of("ended")) == State::kRunning);  // it may come yet
  CHECK(
      again.tell(Tell{.everything = true, .works = {work_of(make_of("running"), State::kRunning)}})
          .ok());
  again.poll();
  CHECK(again.orders() == "start sent, start unsent, start running, start waiting");
  CHECK(scene.state(make_of("over")) == State::kSucceeded);
  // What it had begun, and has on record no more, somebody took away.
  CHECK_FALSE(scene.state(make_of("ended")));
  CHECK(scene.was_woken("ended"));
}

TEST_CASE("a resize that was begun before goes on only when its owner starts it again") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect({work_of(resize_of(), State::kRunning)});
  CHECK(scene.was_woken("pvc-1"));
  scene.quiet = true;
  scene.pass(seconds(60));
  CHECK(agent.orders().empty());
  REQUIRE(scene.progress(resize_of()));
  CHECK(scene.progress(resize_of())->outdated);
  SUBCASE("the owner wants it") {
    CHECK(scene.executor.start(resize_of()).value() == Start::kRecorded);
    CHECK(agent.orders() == "start pvc-1");
    CHECK_FALSE(scene.progress(resize_of())->outdated);
  }
  SUBCASE("the owner cancels it") {
    CHECK(scene.executor.cancel(resize_of().id()).ok());
    scene.pass(seconds(20));
    CHECK(agent.orders() == "cancel pvc-1");
    CHECK(agent.orders().empty());
  }
  SUBCASE("it ends by itself") {
    agent.tell(resize_of(), State::kSucceeded);
    scene.pass(seconds(20));
    CHECK(agent.orders().empty());
  }
}

TEST_CASE("a make that was begun before goes on only when its owner starts it again") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect({work_of(make_of(), State::kRunning)});
  CHECK(scene.was_woken("pvc-1"));
  scene.quiet = true;
  scene.pass(seconds(60));
  CHECK(agent.orders().empty());
  REQUIRE(scene.progress(make_of()));
  CHECK(scene.progress(make_of())->outdated);
  SUBCASE("it is wanted") {
    for (const char* const orders : {"start pvc-1", ""}) {
      CHECK(scene.executor.start(make_of()).value() == Start::kRecorded);
      CHECK(agent.orders() == orders);
      CHECK_FALSE(scene.progress(make_of())->outdated);
    }
  }
  SUBCASE("it is wanted while its agent is away") {
    agent.hang_up();
    CHECK(scene.executor.start(make_of()).value() == Start::kRecorded);
    CHECK(scene.progress(make_of())->outdated);
    agent.connect({work_of(make_of(), State::kRunning)});
    CHECK(agent.orders().empty());
  }
  SUBCASE("its volume is there") {
    CHECK(scene.executor.cancel(make_of().id()).ok());
    CHECK(scene.executor.start(make_of()).value() == Start::kRecorded);
    CHECK(agent.orders() == "cancel pvc-1");
  }
}

TEST_CASE("a removal that was begun before is called off, and begins anew only if it is wanted") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect({work_of(removal_of(), State::kRunning)});
  CHECK(scene.was_woken("pvc-1"));
  CHECK(scene.state(removal_of()) == State::kEnding);
  const auto orders = agent.take();
  REQUIRE(orders.size() == 1);
  CHECK(orders[0].what == Order::What::kCancel);
  REQUIRE(orders[0].operation);  // the agent may have lost its record
  CHECK(orders[0].operation->path == removal_of().path);
  SUBCASE("what was left is put back") {
    CHECK(agent.tell(Tell{.ended = {{removal_of().id()}}}).ok());
    CHECK_FALSE(scene.state(removal_of()));
    (void)scene.executor.start(removal_of());
    CHECK(agent.orders() == "start pvc-1");
  }
  SUBCASE("it cannot be put back: it acts no more, and holds no directory") {
    Work work = work_of(removal_of(), State::kEnding);
    work.progress.reason = kCannotCallOff;
    for (int told = 0; told < 3; ++told) {
      CHECK(agent.tell(Tell{.works = {work}}).ok());
      CHECK_FALSE(scene.state(removal_of()));
      CHECK(agent.orders().empty());
    }
    CHECK(scene.not_put_back.contains(removal_of().path));
  }
  SUBCASE("quiet and time do not let it go on") {
    scene.quiet = true;
    scene.pass(seconds(60));
    CHECK(agent.orders().empty());
  }
}

TEST_CASE("a taking back that was begun before is called off by its owner, who notes it first") {
  AgentScene scene;
  SceneAgent agent(scene);
  Operation undo = make_of();
  undo.kind = Kind::kTakeBack;
  agent.connect({work_of(undo, State::kRunning)});
  CHECK(scene.was_woken("pvc-1"));
  CHECK(agent.orders().empty());
  CHECK(agent.tell(Tell{.asks = {undo.id()}})->begin.empty());
  REQUIRE(scene.progress(undo));
  CHECK(scene.progress(undo)->outdated);
  CHECK(scene.state(undo) == State::kRunning);
  SUBCASE("it is called off") {
    CHECK(scene.executor.cancel(undo.id()).ok());
    CHECK(scene.state(undo) == State::kEnding);
    CHECK(agent.orders() == "cancel pvc-1");
    CHECK(agent.tell(Tell{.ended = {{undo.id()}}}).ok());
    CHECK_FALSE(scene.state(undo));
  }
  SUBCASE("it comes to its end first") {
    agent.tell(undo, State::kSucceeded);
    CHECK(scene.state(undo) == State::kSucceeded);
  }
}

TEST_CASE("an agent that says hello over and over, and never all it has, is as good as none") {
  AgentScene scene;
  scene.pass(seconds(100));
  SceneAgent agent(scene);
  for (int i = 0; i < 4; ++i) {
    agent.hello();
    CHECK(scene.executor.presence("node-1") == (i < 2 ? Presence::kExpected : Presence::kAbsent));
    scene.pass(seconds(6));
  }
  CHECK(agent.tell(Tell{.everything = true}).ok());
  CHECK(scene.executor.presence("node-1") == Presence::kConnected);
}

TEST_CASE("a late or repeated word changes nothing") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  (void)agent.orders();
  agent.tell(make_of(), State::kRunning);
  (void)scene.take_woken();
  agent.tell(make_of(), State::kRunning);
  agent.tell(make_of(), State::kWaiting);
  CHECK(scene.state(make_of()) == State::kRunning);
  CHECK(scene.take_woken().empty());
  agent.tell(make_of(), State::kSucceeded);
  (void)scene.take_woken();
  for (const State late : {State::kWaiting, State::kRunning, State::kFailed, State::kSucceeded}) {
    agent.tell(make_of(), late);
    CHECK(scene.state(make_of()) == State::kSucceeded);
  }
  CHECK(scene.take_woken().empty());
  CHECK(agent.tell(Tell{.ended = {{make_of("never").id()}}}).ok());
}

TEST_CASE("an agent is believed for its own node only") {
  AgentScene scene;
  SceneAgent agent(scene);
  SceneAgent other(scene, "node-2");
  agent.connect();
  other.connect();
  const auto refused = [&](const Operation& operation) {
    const auto told = other.tell(Tell{.works = {work_of(make_of("own", "node-2"), State::kRunning),
                                                work_of(operation, State::kSucceeded)}});
    CHECK(scene.state(make_of("own", "node-2")) == State::kRunning);  // the rest counts
    const auto all = scene.executor.recorded(operation.volume_name);
    const bool none = std::none_of(all.begin(), all.end(), [](const auto& one) {
      return one.progress.state == State::kSucceeded;
    });
    return told.ok() && none && scene.executor.left_out()["foreign"] == 1;
  };
  SUBCASE("of another node") { CHECK(refused(make_of())); }
  SUBCASE("of no node") { CHECK(refused(make_of("pvc-1", ""))); }
  SUBCASE("of a shared file system") {
    Operation shared = make_of("pvc-1", "node-2");
    shared.shared = true;
    CHECK(refused(shared));
  }
  SUBCASE("under the number of another node's") {
    (void)scene.executor.start(make_of());
    CHECK(refused(make_of("pvc-1", "node-2")));
    CHECK(scene.state(make_of()) == State::kWaiting);
  }
  SUBCASE("another node's session") {
    other.session = agent.session;
    CHECK(other.tell(Tell{}).error().is(ErrorCode::kExpired));
  }
  SUBCASE("what we know of an operation is not changed by what is told of it") {
    (void)scene.executor.start(make_of());
    Operation changed = make_of();
    changed.path = "/etc";
    agent.tell(changed, State::kSucceeded);
    REQUIRE(scene.executor.recorded("pvc-1").size() == 1);
    CHECK(scene.executor.recorded("pvc-1")[0].operation->path == make_of().path);
  }
  SUBCASE("states that only we give") {
    agent.connect({work_of(make_of("a"), State::kEnding), work_of(make_of("b"), State::kLate)});
    CHECK(scene.state(make_of("a")) == State::kRunning);
    CHECK(scene.state(make_of("b")) == State::kRunning);
  }
  SUBCASE("how a volume looks, and to which nodes it is tied") {
    Operation make = make_of("pvc-9", "node-2");
    make.shape = operation::Shape{.affinity_key = "kubernetes.io/os", .affinity_value = "linux"};
    for (const State state :
         {State::kWaiting, State::kRunning, State::kSucceeded, State::kFailed}) {
      ++make.attempt;
      other.tell(make, state);
      other.tell(make, State::kSucceeded);
    }
    REQUIRE(scene.executor.recorded("pvc-9").size() == 4);
    for (const auto& one : scene.executor.recorded("pvc-9")) CHECK_FALSE(one.operation->shape);
  }
  SUBCASE("more of one volume than there can be") {
    std::vector<Work> works;
    for (int attempt = 1; attempt <= 100; ++attempt) {
      works.push_back(work_of(make_of("pvc-9", "node-2", attempt), State::kRunning));
    }
    CHECK(other.tell(Tell{.works = works}).ok());
    CHECK(other.tell(Tell{.works = works}).ok());
    CHECK(scene.executor.recorded("pvc-9").size() == 32);
    agent.tell(make_of("pvc-9", "node-1", 200), State::kRunning);
    CHECK(scene.executor.recorded("pvc-9").size() == 33);
  }
  SUBCASE("more than any node has") {
    std::vector<Work> works;
    int count = 0;
    for (; count < 41; ++count) {
      works.clear();
      for (int i = 0; i < 500; ++i) {
        const std::string volume = std::to_string(count) + "-" + std::to_string(i);
        works.push_back(work_of(make_of(volume, "node-2"), State::kRunning));
      }
      CHECK(other.tell(Tell{.works = works}).ok());
    }
    CHECK(scene.executor.left_out()["too_many"] == 500);
    other.tell(make_of("1-1", "node-2"), State::kSucceeded);
    CHECK(scene.state(make_of("1-1", "node-2")) == State::kSucceeded);
    CHECK(scene.executor.agents()[1].works == 20'000);
    CHECK(scene.executor.oldest_works("node-2").size() == 5);
  }
  SUBCASE("larger ones than any node has") {
    std::size_t kept = 0;
    for (int i = 0; i < 1000; ++i) {
      Work work = work_of(make_of(std::to_string(i), "node-2"), State::kRunning);
      work.operation.perm = std::string(60'000, '7');
      CHECK(other.tell(Tell{.works = {work}}).ok());
      if (scene.state(work.operation)) ++kept;
    }
    CHECK(kept > 400);
    CHECK(kept < 600);
    CHECK(scene.executor.left_out()["too_many"] == 1000 - kept);
  }
}

TEST_CASE("that nothing of a removal that was called off was left is passed on, of the own node") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  Operation other = removal_of("pvc-2");
  other.node = "node-2";
  const Tell tell{.session = agent.session,
                  .ended = {{removal_of().id()}},
                  .nothing_left = {removal_of(), other}};
  const auto read = decode_tell(encode(tell));
  REQUIRE(read.ok());
  Tell arrived = *read;
  REQUIRE(agent.tell(arrived).ok());
  REQUIRE(scene.not_put_back.size() == 1);
  CHECK(scene.not_put_back["/opt/local/pvc-1"].find("too late") != std::string::npos);
  CHECK(scene.executor.left_out()["foreign"] == 1);
}

TEST_CASE("one record that cannot be read, or came with a foreign disk, does not silence a node") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.hello();
  Tell tell = decode_tell(R"({"session":"s","works":[{"operation":{"action":"dance"}},)" +
                          encode(work_of(make_of("own"), State::kRunning)) + "," +
                          encode(work_of(make_of("foreign", "node-9"), State::kRunning)) +
                          R"(],"ended":[{"kind":"dance"}]})")
                  .value();
  REQUIRE(tell.unread.size() == 2);
  tell.everything = true;
  tell.bases = std::vector{Base{.path = "/opt/local"}};
  REQUIRE(agent.tell(tell).ok());
  agent.poll();
  CHECK(scene.executor.presence("node-1") == Presence::kConnected);
  CHECK(scene.state(make_of("own")) == State::kRunning);
  CHECK(scene.executor.recorded("foreign").empty());
  CHECK(scene.executor.left_out() ==
        std::map<std::string, std::uint64_t>{{"foreign", 1}, {"unreadable", 2}});
}

}  // namespace
}  // namespace lpp::agent
