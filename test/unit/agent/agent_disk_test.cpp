// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "agent/work.h"
#include "agent_bed.h"
#include "fakes/captured_log.h"
#include "mount_point.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using operation::Directory;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using State = Progress::State;

namespace {

/// As the annotation of its volume tells.
Operation on_disk(Operation operation, const std::string& disk) {
  operation.disk = disk;
  return operation;
}

bool refused(const Progress& progress, const std::string& word) {
  CAPTURE(progress.message);
  CHECK_FALSE(progress.infeasible);
  CHECK_FALSE(progress.unfit);
  return progress.state == State::kFailed && progress.reason == kOtherDisk &&
         progress.message.find(word) != std::string::npos;
}

}  // namespace

TEST_CASE("the disk that the first volume has given an identity is told at once") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  running.listener.hear();
  REQUIRE(running.listener.bases().size() == 1);
  CHECK(running.listener.bases().front().identity.empty());
  const Progress made = running.run(operation_of(base, Kind::kMake));
  REQUIRE(made.state == State::kSucceeded);
  CHECK(eventually([&] {
    running.listener.hear();
    return running.listener.bases().front().identity == made.disk;
  }));
}

TEST_CASE("where the disk is missing nothing is made, resized or removed, and nothing is written") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  const Progress made = running.run(operation_of(base, Kind::kMake));
  REQUIRE(made.state == State::kSucceeded);
  REQUIRE(made.disk == *base.volumes(kernel).identity());
  base.write("web/pvc-1/data");
  point.unmount("first");

  for (const Kind kind : {Kind::kRemove, Kind::kTakeBack, Kind::kResize}) {
    CAPTURE(static_cast<int>(kind));
    CHECK(refused(running.run(operation_of(base, kind)), "restart this node's agent"));
    // What is taken back has no volume.
    CHECK(refused(running.run(on_disk(operation_of(base, kind, "pvc-1", 2), made.disk)),
                  kind == Kind::kTakeBack ? "mount it again" : "local.path.provisioner/disk"));
  }
  const Progress never = running.run(operation_of(base, Kind::kMake, "pvc-2"));
  CHECK(refused(never, made.disk));
  CHECK(never.directory == Directory::kAbsent);  // nothing has been done
  CHECK(base.content().empty());

  point.mount("first");
  CHECK(base.has("web/pvc-1/data"));
  CHECK(running.run(operation_of(base, Kind::kRemove, "pvc-1", 3)).directory ==
        Directory::kRemoved);
}

TEST_CASE("a volume is removed from its own disk only, whatever another one holds in its place") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  std::string first;
  {
    RunningAgent running(base, kernel);
    first = running.run(operation_of(base, Kind::kMake)).disk;
    REQUIRE_FALSE(first.empty());
    point.unmount("first");
    RunningAgent restarted(base, kernel);
    const Progress made = restarted.run(operation_of(base, Kind::kMake));
    REQUIRE(made.state == State::kSucceeded);
    CHECK(made.disk != first);
    base.write("web/pvc-1/of another cluster");
    // The one that has seen the first disk waits for it; what names this one is about this one.
    CHECK(refused(running.run(operation_of(base, Kind::kRemove)), made.disk));
    CHECK(refused(running.run(operation_of(base, Kind::kMake, "pvc-2")), made.disk));
    CHECK(running.run(on_disk(operation_of(base, Kind::kResize, "pvc-1"), made.disk)).reason !=
          kOtherDisk);
  }
  RunningAgent restarted(base, kernel);
  CHECK(refused(restarted.run(on_disk(operation_of(base, Kind::kRemove), first)), first));
  CHECK(refused(restarted.run(on_disk(operation_of(base, Kind::kTakeBack), first)), first));
  CHECK(refused(restarted.run(on_disk(operation_of(base, Kind::kMake, "pvc-3"), first)),
                "all volumes that name it"));
  CHECK_FALSE(base.has("web/pvc-3"));
  CHECK(base.has("web/pvc-1/of another cluster"));
}

