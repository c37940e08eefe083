// SPDX-License-Identifier: Apache-2.0
// Two claims whose patterns lead to one directory.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::taken_paths {

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

constexpr const char* kVolume = "pvc-uid-a";
const ClaimKey kFirst{{"default", "a"}, "uid-a"};
const ClaimKey kSecond{{"default", "b"}, "uid-b"};

/// Two claims for one directory; the first one's helper pod has made it.
struct TakenScene : Scene {
  TakenScene() {
    put(storage_class("shared")
            .parameter("pathPattern", "common")
            .parameter("allowUnsafePathPattern", "true"));
    put(claim("a").storage_class("shared").node("n1"));
    put(claim("b").storage_class("shared").node("n1"));
    (void)reconciler.step(kFirst);
    executor.succeed(operation::Kind::kMake, kVolume);
  }
  ClaimReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE(
    "a directory is not given to a second claim while the cache lacks the first one's volume") {
  TakenScene scene;
  auto& reconciler = scene.reconciler;
  scene.transport.on("POST", "/persistentvolumes").reply(201);
  (void)reconciler.step(kFirst);
  REQUIRE(scene.executor.records.empty());  // nothing but our memory says whose it is
  const auto count = scene.executor.started.size();
  CHECK(reconciler.step(kSecond) == provisioner::Action::await_change(kRecheck));
  CHECK(scene.events.lines.back().find("overlaps the directory /data/common of volume pvc-uid-a") !=
        std::string::npos);
  CHECK(scene.executor.started.size() == count);

  // On another node there is room; on this one when the first volume has been there and gone.
  SUBCASE("another node") { scene.put(claim("b").storage_class("shared").node("n2")); }
  SUBCASE("the first claim goes") {
    auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");
    scene.put(claim("a").storage_class("shared").node("n1").volume(kVolume));
    CHECK(reconciler.step(kFirst) == provisioner::Action::done());
    scene.claims.erase({"default", "a"});
    const auto first = volume(kVolume).claim("default", "a").host_path("/data/common").released();
    reads.reply(200, first.json().dump()).reply(500);
    CHECK(reconciler.step(kFirst) == provisioner::Action::await_change(kRecheck));
    CHECK(reconciler.step(kFirst) == provisioner::Action::retry());
    (void)reconciler.step(kSecond);
    CHECK(scene.executor.started.size() == count);
    SUBCASE("and the cache has shown its volume") {
      scene.put(first);
      CHECK(reconciler.step(kFirst) == provisioner::Action::done());
      scene.volumes.erase({"", kVolume});
    }
    SUBCASE("and the cache never shows its volume") {
      reads.reply(404);
      CHECK(reconciler.step(kFirst) == provisioner::Action::done());
    }
  }
  (void)reconciler.step(kSecond);
  CHECK(scene.executor.started.size() == count + 1);
}

TEST_CASE("a directory is remembered also when the answer to its volume's creation was lost") {
  TakenScene scene;
  scene.transport.on("POST", "/persistentvolumes")
      .fail(ErrorCode::kUnavailable)
      .reply(409, kAlreadyExists);
  scene.transport.on("GET", "/persistentvolumes/pvc-uid-a")
      .reply(200, volume(kVolume).claim("default", "a").host_path("/data/common").json().dump());
  CHECK(scene.reconciler.step(kFirst) == provisioner::Action::retry());
  CHECK(scene.reconciler.step(kFirst) == provisioner::Action::await_change(kRecheck));
  REQUIRE(scene.executor.records.empty());
  (void)scene.reconciler.step(kSecond);
  CHECK(scene.executor.started.back().volume_name == kVolume);
  CHECK(scene.events.lines.back().find("overlaps the directory /data/common of volume pvc-uid-a") !=
        std::string::npos);
}

}  // namespace lpp::provisioner::taken_paths
