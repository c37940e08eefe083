// SPDX-License-Identifier: Apache-2.0
// What was written to a volume, and the cache does not show yet.

#include <doctest/doctest.h>

#include "unit/provisioner/volume_bed.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

TEST_CASE("a removal that is over before the cache shows the deletion tells of no conflict") {
  VolumeBed scene;
  scene.put(released().resource_version("7"));
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/pvc-uid-a");
  patches.reply(200);
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  scene.executor.succeed(Kind::kRemove, kReleasedName);
  auto& deletes = scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a");
  // The version that the cache has is not the newest one by now.
  deletes.always([](const k8s::Request& request) {
    const auto preconditions = nlohmann::json::parse(request.body)["preconditions"];
    const bool same = !preconditions.contains("resourceVersion");
    return k8s::Response{.status = same ? 200 : 409, .body = same ? "{}" : kConflictBody};
  });
  auto expected = scene.transport.count("DELETE", "");
  SUBCASE("which is known to be our own") {}
  SUBCASE("which another process has asked for") {
    scene.memories.erase(kReleasedName);
    ++expected;
  }
  (void)scene.step();
  CHECK(scene.transport.count("DELETE", "") == expected);
  CHECK(scene.transport.count("PATCH", "") == 1);
  CHECK(scene.events.lines.empty());
}

TEST_CASE("a finalizer that only we know of goes with the directory") {
  VolumeBed scene;
  scene.put(not_held().resource_version("7"));
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/pvc-uid-a");
  patches.reply(200, released().resource_version("8").json().dump()).reply(200);
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  // The cache shows neither it nor the deletion yet.
  scene.executor.succeed(Kind::kRemove, kReleasedName);
  (void)scene.step();
  CHECK(scene.transport.count("DELETE", "") == 1);
  const auto requests = scene.transport.requests();
  REQUIRE(requests.back().method == "PATCH");
  CHECK(requests.back().body.find("$deleteFromPrimitiveList/finalizers") != std::string::npos);
}

TEST_CASE("a finalizer of a volume that is gone or another one by now is no failure") {
  VolumeBed scene;
  scene.put(not_held().phase("Bound"));
  scene.put(claim("a").volume(kReleasedName));
  int status = 404;
  SUBCASE("gone") {}
  SUBCASE("another one") { status = 409; }
  scene.transport.on("PATCH", "/persistentvolumes/pvc-uid-a").reply(status);
  CHECK(scene.step() == Action::await_change(kSoon));
  CHECK(scene.events.lines.empty());
}

TEST_CASE("a removal that begins unasked is called off in time, however late the cache is") {
  VolumeBed scene;
  auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");
  bool kept = false;
  reads.always([&](const k8s::Request&) {
    auto now = released().deleting();
    if (kept) now.reclaim_policy("Retain");
    return k8s::Response{.status = 200, .body = now.json().dump()};
  });
  scene.put(released().deleting());
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  scene.executor.records.at(0).progress.begins_unasked = true;
  const auto asked = scene.transport.count("GET", "");
  (void)scene.step();
  CHECK(scene.transport.count("GET", "") == asked);  // just before
  kept = true;
  scene.clock.advance(std::chrono::seconds(5));
  SUBCASE("the cache shows nothing yet") {
    (void)scene.step();
    CHECK(scene.executor.cancelled.size() == 1);
  }
  SUBCASE("a new leader has asked for nothing yet") {
    scene.memories.erase(kReleasedName);
    (void)scene.step();
    CHECK(scene.executor.cancelled.size() == 1);
  }
  SUBCASE("it runs by now") {
    scene.executor.records.at(0).progress = {.state = operation::Progress::State::kRunning};
    (void)scene.step();
    CHECK(scene.executor.cancelled.empty());
    CHECK(scene.transport.count("GET", "") == asked);
  }
}

TEST_CASE("a directory is not removed on a word that was long under way") {
  VolumeBed scene;
  auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");
  bool slow = true;
  reads.always([&](const k8s::Request&) {
    if (slow) scene.clock.advance(std::chrono::seconds(6));
    return k8s::Response{.status = 200, .body = released().deleting().json().dump()};
  });
  scene.put(released().deleting());
  (void)scene.step();
  CHECK(scene.executor.started.empty());
  slow = false;
  (void)scene.step();
  CHECK(scene.executor.started.size() == 1);
}

TEST_CASE("a removal that comes too late over and over is told") {
  VolumeBed scene;
  scene.put(released().deleting());
  const auto be_late = [&] {
    REQUIRE(scene.executor.records.size() == 1);
    // It may have been about to begin.
    scene.executor.records.at(0).progress = {.state = operation::Progress::State::kRunning};
    (void)scene.step();
    scene.executor.records.at(0).progress.outdated = true;
    (void)scene.step();
    scene.executor.records.clear();
    (void)scene.step();
  };
  (void)scene.step();
  for (int i = 0; i < 4; ++i) {
    be_late();
    CHECK_FALSE(scene.has_event("too late to begin"));
  }
  be_late();
  CHECK(scene.has_event("each time it was too late to begin"));
  CHECK(scene.events.lines.size() == 1);
  // It is tried again after a while, as after a failure.
  CHECK(scene.executor.records.empty());
  scene.clock.advance(std::chrono::minutes(20));
  (void)scene.step();
  CHECK(scene.executor.records.size() == 1);
}
