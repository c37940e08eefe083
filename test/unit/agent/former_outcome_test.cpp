// SPDX-License-Identifier: Apache-2.0
// Ids repeat once all is forgotten: what was under the same one before says nothing of what is now.

#include "agent_bed.h"
#include "agent_scene.h"

namespace lpp::agent {
namespace {

using operation::Directory;
using testing::BadDisk;
using testing::BaseFolder;
using testing::eventually;
using testing::RunningAgent;
using testing::work_files;

Work word_of(const Operation& operation, State state, const std::string& serial) {
  Work work = work_of(operation, state);
  work.serial = serial;
  return work;
}

Order with_serial(Order order, const std::string& serial) {
  order.serial = serial;
  return order;
}

/// The order that a real agent of today is given.
Order order_of(SceneAgent& agent, What what) {
  for (Order& order : agent.take()) {
    if (order.what == what) return order;
  }
  FAIL("there is no such order");
  return {};
}

/// An agent was killed when it had outcomes on record.
struct Book {
  void note(const Operation& operation, State state, const std::string& serial) {
    const auto volumes = base.volumes(kernel);
    const auto book = WorkBook::open(kernel, volumes);
    REQUIRE(book->put(word_of(operation, state, serial)).ok());
  }
  void take_away() {
    const auto removed = base.volumes(kernel).remove({.id = node::id_of_path("web/pvc-1")});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    REQUIRE_FALSE(base.has("web/pvc-1"));
  }
  const BaseFolder base;
  node::Kernel kernel;
  const Operation make = testing::operation_of(base, Kind::kMake);
};

}  // namespace

TEST_CASE("an agent that was killed before it forgot answers no new order with what was") {
  for (const Operation& operation : {make_of(), removal_of(), resize_of()}) {
    for (const bool was_ordered : {true, false}) {
      CAPTURE(to_string(operation.kind));
      CAPTURE(was_ordered);
      AgentScene scene;
      SceneAgent agent(scene);
      agent.connect();
      (void)scene.executor.start(operation);
      const std::string former = order_of(agent, What::kStart).serial;
      CHECK_FALSE(former.empty());
      const auto told_former = word_of(operation, State::kSucceeded, former);
      CHECK(agent.tell(Tell{.works = {told_former}}).ok());
      CHECK(scene.state(operation) == State::kSucceeded);
      CHECK(scene.executor.forget(operation.id(), When::kNow).value());
      CHECK(agent.orders() == "forget pvc-1");
      CHECK(scene.executor.start(operation).value() == Start::kRecorded);
      if (was_ordered) CHECK(order_of(agent, What::kStart).serial != former);
      agent.connect({told_former});
      CHECK_FALSE(scene.progress(operation)->over());
      const std::string serial = order_of(agent, What::kStart).serial;
      CHECK(serial != former);
      CHECK(agent.tell(Tell{.works = {told_former}}).ok());
      CHECK_FALSE(scene.progress(operation)->over());
      CHECK(agent.tell(Tell{.works = {word_of(operation, State::kFailed, serial)}}).ok());
      CHECK(scene.state(operation) == State::kFailed);
    }
  }
}

TEST_CASE("a make that was ordered in an earlier session, too, may have been begun then") {
  for (const bool is_twice : {false, true}) {
    CAPTURE(is_twice);
    AgentScene scene;
    SceneAgent agent(scene);
    agent.connect();
    (void)scene.executor.start(make_of());
    Work refused = word_of(make_of(), State::kFailed, order_of(agent, What::kStart).serial);
    if (is_twice) {
      agent.connect();  // its node has lost power, and its disk, and knows of nothing
      CHECK(order_of(agent, What::kStart).serial == *refused.serial);
    }
    refused.progress.directory = Directory::kAbsent;
    CHECK(agent.tell(Tell{.works = {refused}}).ok());
    CHECK(scene.progress(make_of())->directory ==
          (is_twice ? Directory::kUnknown : Directory::kAbsent));
  }
}

TEST_CASE("what comes to light under the number of what is to be forgotten is taken note of") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  const std::string serial = order_of(agent, What::kStart).serial;
  CHECK(agent.tell(Tell{.works = {word_of(make_of(), State::kFailed, serial)}}).ok());
  CHECK(scene.executor.forget(make_of().id(), When::kNow).value());
  CHECK(agent.tell(Tell{.works = {word_of(make_of(), State::kFailed, serial)}}).ok());
  CHECK_FALSE(scene.state(make_of()));  // it has not heard yet
  CHECK(agent.tell(Tell{.works = {word_of(make_of(), State::kSucceeded, "former")}}).ok());
  CHECK(scene.state(make_of()) == State::kSucceeded);
  CHECK(order_of(agent, What::kForget).serial == serial);
  CHECK(scene.executor.forget(make_of().id(), When::kNow).value());
  CHECK(order_of(agent, What::kForget).serial == "former");
}

