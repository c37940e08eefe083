// SPDX-License-Identifier: Apache-2.0
// What was on record and is so no more, though nobody here took it off; and what goes with a
// volume.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "provisioner/volume_reconciler.h"
#include "scene.h"

namespace lpp::testing::vanished {

using operation::Directory;
using operation::Kind;
using provisioner::ClaimKey;
using provisioner::ClaimReconciler;
using provisioner::VolumeReconciler;

namespace {

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kPath = "/data/pvc-uid-a_default_a";
const ClaimKey kKey{{"default", "a"}, "uid-a"};

VolumeBuilder our_volume() {
  return volume(kVolume)
      .claim("default", "a")
      .host_path(kPath)
      .node("n1")
      .annotation("local.path.provisioner/selected-node", "n1")
      .finalizer("external-provisioner.volume.kubernetes.io/finalizer");
}

struct VanishedScene : Scene {
  long started(Kind kind) const {
    return std::count_if(executor.started.begin(), executor.started.end(),
                         [&](const auto& operation) { return operation.kind == kind; });
  }
  /// The API server has deleted it under our finalizer.
  void condemned() {
    transport.on("GET", std::string("/persistentvolumes/") + kVolume);
    put(our_volume().released().deleting());
  }

  provisioner::Memories of_volumes{
      clock, {.base = std::chrono::seconds(1), .cap = std::chrono::seconds(1000), .jitter = 0}, 15};
  ClaimReconciler claims_step{world, memories};
  VolumeReconciler volumes_step{world, of_volumes};
};

}  // namespace

TEST_CASE("how often another node says to have tried makes no claim wait longer") {
  using std::chrono::seconds;
  VanishedScene before;
  before.put(claim("a").node("n1"));
  (void)before.claims_step.step(kKey);
  operation::Operation told = before.executor.started.at(0);
  told.node = "n2";
  told.attempt = 1'000'000;
  VanishedScene scene;
  scene.put(claim("a").node("n1"));
  scene.executor.records.push_back({told, {}});
  (void)scene.claims_step.step(kKey);
  (void)scene.claims_step.step(kKey);
  REQUIRE(scene.executor.started.size() == 1);
  REQUIRE(scene.executor.started[0].attempt == told.attempt + 1);
  scene.executor.fail(Kind::kMake, kVolume, "no space");
  CHECK(scene.claims_step.step(kKey) == provisioner::Action::await_change(seconds(1)));
}

TEST_CASE("a removal that is taken away over and over is told, and tried again with a back-off") {
  VanishedScene scene;
  scene.api_shows_no_claim();
  scene.put(our_volume().released());
  (void)scene.volumes_step.step(kVolume);
  scene.condemned();
  bool runs = false;
  SUBCASE("before it is seen to run") {}
  SUBCASE("while it runs") { runs = true; }
  for (int i = 1; i <= 3; ++i) {
    CAPTURE(i);
    REQUIRE(scene.started(Kind::kRemove) == i);
    CHECK(scene.executor.started.back().attempt == i);
    if (runs) {
      scene.executor.run(Kind::kRemove, kVolume);
      (void)scene.volumes_step.step(kVolume);
    }
    scene.executor.vanish(Kind::kRemove, kVolume);
    for (int again = 0; again < 5; ++again) (void)scene.volumes_step.step(kVolume);
    CHECK(scene.started(Kind::kRemove) == i);
    CHECK(scene.told("it was removed before it ended") == i);
    scene.clock.advance(std::chrono::seconds(10));
    (void)scene.volumes_step.step(kVolume);
  }
}

TEST_CASE("a removal that was cancelled is not missed") {
  VanishedScene scene;
  scene.api_shows_no_claim();
  scene.put(our_volume().released());
  (void)scene.volumes_step.step(kVolume);
  scene.put(our_volume().released().reclaim_policy("Retain").deleting());
  (void)scene.volumes_step.step(kVolume);
  REQUIRE(scene.executor.cancelled.size() == 1);
  scene.executor.vanish(Kind::kRemove, kVolume);
  scene.condemned();
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.told("it was removed before it ended") == 0);
  CHECK(scene.started(Kind::kRemove) == 2);
}

