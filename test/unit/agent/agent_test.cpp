// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <string_view>

#include "agent/work.h"
#include "agent_bed.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using operation::Directory;
using operation::Kind;
using State = operation::Progress::State;

namespace {

bool ends_up(const std::function<bool()>& condition) { return eventually(condition); }

}  // namespace

TEST_CASE("orders become directories, outcomes are told and kept until they are forgotten") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  const auto make = operation_of(base, Kind::kMake);
  const auto made = running.run(make);
  CHECK_MESSAGE(made.state == State::kSucceeded, made.message);
  CHECK(made.directory == Directory::kMade);
  CHECK(made.kept.size == BaseFolder::has_limits());
  REQUIRE(made.space.has_value());
  CHECK(made.space->size > 0);
  CHECK(base.has("web/pvc-1"));
  CHECK(work_files(base).size() == 1);

  // Ordered again it is told again, and not done again.
  CHECK(running.run(make) == made);
  running.agent.take(forget(make));
  CHECK(ends_up([&] { return work_files(base).empty(); }));
  running.listener.begin_session();
  CHECK(running.listener.works() == 0);

  const auto remove = operation_of(base, Kind::kRemove);
  CHECK(running.run(remove).directory == Directory::kRemoved);
  CHECK_FALSE(base.has("web"));
  running.agent.take(forget(remove));
  CHECK(ends_up([&] { return work_files(base).empty(); }));
}

TEST_CASE("an agent tells of its base paths, and why it cannot work at one") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.listener.bases().size() == 1);
  CHECK(running.listener.bases()[0].problem.empty());
  CHECK(running.listener.bases()[0].identity.empty());
  REQUIRE(running.listener.bases()[0].space.has_value());
  CHECK(running.listener.bases()[0].space->filesystem.find(':') != std::string::npos);

  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  running.agent.take({.what = Order::What::kBases, .base_paths = {base.path(), "/no/such"}});
  REQUIRE(ends_up([&] {
    running.listener.hear();
    return running.listener.bases().size() == 2;
  }));
  const Base seen = running.listener.bases()[0];
  CHECK(seen.identity.size() == 36);
  CHECK(seen.volumes == 1);
  CHECK(seen.promised_bytes == 1 << 20);
  REQUIRE(seen.space.has_value());
  CHECK(seen.space->promises == operation::Promises{.unlimited = 1 << 20});
  CHECK(running.listener.bases()[1].problem.find("not mounted into the agent: /no/such") !=
        std::string::npos);

  // Nothing is told of what stays as it is.
  REQUIRE(running.run(operation_of(base, Kind::kMake, "pvc-2")).state == State::kSucceeded);
  CHECK(running.listener.bases()[0].volumes == 1);
  CHECK(ends_up([&] {
    running.clock.advance(std::chrono::seconds(61));
    running.listener.hear();
    return running.listener.bases()[0].volumes == 2;
  }));

  // A disk that is away is told of, for a leader that has not seen it.
  CHECK(seen.seen.empty());
  const std::string away = base.path() + ".away";
  std::filesystem::rename(base.path(), away);
  CHECK(ends_up([&] {
    running.clock.advance(std::chrono::seconds(61));
    running.listener.hear();
    const Base& now = running.listener.bases()[0];
    return !now.problem.empty() && now.identity.empty() && now.seen == seen.identity;
  }));
  std::filesystem::rename(away, base.path());
}

TEST_CASE("sizes that no disk has do not take a base path away from its agent") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const char* const name : {"pvc-1", "pvc-2", "pvc-3"}) {
    auto make = operation_of(base, Kind::kMake, name);
    make.limits = {};
    make.size_bytes = kMost / 2 + 1;
    REQUIRE(running.run(make).state == State::kSucceeded);
  }
  running.agent.take({.what = Order::What::kBases, .base_paths = {base.path()}});
  REQUIRE(ends_up([&] {
    running.clock.advance(std::chrono::seconds(61));
    running.listener.hear();
    return running.listener.bases().at(0).volumes == 3;
  }));
  CHECK(running.listener.bases()[0].promised_bytes == kMost);
}

TEST_CASE("an agent tells of limits on record that do not hold, as on a disk without its quota") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto made = base.volumes(kernel).make({.id = "data", .path = "data", .size = 1 << 20});
  REQUIRE(made.ok());
  node::Volume limited = *made;
  limited.project = 0x40000001;
  limited.limits.bytes = 1 << 20;
  base.write(BaseFolder::record("volume.data.json"), node::encode_record(limited));
  RunningAgent running(base, kernel);
  running.listener.hear();
  CHECK(running.listener.bases().at(0).volumes == 1);
  CHECK(running.listener.bases().at(0).limits_not_held == 1);
  CHECK(running.listener.bases().at(0).problem.empty());
}