TEST_CASE("an outcome on record from before serials is none of an order that has one") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  (void)agent.orders();
  agent.connect({word_of(make_of(), State::kSucceeded, "")});
  CHECK(scene.state(make_of()) == State::kWaiting);
  CHECK(agent.orders() == "start pvc-1");
  // An agent of that version keeps none.
  agent.connect({work_of(make_of(), State::kSucceeded)});
  CHECK(scene.state(make_of()) == State::kSucceeded);
}

TEST_CASE("what is called off is not what was done under its number before") {
  AgentScene scene;
  SceneAgent agent(scene);
  agent.connect();
  (void)scene.executor.start(make_of());
  const std::string serial = order_of(agent, What::kStart).serial;
  CHECK(scene.executor.cancel(make_of().id()).ok());
  CHECK(order_of(agent, What::kCancel).serial == serial);
  agent.connect({word_of(make_of(), State::kSucceeded, "former")});
  CHECK(scene.state(make_of()) == State::kEnding);
  CHECK(order_of(agent, What::kCancel).serial == serial);
  CHECK(agent.tell(Tell{.ended = {{make_of().id()}}}).ok());
  CHECK_FALSE(scene.state(make_of()));
}

TEST_CASE("a late word that a former one has ended is not about the one that is called off now") {
  bool says_which = true;
  SUBCASE("it says so itself") {}
  SUBCASE("by an agent that does not say which one it was") { says_which = false; }
  for (const Operation& operation : {make_of(), removal_of()}) {
    CAPTURE(to_string(operation.kind));
    AgentScene scene;
    SceneAgent agent(scene);
    agent.connect();
    const auto begin_and_call_off = [&] {
      (void)scene.executor.start(operation);
      const std::string serial = order_of(agent, What::kStart).serial;
      CHECK(agent.tell(Tell{.works = {word_of(operation, State::kRunning, serial)}}).ok());
      CHECK(scene.executor.cancel(operation.id()).ok());
      CHECK(order_of(agent, What::kCancel).serial == serial);
      return serial;
    };
    const std::string former = begin_and_call_off();
    const Tell ended{.ended = {{operation.id(), former}}};
    CHECK(agent.tell(ended).ok());
    REQUIRE_FALSE(scene.state(operation));
    const std::string now = begin_and_call_off();
    // Its answer was lost: it may still be at work.
    CHECK(agent.tell(ended).ok());
    Work stuck = word_of(operation, State::kEnding, former);
    stuck.progress.reason = kCannotCallOff;
    CHECK(agent.tell(Tell{.works = {stuck}}).ok());
    CHECK(scene.state(operation) == State::kEnding);
    CHECK(agent.tell(Tell{.ended = {{operation.id(), says_which ? now : ""}}}).ok());
    CHECK_FALSE(scene.state(operation));
  }
}

TEST_CASE("an agent says which order has ended") {
  Book book;
  RunningAgent running(book.base, book.kernel);
  Order order = with_serial(testing::cancel_and_keep(book.make), "now");
  SUBCASE("which it never got") {}
  SUBCASE("which it knows by another number") {
    const Operation removal = testing::operation_of(book.base, Kind::kRemove);
    running.listener.lets_begin = false;
    running.agent.take(with_serial(testing::start(removal), "former"));
    order = with_serial(testing::cancel(removal), "now");
  }
  running.agent.take(order);
  CHECK(eventually([&] {
    running.listener.hear();
    return running.listener.ended_serial == "now";
  }));
}

TEST_CASE("an agent does anew what it has on record of a former order") {
  Book book;
  {
    RunningAgent first(book.base, book.kernel);
    first.agent.take(with_serial(testing::start(book.make), "former"));
    REQUIRE(first.listener.outcome(book.make)->state == State::kSucceeded);
    book.take_away();
    Order order = with_serial(testing::start(book.make), "now");
    SUBCASE("right after it was to forget that") { first.agent.take(testing::forget(book.make)); }
    SUBCASE("by a controller of before, right after it was to forget that") {
      first.agent.take(testing::forget(book.make));
      order.serial.clear();
    }
    SUBCASE("which it was to forget, and did not hear of") {}
    first.agent.take(order);
    CHECK(eventually([&] { return book.base.has("web/pvc-1"); }));
    CHECK(first.listener.outcome(book.make)->directory == Directory::kMade);
  }
  RunningAgent again(book.base, book.kernel);
  const auto told = again.listener.progress(book.make);
  REQUIRE(told);
  CHECK(told->state == State::kSucceeded);
  CHECK(work_files(book.base).size() == 1);
}

