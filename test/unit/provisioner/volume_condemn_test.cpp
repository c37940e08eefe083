// SPDX-License-Identifier: Apache-2.0
// A directory that somebody has come to keep while the cache of volumes is behind.
#include <doctest/doctest.h>

#include "unit/provisioner/volume_bed.h"

namespace lpp::testing::volume_condemn {

using operation::Kind;
using provisioner::Action;
using provisioner::kRecheck;

namespace {

/// By hand, for the directory of the released volume.
VolumeBuilder keeper() {
  return volume("keep")
      .host_path(kReleasedPath)
      .node("n1")
      .no_annotation("pv.kubernetes.io/provisioned-by");
}

/// The watch is cut, and requests come through.
struct CutBed : VolumeBed {
  CutBed() { volume_watch.is_cut = true; }
  void hear(const VolumeBuilder& b) {
    volume_watch.is_cut = false;
    put(b);
  }
  /// The cache has lost nothing in between.
  void hear_deletion(const std::string& version) {
    hear(released().deleting().resource_version(version));
  }
  bool begun() const { return !executor.started.empty(); }
};

}  // namespace

TEST_CASE("a directory that another volume has come to keep stays though the cache is behind") {
  CutBed scene;
  std::string told = "whether another volume has come to keep directory";
  SUBCASE("before the volume was deleted by us") {
    scene.put(released().resource_version("7"));
    for (int i = 0; i < 20; ++i) {
      (void)scene.step();
      scene.clock.advance(std::chrono::seconds(1));
    }
    CHECK(scene.transport.count("DELETE", "") == 1);
  }
  SUBCASE("before its turn came, long after it was deleted") {
    scene.put(released().deleting().resource_version("7"));
    for (int i = 0; i < 20; ++i) {
      (void)scene.step();
      scene.clock.advance(std::chrono::seconds(1));
    }
    CHECK(scene.volume_watch.asked == 1);
    const auto guard = nlohmann::json::parse(scene.volume_watch.last_asked)["metadata"];
    CHECK(guard["resourceVersion"] == "7");
    CHECK(guard.contains("uid"));
    CHECK(scene.transport.requests().empty());
  }
  SUBCASE("and nothing may be written") {
    scene.put(released().deleting().resource_version("7"));
    scene.volume_watch.answer_to_asking = 403;
    CHECK(scene.step() == Action::retry());
    told = "Warning VolumeFailedDelete";
  }
  SUBCASE("and somebody else has written the volume") {
    scene.put(released().deleting().resource_version("7"));
    scene.volume_watch.answer_to_asking = 409;
    CHECK(scene.step() == Action::await_change(kRecheck));
    scene.clock.advance(std::chrono::seconds(20));
    (void)scene.step();
    CHECK(scene.volume_watch.asked == 2);
    told = "";
  }
  CHECK_FALSE(scene.begun());
  CHECK(scene.events.lines.empty() == told.empty());
  CHECK((told.empty() || scene.has_event(told)));
  scene.volume_watch.answer_to_asking = 200;
  scene.hear(keeper());
  scene.hear_deletion("9");
  for (int i = 0; i < 20; ++i) {
    (void)scene.step();
    scene.clock.advance(std::chrono::seconds(1));
  }
  CHECK_FALSE(scene.begun());
  CHECK(scene.has_event("overlaps the directory"));
  // Nobody keeps it any more.
  scene.volumes.erase({"", "keep"});
  (void)scene.step();
  CHECK(scene.begun());
}

TEST_CASE("a removal begins once the cache shows its deletion, without another request") {
  CutBed scene;
  scene.put(released().resource_version("7"));
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK_FALSE(scene.begun());
  CHECK(scene.transport.lines() ==
        std::vector<std::string>{"DELETE /api/v1/persistentvolumes/pvc-uid-a"});
  scene.hear_deletion("8");
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.begun());
  CHECK(scene.transport.requests().size() == 1);
  CHECK(scene.volume_watch.asked == 0);
}

TEST_CASE("a deletion that the cluster has lost is made again") {
  CutBed scene;
  scene.put(released().resource_version("7"));
  (void)scene.step();
  scene.hear_deletion("8");
  (void)scene.step();
  REQUIRE(scene.begun());
  scene.executor.fail(Kind::kRemove, kReleasedName, "no");
  (void)scene.step();
  scene.put(released().resource_version("70"));  // of a backup
  scene.executor.started.clear();
  for (int i = 0; i < 100; ++i) {
    (void)scene.step();
    scene.clock.advance(std::chrono::seconds(1));
  }
  CHECK(scene.transport.count("DELETE", "") == 2);
  CHECK(scene.begun());
}

TEST_CASE("a removal whose API server is slow begins") {
  CutBed scene;
  scene.volume_watch.is_cut = false;
  scene.volume_watch.takes = std::chrono::seconds(3);
  scene.put(released().deleting().resource_version("7"));
  for (int i = 0; i < 3; ++i) (void)scene.step();
  CHECK(scene.begun());
  CHECK(scene.volume_watch.asked == 1);
}

TEST_CASE("a removal that each time comes too late is told, and waits longer and longer") {
  CutBed scene;
  scene.volume_watch.is_cut = false;
  scene.volume_watch.takes = std::chrono::seconds(6);
  scene.put(released().deleting().resource_version("7"));
  for (int i = 0; i < 600; ++i) {
    (void)scene.step();
    scene.clock.advance(std::chrono::seconds(1));
  }
  CHECK_FALSE(scene.begun());
  CHECK(scene.has_event("too late to begin"));
  CHECK(scene.volume_watch.asked < 20);
  scene.volume_watch.takes = {};
  scene.clock.advance(std::chrono::minutes(20));
  (void)scene.step();
  CHECK(scene.begun());
}

TEST_CASE("a removal that has waited for its turn asks again, and is not said to be too late") {
  CutBed scene;
  scene.volume_watch.is_cut = false;
  scene.put(released().resource_version("7"));
  scene.volume_watch.is_cut = true;
  (void)scene.step();
  scene.executor.is_full = true;
  scene.hear_deletion("8");
  for (int i = 0; i < 10; ++i) {
    (void)scene.step();
    scene.clock.advance(std::chrono::seconds(6));
  }
  CHECK_FALSE(scene.begun());
  scene.executor.is_full = false;
  (void)scene.step();
  CHECK(scene.begun());
  CHECK(scene.volume_watch.asked == 1);
  CHECK_FALSE(scene.has_event("too late"));
  CHECK_FALSE(scene.has_event("has come to keep"));
}

}  // namespace lpp::testing::volume_condemn