TEST_CASE("an order for a path outside of the base paths is refused in words") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  auto outside = operation_of(base, Kind::kMake);
  outside.path = "/etc/pvc-1";
  CHECK(running.run(outside).message.find("/etc/pvc-1") != std::string::npos);
  auto dots = operation_of(base, Kind::kMake, "pvc-2");
  dots.path = base.path() + "/../pvc-2";
  CHECK(running.run(dots).state == State::kFailed);
  auto unknown = operation_of(base, Kind::kMake, "pvc-3");
  unknown.base_path = "/opt";
  unknown.path = "/opt/pvc-3";
  CHECK(running.run(unknown).message.find("not one of the base paths") != std::string::npos);
  CHECK(base.content().empty());
  running.agent.take(forget(outside));
  running.listener.begin_session();
  CHECK(running.listener.works() == 2);
}

TEST_CASE("what was never begun is cancelled at once, what is unknown has ended") {
  const BaseFolder base;
  HoldingKernel kernel("mkdirat", 1, 2);
  RunningAgent running(base, kernel);
  const auto unknown = operation_of(base, Kind::kRemove, "pvc-9");
  running.agent.take(cancel(unknown));
  CHECK(running.listener.has_ended(unknown));

  // Below a base path that it has no more, nobody knows what of it is left.
  auto former = operation_of(base, Kind::kRemove, "pvc-8");
  former.base_path = "/no/more";
  former.path = "/no/more/pvc-8";
  running.agent.take({.what = agent::Order::What::kCancel, .operation = former, .id = former.id()});
  CHECK(ends_up([&] {
    const auto told = running.listener.progress(former);
    return told && told->reason == agent::kCannotCallOff;
  }));
  CHECK_FALSE(running.listener.has_ended_by_now(former));

  // Both threads for makes are held before there is a folder of the records.
  std::vector<operation::Operation> makes;
  for (const char* name : {"pvc-1", "pvc-2", "pvc-3"}) {
    makes.push_back(operation_of(base, Kind::kMake, name));
  }
  running.agent.take(start(makes[0]));
  running.agent.take(start(makes[1]));
  REQUIRE(kernel.holds());
  CHECK(running.listener.progress(makes[0])->state == State::kRunning);
  running.agent.take(cancel(makes[0]));
  running.agent.take(start(makes[2]));
  running.agent.take(cancel(makes[2]));
  running.agent.take(cancel(makes[1]));
  kernel.let_go();
  // A make that runs ends first, and its outcome is dropped.
  for (const auto& make : makes) CHECK(running.listener.has_ended(make));
  CHECK(base.has("web/pvc-1"));
  CHECK(work_files(base).empty());
}

namespace {

/// The removal of a volume with ten files is held after some of them.
struct HeldRemoval {
  HeldRemoval() {
    const auto make = operation_of(base, Kind::kMake);
    REQUIRE(running.run(make).state == State::kSucceeded);
    running.agent.take(forget(make));
    REQUIRE(ends_up([&] { return work_files(base).empty(); }));
    for (int i = 0; i < 10; ++i) base.write("web/pvc-1/" + std::to_string(i));
    running.begin(remove);
    REQUIRE(kernel.holds());
  }
  BaseFolder base;
  HoldingKernel kernel{"unlinkat", 6};
  RunningAgent running{base, kernel};
  const operation::Operation remove = operation_of(base, Kind::kRemove);
};

}  // namespace

TEST_CASE("a removal that is cancelled stops, and what is left is in its place again") {
  HeldRemoval held;
  auto& [base, kernel, running, remove] = held;
  CHECK_FALSE(base.has("web/pvc-1"));
  CHECK(running.listener.progress(remove)->state == State::kRunning);
  CHECK(work_files(base).size() == 1);
  running.agent.take(cancel(remove));
  kernel.let_go();
  REQUIRE(running.listener.has_ended(remove));
  CHECK(base.has("web/pvc-1"));
  const auto left = base.content();
  CHECK(left.size() > 4);
  CHECK(left.size() < 14);
  CHECK(work_files(base).empty());
  // Its volume is removed another day.
  CHECK(running.run(operation_of(base, Kind::kRemove, "pvc-1", 2)).directory ==
        Directory::kRemoved);
}

