// SPDX-License-Identifier: Apache-2.0
#include "helperpod/sweeper.h"

#include <doctest/doctest.h>

#include <atomic>

#include "fakes/helper_pod_scene.h"
#include "fakes/time_passes.h"

using namespace lpp;
using namespace lpp::helperpod;
using namespace lpp::testing;
using operation::Kind;
using operation::Operation;
using When = operation::Executor::When;

namespace {

struct SweeperScene : HelperPodScene {
  explicit SweeperScene(int removals_status = 200) {
    accept_posts();
    transport.on("DELETE", "/pods").always([removals_status](const k8s::Request&) {
      return Result<k8s::Response>(k8s::Response{.status = removals_status, .body = "{}"});
    });
    runner.begin({.wake =
                      [this](const Operation&) {
                        if (settled) ++refused;
                      },
                  .is_quiet =
                      [this] {
                        ++looks;
                        return quiet.load();
                      }});
  }
  ~SweeperScene() { runner.end(Duration::zero()); }

  /// The helper pod of another volume has done its work, and its result is recorded; false if it
  /// was removed at once.
  bool settle() {
    Operation operation;
    operation.volume_name = "pvc-" + std::to_string(++volumes);
    operation.node = "n1";
    operation.path = "/data/" + operation.volume_name;
    settled = false;
    run(operation);
    settled = true;
    return runner.forget(operation.id(), When::kWhenQuiet).value();
  }
  std::size_t removed() const { return transport.count("DELETE", "/pods"); }
  /// Lets the sweeper look again and again until this is so.
  bool looks_until(const std::function<bool()>& condition) {
    return as_time_passes(clock, std::chrono::milliseconds(50), condition);
  }
  /// Lets it look several times; it must not have removed more than this.
  bool stays_at(std::size_t count) {
    const int before = looks;
    return looks_until([&] { return looks >= before + 3; }) && removed() == count;
  }

  int volumes = 0;
  std::atomic<bool> quiet = false;
  std::atomic<int> looks = 0;
  std::atomic<bool> settled = false;
  std::atomic<int> refused = 0;  // the owner has it again
};

}  // namespace

TEST_CASE("helper pods of finished operations go when it is quiet") {
  SweeperScene scene;
  REQUIRE(scene.settle());
  REQUIRE(scene.settle());
  CHECK(scene.stays_at(0));
  scene.quiet = true;
  CHECK(scene.looks_until([&] { return scene.removed() == 2; }));
}

TEST_CASE("helper pods of finished operations do not stay longer than the limit") {
  SweeperScene scene;
  REQUIRE(scene.settle());
  scene.clock.advance(Sweeper::kLate / 2);
  REQUIRE(scene.settle());
  CHECK(scene.stays_at(0));
  scene.clock.advance(Sweeper::kLate / 2);
  CHECK(scene.looks_until([&] { return scene.removed() == 1; }));
  CHECK(scene.stays_at(1));
}

TEST_CASE("no more than so many helper pods of finished operations wait") {
  SweeperScene scene;
  for (std::size_t i = 0; i < SettledPods::kMax; ++i) CHECK(scene.settle());
  CHECK(scene.removed() == 0);
  CHECK_FALSE(scene.settle());  // it goes at once
  CHECK(scene.removed() == 1);
}

TEST_CASE("what is left is removed at the end") {
  SweeperScene scene;
  REQUIRE(scene.settle());
  REQUIRE(scene.settle());
  SUBCASE("of a term in which nothing went wrong") {
    scene.runner.end(std::chrono::seconds(2));
    CHECK(scene.removed() == 2);
    CHECK(scene.refused == 0);
  }
  SUBCASE("but there is no time") {
    scene.runner.end(Duration::zero());
    CHECK(scene.removed() == 0);
  }
}

TEST_CASE("a sweeper that is refused wakes the owner and goes on at its pace") {
  SweeperScene scene(403);
  SUBCASE("while working") {
    REQUIRE(scene.settle());
    REQUIRE(scene.settle());
    scene.quiet = true;
    CHECK(scene.looks_until([&] { return scene.refused == 2; }));
    CHECK(scene.removed() == 2);
  }
  SUBCASE("at the end: once is enough") {
    REQUIRE(scene.settle());
    REQUIRE(scene.settle());
    scene.runner.end(std::chrono::seconds(2));
    CHECK(scene.removed() == 1);
    CHECK(scene.refused == 1);
  }
}
