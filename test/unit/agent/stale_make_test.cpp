// SPDX-License-Identifier: Apache-2.0
// A real agent's work book that is older than the volume, and the controller's part of it.

#include <filesystem>

#include "agent_bed.h"
#include "agent_scene.h"

namespace lpp::agent {
namespace {

namespace fs = std::filesystem;
using testing::BaseFolder;
using testing::RunningAgent;

/// An agent was killed at its make, and volume and directory have changed since.
struct StaleMake {
  StaleMake() {
    base.make_directory("web/pvc-1");
    fs::permissions(directory, fs::perms::owner_all);
  }
  void make_with_record() {
    fs::remove(directory);
    RunningAgent first(base, kernel);
    REQUIRE(first.run(make).state == State::kSucceeded);
    fs::permissions(directory, fs::perms::owner_all);
    const auto grown =
        base.volumes(kernel).resize({.id = node::id_of_path("web/pvc-1"),
                                     .limits = {.bytes = BaseFolder::has_limits() ? kGrown : 0},
                                     .size = kGrown,
                                     .limited = BaseFolder::has_limits()});
    REQUIRE_MESSAGE(grown.ok(), grown.error().message);
  }
  void be_killed() {
    const auto volumes = base.volumes(kernel);
    const auto book = WorkBook::open(kernel, volumes);
    REQUIRE(book->put({make, {.state = State::kRunning}, ""}).ok());
  }
  void check_unchanged() const {
    CHECK(fs::status(directory).permissions() == fs::perms::owner_all);
    node::Kernel own;
    const auto usage = base.volumes(own).usage();
    REQUIRE(usage.ok());
    CHECK(usage->promised_bytes == promised);
  }

  static constexpr std::uint64_t kGrown = 10U << 20U;  // of 1 MiB
  const BaseFolder base;
  node::Kernel kernel;
  const Operation make = testing::operation_of(base, Kind::kMake);
  const std::string directory = base.at("web/pvc-1");
  std::uint64_t promised = 0;
};

}  // namespace

TEST_CASE("a make that an agent was killed at does not touch the volume that is there by now") {
  StaleMake stale;
  SUBCASE("an agent has made it, and it has grown") {
    stale.make_with_record();
    stale.promised = StaleMake::kGrown;
  }
  SUBCASE("a script has made it") {}
  stale.be_killed();
  AgentScene scene;
  scene.base_paths["node-1"] = {stale.base.path()};
  scene.quiet = true;
  RunningAgent again(stale.base, stale.kernel);
  const auto known = again.listener.progress(stale.make);
  REQUIRE(known);
  CHECK(known->state == State::kRunning);
  SceneAgent session(scene);
  session.connect({{.operation = stale.make, .progress = *known}});
  const auto obey = [&] {
    for (const Order& order : session.take()) {
      again.agent.take(order);
      if (order.what == What::kStart) (void)again.listener.outcome(stale.make);
    }
  };
  scene.pass(seconds(60));
  obey();
  stale.check_unchanged();
  REQUIRE(scene.progress(stale.make));
  CHECK(scene.progress(stale.make)->outdated);

  // As the claim's step does where it sees the volume.
  CHECK(scene.executor.cancel(stale.make.id()).ok());
  obey();
  // It stays on record until nobody needs it: it may have left a directory.
  const auto ended = again.listener.progress(stale.make);
  REQUIRE(ended);
  CHECK(ended->state == State::kFailed);
  CHECK_FALSE(testing::work_files(stale.base).empty());
  session.tell(stale.make, State::kFailed);
  CHECK(scene.state(stale.make) == State::kFailed);
  CHECK(scene.executor.forget(stale.make.id(), When::kNow).value());
  obey();
  CHECK(testing::eventually([&] { return testing::work_files(stale.base).empty(); }));
  stale.check_unchanged();
}

}  // namespace lpp::agent