TEST_CASE("a new order may be about another place than the former one under its number") {
  Book book;
  RunningAgent running(book.base, book.kernel);
  running.agent.take(with_serial(testing::start(book.make), "former"));
  REQUIRE(running.listener.outcome(book.make)->state == State::kSucceeded);
  Operation moved = book.make;
  moved.path = book.base.at("other/pvc-1");
  running.agent.take(with_serial(testing::start(moved), "now"));
  CHECK(eventually([&] { return book.base.has("other/pvc-1"); }));
  CHECK(running.listener.outcome(moved)->directory == Directory::kMade);
  CHECK(work_files(book.base).size() == 1);
}

TEST_CASE("what a former leader's order has begun in another place gives way to this one's") {
  Book book;
  Operation moved = book.make;
  moved.path = book.base.at("other/pvc-1");
  SUBCASE("interrupted by a restart") {
    book.note(book.make, State::kRunning, "former");
    // It was about to move it into its place.
    const std::string begun = BaseFolder::record("new." + node::id_of_path("web/pvc-1"));
    const std::string others = BaseFolder::record("new." + node::id_of_path("web/pvc-2"));
    std::filesystem::create_directory(book.base.at(begun));
    std::filesystem::create_directory(book.base.at(others));
    bool is_empty = true;
    SUBCASE("with nothing in it") {}
    SUBCASE("with something in it, by whomever") {
      is_empty = false;
      book.base.write(begun + "/data");
    }
    RunningAgent running(book.base, book.kernel);
    running.agent.take(with_serial(testing::start(moved), "now"));
    // What is told of the former one until then is left out by whoever hears it.
    CHECK(eventually([&] {
      running.listener.hear();
      return book.base.has("other/pvc-1") && running.listener.operation(moved).path == moved.path;
    }));
    running.listener.begin_session();
    CHECK(running.listener.outcome(moved).value_or(Progress{}).directory == Directory::kMade);
    CHECK_FALSE(book.base.has("web/pvc-1"));
    CHECK(book.base.has(begun) == !is_empty);
    CHECK(book.base.has(others));
    CHECK(work_files(book.base).size() == 1);
  }
  SUBCASE("at work") {
    testing::HoldingKernel kernel("mkdirat", 1);
    RunningAgent running(book.base, kernel);
    running.agent.take(with_serial(testing::start(book.make), "former"));
    REQUIRE(kernel.holds());
    running.agent.take(with_serial(testing::start(moved), "now"));
    SUBCASE("and it is wanted") {
      kernel.let_go();
      CHECK(eventually([&] { return book.base.has("other/pvc-1"); }));
    }
    SUBCASE("and is called off") {
      running.agent.take(with_serial(testing::cancel_and_keep(moved), "now"));
      kernel.let_go();
      CHECK(eventually([&] {
        running.listener.hear();
        return running.listener.ended_serial == "now";
      }));
      CHECK(eventually([&] { return running.agent.view().on_record == 0; }));
      CHECK_FALSE(book.base.has("other/pvc-1"));
    }
  }
}

TEST_CASE("what a former leader's removal has left is in its place before another one begins") {
  const BaseFolder base;
  testing::HoldingKernel kernel("unlinkat", 6);
  for (int i = 0; i < 10; ++i) base.write("web/pvc-1/" + std::to_string(i));
  base.write("other/pvc-1/data");
  RunningAgent running(base, kernel);
  const Operation removal = testing::operation_of(base, Kind::kRemove);
  running.agent.take(with_serial(testing::start(removal), "former"));
  REQUIRE(eventually([&] {
    running.listener.hear();
    return !base.has("web/pvc-1");
  }));
  REQUIRE(kernel.holds());
  Operation moved = removal;
  moved.path = base.at("other/pvc-1");
  running.agent.take(with_serial(testing::start(moved), "now"));
  kernel.let_go();
  CHECK(eventually([&] {
    running.listener.hear();
    return !base.has("other/pvc-1");
  }));
  CHECK(base.has("web/pvc-1"));
}