TEST_CASE(
    "a removal that was called off and has left nothing is told, one that never began is not") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  base.write("by-a-script/data");
  // As a leader orders it that does not know whether it had begun.
  auto never = operation_of(base, Kind::kRemove, "pvc-2");
  never.path = base.at("by-a-script");
  auto gone = operation_of(base, Kind::kRemove, "pvc-3");
  for (const Operation& removal : {operation_of(base, Kind::kRemove), never, gone}) {
    Order order = cancel(removal);
    order.operation = removal;
    running.agent.take(order);
    REQUIRE(running.listener.has_ended(removal));
  }
  CHECK(running.listener.nothing_left == std::vector<std::string>{gone.path});
  // What is taken back has no volume that could miss its directory.
  Order never_begun = cancel(operation_of(base, Kind::kTakeBack, "pvc-4"));
  never_begun.operation = operation_of(base, Kind::kTakeBack, "pvc-4");
  running.agent.take(never_begun);
  REQUIRE(running.listener.has_ended(*never_begun.operation));
  running.listener.begin_session();
  CHECK(running.listener.nothing_left.size() == 1);
  CHECK(base.has("web/pvc-1"));
  CHECK(base.has("by-a-script/data"));
}

TEST_CASE("a make that had begun before its disk went does not say that it has done nothing") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  const auto make = operation_of(base, Kind::kMake, "pvc-2");
  std::string first;
  {
    RunningAgent running(base, kernel);
    first = running.run(operation_of(base, Kind::kMake)).disk;
    const auto volumes = base.volumes(kernel);
    Work work{.operation = make};
    work.progress.state = State::kRunning;
    REQUIRE(WorkBook::open(kernel, volumes)->put(work).ok());
  }
  RunningAgent again(base, kernel);
  point.unmount("first");
  again.begin(on_disk(make, first));
  const auto outcome = again.listener.outcome(make);
  REQUIRE(outcome);
  CHECK(outcome->reason == kOtherDisk);
  CHECK(outcome->directory == Directory::kUnknown);
}

TEST_CASE("what is refused where its disk is missing is not the outcome that comes with the disk") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  const auto make = operation_of(base, Kind::kMake, "pvc-2");
  std::string first;
  {
    RunningAgent running(base, kernel);
    first = running.run(make).disk;
    const auto volumes = base.volumes(kernel);
    Work work{.operation = make, .serial = "former"};
    work.progress.state = State::kSucceeded;
    REQUIRE(WorkBook::open(kernel, volumes)->put(work).ok());
  }
  point.unmount("first");
  RunningAgent again(base, kernel);
  Order order = start(on_disk(make, first));
  order.serial = "present";
  again.agent.take(order);
  const auto refused_now = again.listener.outcome(make);
  REQUIRE(refused_now);
  CHECK(refused_now->directory == Directory::kAbsent);
  point.mount("first");
  const auto comes_to_light = [&] {
    return again.looks([&] {
      const auto told = again.listener.progress(make);
      return told && told->state == State::kSucceeded;
    });
  };
  Order over = forget(make);
  over.serial = "present";
  SUBCASE("it is forgotten before the disk is looked at") { again.agent.take(over); }
  SUBCASE("it is forgotten after that") {
    REQUIRE(comes_to_light());
    again.agent.take(over);
  }
  REQUIRE(comes_to_light());
  again.listener.begin_session();  // what is being forgotten is not told in a new one
  REQUIRE(comes_to_light());
  CHECK(work_files(base).size() == 1);
  over.serial = "former";
  again.agent.take(over);
  CHECK(eventually([&] { return work_files(base).empty(); }));
}

TEST_CASE("what is forgotten while its disk is away comes to light, however soon that is back") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  const auto make = operation_of(base, Kind::kMake);
  const std::string disk = running.run(make).disk;
  REQUIRE(running.looks([&] { return running.listener.bases().front().identity == disk; }));
  // Time stands still: nobody looks meanwhile.
  point.unmount("first");
  SUBCASE("with what is under it") {}
  SUBCASE("with nothing") { std::filesystem::remove(base.path()); }
  running.agent.take(forget(make));
  REQUIRE(eventually([&] { return running.agent.view().on_record == 0; }));
  point.mount("first");
  running.listener.begin_session();
  CHECK(work_files(base).size() == 1);
  CHECK(running.looks([&] {
    const auto told = running.listener.progress(make);
    return told && told->state == State::kSucceeded;
  }));
}

TEST_CASE("a disk that goes or comes is told within seconds, however seldom its usage is") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  const std::string disk = running.run(operation_of(base, Kind::kMake)).disk;
  const auto tells = [&](const std::string& identity) {
    const TimePoint begin = running.clock.now();
    const bool is_told =
        running.looks([&] { return running.listener.bases().front().identity == identity; });
    return is_told && running.clock.now() - begin < std::chrono::seconds(30);
  };
  REQUIRE(tells(disk));
  point.unmount("first");
  CHECK(tells(""));
  point.mount("first");
  CHECK(tells(disk));
}

