// SPDX-License-Identifier: Apache-2.0
// What the runner tells the ledger of paths.

#include <doctest/doctest.h>

#include "fakes/helper_pod_scene.h"

using namespace lpp;
using namespace lpp::helperpod;
using namespace lpp::testing;
using operation::Kind;
using operation::Operation;
using When = operation::Executor::When;

namespace {

Operation make(const std::string& volume, const std::string& path, Kind kind = Kind::kMake) {
  Operation operation;
  operation.kind = kind;
  operation.volume_name = volume;
  operation.claim = {"default", volume};
  operation.owner_uid = "uid-" + volume;
  operation.node = "n1";
  operation.base_path = "/data";
  operation.path = path;
  return operation;
}

struct OverlapScene : HelperPodScene {
  OverlapScene() { accept_posts(); }
  /// Whether another volume could have that directory now.
  bool is_free(const std::string& path) {
    const Operation other = make("b", path);
    const bool free = !ledger.take(other);
    ledger.release(other);
    return free;
  }
};

}  // namespace

TEST_CASE("an operation is in the way of others from its record until its helper pod is gone") {
  for (const Kind kind : {Kind::kMake, Kind::kTakeBack, Kind::kRemove}) {
    CAPTURE(to_string(kind));
    OverlapScene scene;
    CHECK(scene.is_free("/data/x"));
    scene.start(make("a", "/data/x", kind));
    CHECK_FALSE(scene.is_free("/data/x"));
    CHECK_FALSE(scene.is_free("/data/x/y"));
    CHECK(scene.is_free("/data/xy"));
    const auto pod = scene.posted();
    scene.show(HelperPodScene::ended(pod, 0));
    CHECK_FALSE(scene.is_free("/data/x"));
    scene.show(HelperPodScene::leaving(HelperPodScene::running(pod)));
    CHECK_FALSE(scene.is_free("/data/x"));
    scene.hide(pod["metadata"]["name"]);
    CHECK(scene.is_free("/data/x"));
  }
}

TEST_CASE("after a restart what is recorded is in the way") {
  OverlapScene first;
  first.start(make("a", "/data/x"));
  OverlapScene restarted;
  restarted.show(first.posted());
  CHECK_FALSE(restarted.is_free("/data/x/y"));
}

TEST_CASE(
    "an operation that is history is in nobody's way while its helper pod waits to be removed") {
  for (const Kind kind : {Kind::kMake, Kind::kTakeBack, Kind::kRemove}) {
    CAPTURE(to_string(kind));
    OverlapScene scene;
    const Operation first = make("a", "/data/x", kind);
    scene.run(first);
    REQUIRE(scene.runner.forget(first.id(), When::kWhenQuiet).value());
    CHECK(scene.is_free("/data/x"));
    SUBCASE("and it is again when it could not be removed then") {
      scene.transport.on("DELETE", "/pods").reply(500);
      REQUIRE_FALSE(scene.runner.remove_settled());
      CHECK_FALSE(scene.is_free("/data/x"));
      scene.hide(scene.posted()["metadata"]["name"]);
      CHECK(scene.is_free("/data/x"));
    }
  }
}