TEST_CASE("what was begun when the node had another name is done for the one that orders it now") {
  for (const auto kind : {Kind::kMake, Kind::kTakeBack, Kind::kRemove}) {
    for (const auto state : {State::kRunning, State::kSucceeded, State::kFailed}) {
      CAPTURE(to_string(kind));
      CAPTURE(static_cast<int>(state));
      Book book;
      {
        RunningAgent makes_records(book.base, book.kernel);
        REQUIRE(makes_records.run(book.make).state == State::kSucceeded);
        makes_records.agent.take(testing::forget(book.make));
        REQUIRE(eventually([&] { return work_files(book.base).empty(); }));
      }
      const Operation now = testing::operation_of(book.base, kind);
      Operation former = now;
      former.node = "of-another-name";
      book.note(former, state, "");
      RunningAgent again(book.base, book.kernel);
      again.agent.take(testing::start(now));
      // What is told of the former one is left out by whoever hears it.
      Operation told;
      CHECK(eventually([&] {
        const auto outcome = again.listener.outcome(now);
        told = again.listener.operation(now);
        return outcome && outcome->state == State::kSucceeded && told.node == now.node;
      }));
      CHECK(book.base.has("web/pvc-1") == (kind == Kind::kMake));
    }
  }
}

TEST_CASE("what is called off under a number that was another's has not been done") {
  Book book;
  book.base.make_directory("web/pvc-1");
  const Operation removal = testing::operation_of(book.base, Kind::kRemove);
  RunningAgent make_records(book.base, book.kernel);
  REQUIRE(make_records.run(book.make).state == State::kSucceeded);
  make_records.agent.take(testing::forget(book.make));
  REQUIRE(eventually([&] { return work_files(book.base).empty(); }));
  for (const Operation& operation : {book.make, removal}) {
    CAPTURE(to_string(operation.kind));
    book.note(operation, State::kSucceeded, "former");
    RunningAgent running(book.base, book.kernel);
    REQUIRE(running.listener.progress(operation)->state == State::kSucceeded);
    Order order = with_serial(testing::cancel_and_keep(operation), "now");
    if (operation.kind == Kind::kRemove) {
      order.keep = false;
      order.operation = operation;
    }
    running.agent.take(order);
    CHECK(running.listener.has_ended(operation));
    CHECK(work_files(book.base).empty());
    CHECK(running.listener.nothing_left.empty());
    CHECK(book.base.has("web/pvc-1"));
  }
}

TEST_CASE("nobody hears of what is to be forgotten, and it goes as soon as it can") {
  Book book;
  BadDisk disk;
  RunningAgent running(book.base, disk);
  REQUIRE(running.run(book.make).state == State::kSucceeded);
  disk.is_bad = true;
  running.agent.take(testing::forget(book.make));
  REQUIRE(eventually([&] { return disk.refused > 0; }));
  running.listener.begin_session();
  CHECK(running.listener.works() == 0);
  CHECK(work_files(book.base).size() == 1);
  disk.is_bad = false;
  const auto is_gone = [&] { return work_files(book.base).empty(); };
  CHECK(as_time_passes(running.clock, seconds(61), is_gone, kAgentsPace));
}

TEST_CASE("who orders what a record stands in the way of that cannot go is told so") {
  Book book;
  BadDisk disk;
  RunningAgent running(book.base, disk);
  running.agent.take(with_serial(testing::start(book.make), "former"));
  REQUIRE(running.listener.outcome(book.make)->state == State::kSucceeded);
  disk.is_bad = true;
  SUBCASE("a start") {
    running.agent.take(with_serial(testing::start(book.make), "now"));
    CHECK(eventually([&] {
      const auto told = running.listener.progress(book.make);
      return told && told->state == State::kFailed && !told->message.empty();
    }));
    disk.is_bad = false;
    running.agent.take(testing::forget(book.make));
    CHECK(eventually([&] { return work_files(book.base).empty(); }));
    running.agent.take(testing::start(book.make));
    CHECK(eventually([&] {
      const auto told = running.listener.progress(book.make);
      return told && told->state == State::kSucceeded;
    }));
  }
  SUBCASE("a call off") {
    running.agent.take(with_serial(testing::cancel_and_keep(book.make), "now"));
    CHECK(running.listener.has_ended(book.make));
  }
}

TEST_CASE("a make on record is believed after a restart only while its volume is there") {
  Book book;
  {
    RunningAgent first(book.base, book.kernel);
    REQUIRE(first.run(book.make).state == State::kSucceeded);
  }
  bool is_there = true;
  SUBCASE("it is") {}
  SUBCASE("it was taken back") {
    book.take_away();
    is_there = false;
  }
  RunningAgent again(book.base, book.kernel);
  const auto told = again.listener.progress(book.make);
  REQUIRE(told);
  CHECK(told->state == (is_there ? State::kSucceeded : State::kRunning));
  CHECK(again.run(book.make).state == State::kSucceeded);
  CHECK(book.base.has("web/pvc-1"));
}

}  // namespace lpp::agent