TEST_CASE("a disk that is back between two glances is told, and served, within seconds") {
  const BaseFolder base;
  const MountPoint point(base);
  node::Kernel kernel;
  RunningAgent running(base, kernel, {}, {.look_every = std::chrono::hours(1)});
  const std::string disk = running.run(operation_of(base, Kind::kMake)).disk;
  const auto is_told = [&] { return running.listener.bases().front().identity == disk; };
  REQUIRE(running.looks(is_told));
  // Seen by the look of a session only.
  point.unmount("first");
  running.agent.open_bases({base.path()}, {});
  running.listener.begin_session();
  REQUIRE(running.listener.bases().front().identity.empty());
  const auto remove = operation_of(base, Kind::kRemove);
  bool is_called_off = false;
  SUBCASE("nothing waits for it") {}
  SUBCASE("a removal that is called off") {
    Order order = cancel(remove);
    order.operation = remove;
    running.agent.take(order);
    REQUIRE(eventually([&] {
      const auto now = running.listener.progress(remove);
      return now && now->reason == kCannotCallOff;
    }));
    is_called_off = true;
  }
  point.mount("first");
  const TimePoint begin = running.clock.now();
  CHECK(running.looks([&] {
    return is_told() && running.agent.view().on_record == 1;  // the make
  }));
  CHECK(running.clock.now() - begin < std::chrono::seconds(30));
  if (is_called_off) CHECK(running.listener.has_ended(remove));
}

TEST_CASE("what could not go from the records goes in a minute, however seldom the looks are") {
  const BaseFolder base;
  BadDisk disk;
  RunningAgent running(base, disk, {}, {.look_every = std::chrono::hours(1)});
  const auto make = operation_of(base, Kind::kMake);
  REQUIRE(running.run(make).state == State::kSucceeded);
  disk.is_bad = true;
  running.agent.take(forget(make));
  REQUIRE(eventually([&] { return disk.refused > 0; }));
  disk.is_bad = false;
  const auto begin = running.clock.now();
  CHECK(running.looks([&] { return running.agent.view().on_record == 0; }));
  CHECK(running.clock.now() - begin < std::chrono::seconds(90));
}

TEST_CASE("a removal that was called off is put back on its own disk when that is there again") {
  const BaseFolder base;
  const MountPoint point(base);
  HoldingKernel kernel("unlinkat", 6);
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  for (int i = 0; i < 10; ++i) base.write("web/pvc-1/" + std::to_string(i));
  const auto remove = operation_of(base, Kind::kRemove);
  running.begin(remove);
  REQUIRE(kernel.holds());
  point.unmount("first");
  running.agent.take(cancel(remove));
  kernel.let_go();
  REQUIRE(eventually([&] {
    const auto now = running.listener.progress(remove);
    return now && now->state == State::kEnding;
  }));
  CHECK(running.listener.progress(remove)->reason == kCannotCallOff);
  CHECK(running.listener.progress(remove)->directory == Directory::kUnknown);
  CHECK(base.content().empty());
  point.mount("first");
  REQUIRE(eventually([&] {
    running.clock.advance(std::chrono::seconds(61));
    return !running.listener.progress(remove);
  }));
  CHECK(base.has("web/pvc-1"));
  CHECK(work_files(base).size() == 1);  // of the make
}

TEST_CASE("of a removal that is called off without its disk nobody says that it had begun") {
  const BaseFolder base;
  const MountPoint point(base);
  struct CountingKernel : node::Kernel {
    int before(const char* call) override {
      if (std::string_view(call) == "open") ++looks;
      return 0;
    }
    std::atomic<int> looks = 0;
  } kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  const auto remove = operation_of(base, Kind::kRemove);
  SUBCASE("it waits for leave") {
    running.listener.lets_begin = false;
    running.agent.take(testing::start(remove));
    REQUIRE(eventually([&] { return running.listener.asked(remove) > 0; }));
  }
  SUBCASE("it was never heard of") {}
  point.unmount("first");
  Order order = cancel(remove);
  order.operation = remove;
  running.agent.take(order);
  bool is_over = false;
  REQUIRE(eventually([&] {
    const auto now = running.listener.progress(remove);
    is_over = is_over || running.listener.has_ended_by_now(remove);
    return is_over || (now && now->reason == kCannotCallOff);
  }));
  if (!is_over) {
    CHECK(running.listener.progress(remove)->directory == Directory::kKept);
    CHECK(running.listener.progress(remove)->message.find("whether it had begun") !=
          std::string::npos);
  }
  CHECK(running.listener.nothing_left.empty());
  // It is tried again as time passes, which it does not here.
  const int looks = kernel.looks;
  CHECK_FALSE(
      eventually([&] { return kernel.looks > looks + 20; }, std::chrono::milliseconds(100)));
  point.mount("first");
  CHECK(eventually([&] {
    running.clock.advance(std::chrono::seconds(61));
    return running.agent.view().on_record == 1;  // the make
  }));
  CHECK(base.has("web/pvc-1"));
}

