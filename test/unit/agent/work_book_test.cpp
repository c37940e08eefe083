// SPDX-License-Identifier: Apache-2.0
#include "agent/work_book.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "agent/work.h"
#include "agent_bed.h"
#include "harness/file_text.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using operation::Directory;
using operation::Kind;
using operation::Operation;
using State = operation::Progress::State;

namespace {

WorkBook book_of(const BaseFolder& base, node::Kernel& kernel) {
  auto book = WorkBook::open(kernel, base.volumes(kernel));
  REQUIRE(book.ok());
  return *std::move(book);
}

/// The thread sanitizer knows no threads in a process that one with threads has forked.
#if defined(__SANITIZE_THREAD__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif

/// An agent whose process ends at the n-th place of its work with `operation`; 0: it came to the
/// end.
int crash_at(const BaseFolder& base, const Operation& operation, int place) {
  return in_process([&] {
    FaultyKernel faulty(place, 0);
    RunningAgent running(base, faulty);
    if (running.run(operation).state != State::kSucceeded) return 1;
    running.agent.take(forget(operation));
    return eventually([&] { return work_files(base).empty(); }) ? 0 : 2;
  });
}

/// As the leader would: what is on record goes on, what is not is ordered anew.
operation::Progress finish(RunningAgent& running, const Operation& operation) {
  const auto known = running.listener.progress(operation);
  if (known && known->over()) return *known;
  return running.run(operation);
}

void make_and_fill(const BaseFolder& base) {
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  const auto make = operation_of(base, Kind::kMake);
  REQUIRE(running.run(make).state == State::kSucceeded);
  running.agent.take(forget(make));
  REQUIRE(eventually([&] { return work_files(base).empty(); }));
  base.write("web/pvc-1/file");
  base.write("web/pvc-1/folder/file");
}

}  // namespace

TEST_CASE("what was begun is there again, what was not is dropped, the unreadable is left alone") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto book = book_of(base, kernel);
  CHECK(book.load({})->works.empty());
  CHECK(base.content().empty());
  const Work begun{operation_of(base, Kind::kMake), {.state = State::kRunning}};
  const Work waiting{operation_of(base, Kind::kMake, "pvc-2"), {.state = State::kWaiting}};
  const Work over{operation_of(base, Kind::kRemove, "pvc-3"),
                  {.state = State::kSucceeded, .directory = Directory::kRemoved}};
  for (const Work& work : {begun, waiting, over}) REQUIRE(book.put(work).ok());
  const std::string torn = BaseFolder::record("work.pvc-4.0123.json");
  base.write(torn, "{");
  base.write(BaseFolder::record("work-write.0123"), "{");
  const auto loaded = book.load({});
  REQUIRE(loaded.ok());
  REQUIRE(loaded->works.size() == 2);
  for (const Work& work : loaded->works) {
    const Work& written = work.operation.kind == Kind::kMake ? begun : over;
    CHECK(encode(work) == encode(written));
  }
  REQUIRE(loaded->problems.size() == 1);
  CHECK(loaded->problems[0].find("work.pvc-4.0123.json") != std::string::npos);
  CHECK(base.has(torn));
  CHECK(work_files(base).size() == 3);
  REQUIRE(book.drop(begun.operation).ok());
  REQUIRE(book.drop(begun.operation).ok());
  CHECK(book.load({})->works.size() == 1);
}

TEST_CASE("a removal writes nothing into a base folder without records") {
  const BaseFolder base;
  node::Kernel kernel;
  const auto book = book_of(base, kernel);
  const auto remove = operation_of(base, Kind::kRemove);
  CHECK(book.put({remove, {.state = State::kRunning}}).ok());
  CHECK(book.drop(remove).ok());
  RunningAgent running(base, kernel);
  CHECK(running.run(remove).directory == Directory::kAbsent);
  CHECK_FALSE(base.has(node::kRecordFolder));
}

TEST_CASE("an agent that crashes anywhere in a make makes the directory once, as its own") {
  for (int place = 0; kForks; ++place) {
    CAPTURE(place);
    const BaseFolder base;
    const auto make = operation_of(base, Kind::kMake);
    const int code = crash_at(base, make, place);
    REQUIRE((code == 0 || code == FaultyKernel::kCrashed));
    node::Kernel kernel;
    RunningAgent running(base, kernel);
    const auto made = finish(running, make);
    CHECK_MESSAGE(made.state == State::kSucceeded, made.message);
    CHECK(made.directory == Directory::kMade);
    running.agent.take(forget(make));
    REQUIRE(eventually([&] { return work_files(base).empty(); }));
    CHECK(base.volumes(kernel).list()->volumes.size() == 1);
    CHECK(base.has("web/pvc-1"));
    if (code == 0) {
      CHECK(place > 60);
      break;
    }
  }
}