TEST_CASE("a start that comes while its removal is called off begins when that is done") {
  HeldRemoval held;
  auto& [base, kernel, running, remove] = held;
  running.agent.take(cancel(remove));
  running.agent.take(start(remove));
  SUBCASE("it is wanted") {
    kernel.let_go();
    CHECK(running.listener.outcome(remove).value_or(operation::Progress{}).directory ==
          Directory::kRemoved);
  }
  SUBCASE("and is called off with it") {
    running.agent.take(cancel(remove));
    kernel.let_go();
    REQUIRE(running.listener.has_ended(remove));
    CHECK(ends_up([&] { return work_files(held.base).empty(); }));
    CHECK(running.agent.view().on_record == 0);
    CHECK(base.has("web/pvc-1"));
  }
}

TEST_CASE("how far the removal of a large tree is gets told now and then, until it is over") {
  const BaseFolder base;
  HoldingKernel kernel("unlinkat", 3000);
  for (int i = 0; i < 5000; ++i) base.write("web/pvc-1/file" + std::to_string(i));
  RunningAgent running(base, kernel);
  const auto remove = operation_of(base, Kind::kRemove);
  running.begin(remove);
  REQUIRE(kernel.holds());
  running.listener.hear();
  CHECK(running.listener.gone == 0);  // it has only begun
  running.clock.advance(std::chrono::seconds(16));
  kernel.let_go();
  CHECK(running.listener.outcome(remove)->directory == Directory::kRemoved);
  CHECK(running.listener.gone == 3072);  // as it was then
}

TEST_CASE("a removal whose place is taken by now stays on record, and ends when it is free") {
  const BaseFolder base;
  HoldingKernel kernel("unlinkat", 6);
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  for (int i = 0; i < 10; ++i) base.write("web/pvc-1/" + std::to_string(i));
  const auto remove = operation_of(base, Kind::kRemove);
  running.begin(remove);
  REQUIRE(kernel.holds());
  base.write("web/pvc-1/of somebody else");
  running.agent.take(cancel(remove));
  kernel.let_go();
  REQUIRE(ends_up([&] {
    const auto now = running.listener.progress(remove);
    return now && now->state == State::kEnding;
  }));
  CHECK(running.listener.progress(remove)->acts_no_more);
  CHECK(running.listener.progress(remove)->message.find("web/pvc-1") != std::string::npos);
  const auto all = base.content();
  CHECK(base.volumes(kernel).recover({})->empty());
  CHECK(base.content() == all);
  std::filesystem::remove_all(base.at("web"));
  CHECK(ends_up([&] {
    running.clock.advance(std::chrono::seconds(61));
    running.listener.hear();
    return !running.listener.progress(remove);
  }));
  CHECK(running.listener.has_ended(remove));
  CHECK(base.has("web/pvc-1"));
}

TEST_CASE("a removal goes on after a restart only when it is ordered again") {
  const BaseFolder base;
  const auto remove = operation_of(base, Kind::kRemove);
  {
    HoldingKernel kernel("unlinkat", 6);
    RunningAgent running(base, kernel);
    const auto make = operation_of(base, Kind::kMake);
    REQUIRE(running.run(make).state == State::kSucceeded);
    running.agent.take(forget(make));
    REQUIRE(ends_up([&] { return work_files(base).empty(); }));
    for (int i = 0; i < 10; ++i) base.write("web/pvc-1/" + std::to_string(i));
    running.begin(remove);
    REQUIRE(kernel.holds());
    std::jthread stopping([&] { running.agent.stop(); });
    // The stop is requested before it waits for the thread that is held.
    running.agent.take(start(operation_of(base, Kind::kMake, "pvc-2")));
    std::this_thread::yield();
    kernel.let_go();
  }
  CHECK_FALSE(base.has("web/pvc-1"));
  node::Kernel kernel;
  RunningAgent again(base, kernel);
  const auto known = again.listener.progress(remove);
  REQUIRE(known.has_value());
  if (known->state == State::kRunning) {
    CHECK(base.has(BaseFolder::record("gone.") + node::id_of_path("web/pvc-1")));
    again.agent.take(start(remove));
  }
  CHECK(again.listener.outcome(remove)->directory == Directory::kRemoved);
  CHECK_FALSE(base.has("web/pvc-1"));
}