TEST_CASE("a removal that is called off when it has ended tells that nothing is left") {
  const BaseFolder base;
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  const auto remove = operation_of(base, Kind::kRemove);
  REQUIRE(running.run(remove).state == State::kSucceeded);
  running.agent.take(cancel(remove));
  CHECK(running.listener.has_ended(remove));
  CHECK(running.listener.nothing_left == std::vector<std::string>{remove.path});
}

TEST_CASE("a removal that has failed is put back when it is called off, or tells that it is not") {
  /// Nothing can be removed for good.
  class StuckKernel final : public node::Kernel {
   public:
    std::atomic<bool> stuck = false;

   protected:
    int before(const char* call) override {
      return stuck && std::string_view(call) == "unlinkat" ? EPERM : 0;
    }
  };
  const BaseFolder base;
  StuckKernel kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  base.write("web/pvc-1/data");
  const auto remove = operation_of(base, Kind::kRemove);
  kernel.stuck = true;
  CHECK(running.run(remove).state == State::kFailed);
  CHECK(base.has("web/pvc-1/data"));
  const std::string gone = BaseFolder::record("gone." + node::id_of_path("web/pvc-1"));
  CHECK_FALSE(base.has(gone));
  kernel.stuck = false;
  SUBCASE("nothing is left to be done") {
    running.agent.take(cancel(remove));
    CHECK(running.listener.has_ended(remove));
  }
  SUBCASE("it could not put it back itself") {
    std::filesystem::create_directory(base.at(gone));
    std::filesystem::rename(base.at("web/pvc-1"), base.at(gone + "/volume"));
    running.agent.take(cancel(remove));
    CHECK(running.listener.has_ended(remove));
  }
  SUBCASE("it could not put it back itself, and is given up") {
    std::filesystem::create_directory(base.at(gone));
    std::filesystem::rename(base.at("web/pvc-1"), base.at(gone + "/volume"));
    running.agent.take(forget(remove));
    CHECK(eventually([&] { return base.has("web/pvc-1/data") && !base.has(gone); }));
  }
  SUBCASE("it cannot be put back yet") {
    std::filesystem::create_directory(base.at(gone));
    std::filesystem::rename(base.at("web/pvc-1"), base.at(gone + "/volume"));
    base.write("web/pvc-1/of somebody else");
    running.agent.take(cancel(remove));
    REQUIRE(eventually([&] {
      const auto now = running.listener.progress(remove);
      return now && now->reason == kCannotCallOff;
    }));
    CHECK(base.has(gone + "/volume/data"));
    return;
  }
  CHECK(base.has("web/pvc-1/data"));
  CHECK_FALSE(base.has(gone));
}

TEST_CASE("an agent says once that two base paths are the same directory") {
  const BaseFolder base;
  const std::string other = base.path() + ".other-name";
  std::filesystem::create_directory_symlink(base.path(), other);
  node::Kernel kernel;
  RunningAgent running(base, kernel);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  CapturedLog log;
  const auto look = [&] {
    running.agent.take({.what = Order::What::kBases, .base_paths = {base.path(), other}});
    running.has_looked();
  };
  look();
  REQUIRE(eventually([&] {
    running.listener.hear();
    return running.listener.bases().size() == 2;
  }));
  look();
  int said = 0;
  for (const std::string& line : log.take()) {
    if (line.find("one directory under two names") != std::string::npos) ++said;
  }
  CHECK(said == 1);
  std::filesystem::remove(other);
}

TEST_CASE("an agent says once that a base path with volumes stays open to other users") {
  const BaseFolder base;
  base.write("other");
  node::Kernel kernel;
  CapturedLog log;
  RunningAgent running(base, kernel);
  const auto said = [&] {
    running.clock.advance(std::chrono::seconds(61));
    running.agent.take({.what = Order::What::kBases, .base_paths = {base.path()}});
    running.has_looked();
    running.listener.hear();
    int count = 0;
    for (const std::string& line : log.take()) {
      if (line.find("stays open to other users") != std::string::npos) ++count;
    }
    return count;
  };
  CHECK(said() == 0);
  REQUIRE(running.run(operation_of(base, Kind::kMake)).state == State::kSucceeded);
  CHECK(eventually([&] { return said() == 1; }));
  CHECK(said() == 0);
}