TEST_CASE("a taking back that is taken away over and over is told, and tried again later") {
  VanishedScene scene;
  scene.put(claim("a").node("n1"));
  (void)scene.claims_step.step(kKey);
  scene.executor.succeed(Kind::kMake, kVolume, Directory::kMade);
  scene.claims.erase(kKey.claim);
  scene.api_shows_no_claim();
  scene.transport.on("GET", std::string("/persistentvolumes/") + kVolume).always([](const auto&) {
    return k8s::Response{.status = 404};
  });
  (void)scene.claims_step.step(kKey);
  for (int i = 1; i <= 3; ++i) {
    CAPTURE(i);
    REQUIRE(scene.started(Kind::kTakeBack) == i);
    scene.executor.vanish(Kind::kTakeBack, kVolume);
    for (int again = 0; again < 5; ++again) (void)scene.claims_step.step(kKey);
    CHECK(scene.started(Kind::kTakeBack) == i);
    CHECK(scene.told("it was removed before it ended") == i);
    scene.clock.advance(std::chrono::seconds(10));
    (void)scene.claims_step.step(kKey);
  }
}

TEST_CASE("a directory that a later attempt does not find is told too") {
  VanishedScene scene;
  scene.api_shows_no_claim();
  scene.put(our_volume().released());
  (void)scene.volumes_step.step(kVolume);
  scene.condemned();
  scene.executor.fail(Kind::kRemove, kVolume, "the node was down");
  (void)scene.volumes_step.step(kVolume);
  scene.clock.advance(std::chrono::seconds(10));
  (void)scene.volumes_step.step(kVolume);
  REQUIRE(scene.started(Kind::kRemove) == 2);
  scene.executor.succeed(Kind::kRemove, kVolume, Directory::kAbsent);
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.told("Warning DirectoryMissing: ") == 1);
  CHECK(scene.told("an earlier attempt has removed it") == 1);
}

TEST_CASE("of a volume that another's finalizer keeps nothing is said once its directory is gone") {
  VanishedScene scene;
  scene.api_shows_no_claim();
  scene.put(our_volume().released());
  (void)scene.volumes_step.step(kVolume);
  scene.executor.succeed(Kind::kRemove, kVolume, Directory::kRemoved);
  scene.transport.on("PATCH", std::string("/persistentvolumes/") + kVolume).reply(200);
  (void)scene.volumes_step.step(kVolume);
  const auto kept = volume(kVolume)
                        .claim("default", "a")
                        .host_path(kPath)
                        .node("n1")
                        .finalizer("kubernetes.io/pv-protection")
                        .released()
                        .deleting();
  scene.put(kept);
  SUBCASE("by whoever let it go") { (void)scene.volumes_step.step(kVolume); }
  SUBCASE("by the next process") {
    provisioner::Memories fresh{scene.clock, {.jitter = 0}, 15};
    VolumeReconciler next{scene.world, fresh};
    (void)next.step(kVolume);
  }
  CHECK(scene.told("stays when the volume goes") == 0);
  // It says that the work was done, until the volume is gone.
  CHECK(scene.executor.has(Kind::kRemove, kVolume));
}

TEST_CASE("our finalizer is taken off a kept volume in the version that is to be kept only") {
  VanishedScene scene;
  scene.put(our_volume().released().reclaim_policy("Retain").resource_version("7"));
  (void)scene.volumes_step.step(kVolume);
  auto patches = scene.transport.requests();
  std::erase_if(patches, [](const auto& request) { return request.method != "PATCH"; });
  REQUIRE(patches.size() == 1);
  CHECK(nlohmann::json::parse(patches.front().body)["metadata"]["resourceVersion"] == "7");
}

}  // namespace lpp::testing::vanished