TEST_CASE("an agent that crashes anywhere while a volume grows ends it, and it is never smaller") {
  for (int place = 0; kForks; ++place) {
    CAPTURE(place);
    const BaseFolder base;
    make_and_fill(base);
    const auto content = base.content();
    auto grow = operation_of(base, Kind::kResize);
    const auto before = static_cast<std::uint64_t>(grow.size_bytes);
    grow.size_bytes = 4 << 20;
    const auto after = static_cast<std::uint64_t>(grow.size_bytes);
    const int code = crash_at(base, grow, place);
    REQUIRE((code == 0 || code == FaultyKernel::kCrashed));
    node::Kernel kernel;
    const auto volume = [&] {
      const auto usage = base.volumes(kernel).usage();
      REQUIRE(usage->volumes.size() == 1);
      REQUIRE(usage->volumes[0].use.has_value() == BaseFolder::has_limits());
      return usage->volumes[0];
    };
    const auto between = volume();
    CHECK((between.volume.size == before || between.volume.size == after));
    if (between.use) {
      CHECK((between.use->limits.bytes == before || between.use->limits.bytes == after));
    }
    RunningAgent running(base, kernel);
    const auto done = finish(running, grow);
    CHECK_MESSAGE(done.state == State::kSucceeded, done.message);
    CHECK(done.kept.size == BaseFolder::has_limits());
    CHECK(volume().volume.size == after);
    if (between.use) CHECK(volume().use->limits.bytes == after);
    running.agent.take(forget(grow));
    REQUIRE(eventually([&] { return work_files(base).empty(); }));
    CHECK(base.content() == content);
    CHECK(text_of(base.at("web/pvc-1/file")) == "data");
    CHECK(text_of(base.at("web/pvc-1/folder/file")) == "data");
    if (code == 0) {
      CHECK(place > 60);
      break;
    }
  }
}

TEST_CASE(
    "an agent that crashes anywhere in a removal ends it, or puts back all it has not removed") {
  for (int place = 0; kForks; ++place) {
    CAPTURE(place);
    const BaseFolder base;
    make_and_fill(base);
    const auto remove = operation_of(base, Kind::kRemove);
    const int code = crash_at(base, remove, place);
    REQUIRE((code == 0 || code == FaultyKernel::kCrashed));
    node::Kernel kernel;
    RunningAgent running(base, kernel);
    const auto known = running.listener.progress(remove);
    const bool in_place = base.has("web/pvc-1");
    if (place % 2 == 0) {
      // Nothing goes on by itself; the leader has changed its mind.
      running.agent.take(cancel(remove));
      REQUIRE(running.listener.has_ended(remove));
      if (in_place) {
        CHECK(base.has("web/pvc-1/file"));
        CHECK(base.has("web/pvc-1/folder/file"));
      }
      const auto all = base.content();
      CHECK(base.volumes(kernel).recover({})->empty());
      // All that was left is in its place: nothing was still being removed.
      if (all.count("web/pvc-1") != 0) CHECK(base.content() == all);
    } else {
      const auto done = finish(running, remove);
      CHECK_MESSAGE(done.state == State::kSucceeded, done.message);
      CHECK_FALSE(base.has("web"));
      running.agent.take(forget(remove));
    }
    REQUIRE(eventually([&] { return work_files(base).empty(); }));
    if (code == 0) {
      CHECK(place > 60);
      break;
    }
  }
}

TEST_CASE("a session that begins while the first work is noted takes nothing of that away") {
  const BaseFolder base;
  HoldingKernel kernel("write", 1);
  RunningAgent running(base, kernel);
  const auto make = operation_of(base, Kind::kMake);
  running.agent.take(start(make));
  REQUIRE(kernel.holds());
  std::atomic<bool> is_open = false;
  std::jthread session([&] {
    running.agent.open_bases({base.path()});
    is_open = true;
  });
  (void)eventually([&] { return is_open.load(); }, std::chrono::milliseconds(300));
  kernel.let_go();
  const auto outcome = running.listener.outcome(make);
  REQUIRE(outcome);
  CHECK_MESSAGE(outcome->state == State::kSucceeded, outcome->message);
}