TEST_CASE("a removal begins only with a fresh answer that it is still wanted") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  base.write("web/pvc-1/data");
  const auto remove = operation_of(base, Kind::kRemove);
  running.listener.lets_begin = false;
  running.agent.take(start(remove));
  REQUIRE(ends_up([&] { return running.listener.asked(remove) == 1; }));
  CHECK(running.listener.progress(remove)->state == State::kWaiting);

  SUBCASE("it was called off: nothing has happened") {
    running.agent.take(cancel(remove));
    REQUIRE(running.listener.has_ended(remove));
    CHECK(base.has("web/pvc-1/data"));
    CHECK(running.listener.asked(remove) == 1);
  }
  SUBCASE("an answer that was long under way counts for nothing") {
    running.listener.lets_begin = true;
    running.listener.answer_takes = std::chrono::seconds(3);
    running.agent.take(start(remove));
    REQUIRE(ends_up([&] { return running.listener.asked(remove) > 3; }));
    CHECK(base.has("web/pvc-1/data"));
    running.listener.answer_takes = std::chrono::seconds(1);
    CHECK(running.listener.outcome(remove)->directory == Directory::kRemoved);
  }
  SUBCASE("it is asked again in the next session, and when it is ordered again") {
    running.listener.begin_session();
    CHECK(running.listener.asked(remove) == 2);
    running.agent.take(start(remove));
    REQUIRE(ends_up([&] { return running.listener.asked(remove) == 3; }));
    CHECK(base.has("web/pvc-1/data"));
    running.listener.lets_begin = true;
    CHECK(running.run(remove).directory == Directory::kRemoved);
  }
}

TEST_CASE("a removal whose leave grows old while the disk is slow takes nothing away") {
  const BaseFolder base;
  HoldingKernel kernel("renameat2", 2);  // the first one is the make's
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  base.write("web/pvc-1/data");
  const auto remove = operation_of(base, Kind::kRemove);
  running.begin(remove);
  REQUIRE(kernel.holds());
  running.listener.lets_begin = false;
  running.clock.advance(std::chrono::seconds(3));
  kernel.let_go();
  REQUIRE(ends_up([&] { return running.listener.asked(remove) == 2; }));
  CHECK(base.has("web/pvc-1/data"));
  SUBCASE("and is called off") {
    running.agent.take(cancel(remove));
    REQUIRE(running.listener.has_ended(remove));
    CHECK(base.has("web/pvc-1/data"));
    CHECK(running.listener.nothing_left.empty());
  }
  SUBCASE("and begins with another one") {
    running.listener.lets_begin = true;
    CHECK(running.run(remove).directory == Directory::kRemoved);
  }
}

TEST_CASE("everything is told in parts of a bounded size, and again until it has arrived") {
  const BaseFolder base;
  node::Kernel kernel;
  FakeClock clock;
  Agent agent(kernel, clock, {});
  agent.open_bases({base.path()});
  for (std::size_t i = 0; i < kMaxWorks + 1; ++i) {
    auto outside = operation_of(base, Kind::kMake, "pvc-" + std::to_string(i));
    outside.base_path = "/elsewhere";
    agent.take(start(outside));
  }
  agent.begin_session();
  const auto first = agent.next_tell();
  REQUIRE(first.has_value());
  CHECK(first->everything);
  CHECK_FALSE(first->last);
  CHECK(first->works.size() == kMaxWorks);
  CHECK(first->bases.has_value());
  CHECK(encode(*agent.next_tell()) == encode(*first));
  agent.told({}, clock.now());
  // What ends meanwhile is told after it.
  const auto ended = operation_of(base, Kind::kMake, "pvc-77");
  agent.take(cancel(ended));
  const auto second = agent.next_tell();
  REQUIRE(second.has_value());
  CHECK(second->everything);
  CHECK(second->last);
  CHECK(second->works.size() == 1);
  CHECK_FALSE(second->bases.has_value());
  CHECK(second->ended.empty());
  agent.told({}, clock.now());
  const auto third = agent.next_tell();
  REQUIRE(third.has_value());
  CHECK_FALSE(third->everything);
  CHECK(third->ended.size() == 1);
  agent.told({}, clock.now());
  CHECK_FALSE(agent.next_tell().has_value());
}

TEST_CASE("an agent is at rest a while after each look, and not while it works") {
  const BaseFolder base;
  std::atomic<int> looks = 0;
  struct CountingKernel : HoldingKernel {
    explicit CountingKernel(std::atomic<int>& all) : HoldingKernel("mkdirat", 1), looks(all) {}
    int before(const char* call) override {
      if (std::string_view(call) == "fstatfs") ++looks;
      return HoldingKernel::before(call);
    }
    std::atomic<int>& looks;
  } kernel(looks);
  std::atomic<int> rests = 0;
  RunningAgent running(base, kernel, {}, {.at_rest = [&] { ++rests; }});
  const auto rests_soon = [&](int number) {
    return running.looks([&] { return rests == number; });
  };
  CHECK(rests == 0);
  CHECK(rests_soon(1));
  CHECK(rests_soon(2));

  running.agent.take(start(operation_of(base, Kind::kMake)));
  REQUIRE(kernel.holds());
  const int before = rests;
  looks = 0;
  CHECK(running.looks([&] { return looks >= 3; }));
  CHECK(rests <= before + 1);  // one may have been about to begin
  kernel.let_go();
  CHECK(rests_soon(rests + 1));
}
