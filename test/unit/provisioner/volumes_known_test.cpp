// SPDX-License-Identifier: Apache-2.0
// A directory that somebody has come to keep while the cache of volumes is behind.
#include "provisioner/volumes_known.h"

#include <doctest/doctest.h>

#include "unit/provisioner/volume_bed.h"

namespace lpp::testing::volumes_known {

using operation::Kind;
using provisioner::Action;
using provisioner::kRecheck;
using provisioner::kSoon;
using provisioner::VolumesKnown;

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
    CHECK(scene.volume_watch.asked == 4);  // what is not shown for seconds is written again
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
  }
  CHECK_FALSE(scene.begun());
  CHECK(scene.has_event(told));
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
  CHECK(scene.step() == Action::await_change(kSoon));
  CHECK_FALSE(scene.begun());
  CHECK(scene.transport.lines() ==
        std::vector<std::string>{"DELETE /api/v1/persistentvolumes/pvc-uid-a"});
  scene.hear_deletion("8");
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.begun());
  CHECK(scene.transport.requests().size() == 1);
  CHECK(scene.volume_watch.asked == 0);
}

TEST_CASE("what the cache has shown of one removal tells for those that come within seconds") {
  VolumeBed scene;
  scene.put(released());
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  const auto next = [&](const std::string& letter) {
    const std::string name = "pvc-uid-" + letter;
    scene.put(volume(name)
                  .claim("default", letter)
                  .released()
                  .deleting()
                  .host_path("/data/" + name + "_default_" + letter)
                  .node("n1")
                  .finalizer(kOurFinalizer));
    (void)scene.reconciler.step(name);
    return scene.executor.has(Kind::kRemove, name);
  };
  CHECK(next("b"));
  CHECK(scene.volume_watch.asked == 0);
  scene.clock.advance(std::chrono::seconds(6));
  CHECK(next("c"));
  CHECK(scene.volume_watch.asked == 1);
  CHECK(next("d"));
  CHECK(scene.volume_watch.asked == 1);
}

TEST_CASE("how far the cache is behind is known by what it shows of our own writes") {
  k8s::StoreWriter<k8s::PersistentVolume> volumes;
  VolumesKnown known(volumes);
  const auto put = [&](const std::string& name, const std::string& version) {
    volumes.put({"", name}, volume(name).resource_version(version).shared());
  };
  const TimePoint first = TimePoint{} + std::chrono::hours(1);
  const TimePoint second = first + std::chrono::seconds(1);
  put("a", "1");
  put("b", "2");
  CHECK(known.until() == TimePoint::min());
  CHECK(known.awaited() == TimePoint::min());
  known.wrote(first, "a", {"0", "1"});
  known.wrote(second, "b", {"2"});
  put("a", "0");
  CHECK(known.until() == TimePoint::min());
  CHECK(known.awaited() == second);
  put("a", "3");
  CHECK(known.until() == first);
  CHECK(known.awaited() == second);
  volumes.erase({"", "b"});
  CHECK(known.until() == second);
  CHECK(known.awaited() == TimePoint::min());
  // Of many that are not shown the last ones are kept.
  put("a", "4");
  for (int i = 0; i < 1000; ++i) known.wrote(second + std::chrono::seconds(i), "a", {"4"});
  CHECK(known.until() == second);
  put("a", "5");
  CHECK(known.until() == second + std::chrono::seconds(999));
}

}  // namespace lpp::testing::volumes_known
