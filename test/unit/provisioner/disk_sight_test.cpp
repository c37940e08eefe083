// SPDX-License-Identifier: Apache-2.0
// Base paths in which another disk than that of their volumes is seen, or none.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/volume_bed.h"

namespace lpp::provisioner::disk_sight {
namespace {

using operation::Directory;
using operation::Kind;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::claim;
using State = testing::FakeExecutor::State;

const ClaimKey kKey{{"default", "a"}, "uid-a"};
constexpr const char* kVolume = "pvc-uid-a";

/// A claim of a class without limits on n2, which has two paths.
struct Bed : testing::Scene {
  Bed() {
    put(claim("a").node("n2"));
    transport.on("GET", "/persistentvolumes/").always([](const auto& /*request*/) {
      return k8s::Response{.status = 404};
    });
    // The scheduler chooses the same node again.
    transport.on("PATCH", "/persistentvolumeclaims/a").always([this](const auto& /*request*/) {
      put(claim("a").node("n2").resource_version(std::to_string(++version)));
      return k8s::Response{.status = 200, .body = "{}", .content_type = kJson};
    });
  }
  void step() { (void)reconciler.step(kKey); }
  std::size_t sent_back() const { return transport.count("PATCH", ""); }
  std::size_t begun() const { return executor.started.size(); }
  /// As an agent tells that has looked before it began.
  void refuse() {
    executor.last(Kind::kMake, kVolume).progress = {.state = State::kFailed,
                                                    .message = "not on its disk",
                                                    .reason = "OtherDisk",
                                                    .directory = Directory::kAbsent,
                                                    .unfit = true};
    step();
  }

  int version = 1;       // of the claim
  bool is_known = true;  // on which disk its first attempt was
  ClaimReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("a claim gets the base path whose disk is the right one") {
  for (const char* wrong : {"/data", "/fast"}) {
    CAPTURE(wrong);
    Bed bed;
    bed.executor.unfit[wrong] = "its disk is missing";
    bed.step();
    REQUIRE(bed.begun() == 1);
    CHECK(bed.executor.started[0].base_path != wrong);
    CHECK(bed.events.lines.size() == 1);  // that it is being provisioned
  }
}

TEST_CASE("a node without a right disk gives the claim back, with what to do, and not in a loop") {
  Bed bed;
  bed.executor.unfit = {{"/data", "its disk is missing"}, {"/fast", "disk 2 is there; mount it"}};
  bed.step();
  CHECK(bed.sent_back() == 1);
  CHECK(
      bed.has_event("no path of node n2 can serve the claim: /data: its disk is missing; /fast: "
                    "disk 2 is there; mount it"));
  for (int i = 0; i < 600; ++i) {
    bed.clock.advance(seconds(1));
    bed.step();
  }
  CHECK(bed.begun() == 0);
  CHECK(bed.sent_back() > 3);
  CHECK(bed.sent_back() <= 10);

  SUBCASE("when the disk is back it is made at once") {
    bed.executor.unfit.clear();
    bed.executor.sights["/data"] = "disk-1/";
    bed.step();
    CHECK(bed.begun() == 1);
  }
  SUBCASE("on another node at once, too") {
    bed.put(claim("a").node("n1").resource_version("99"));
    bed.executor.unfit.clear();
    bed.step();
    REQUIRE(bed.begun() == 1);
    CHECK(bed.executor.started[0].node == "n1");
  }
}

TEST_CASE("what an agent has not even begun for the disk is not taken back, and goes elsewhere") {
  Bed bed;
  bed.step();
  REQUIRE(bed.begun() == 1);
  bed.refuse();
  CHECK_FALSE(bed.executor.has(Kind::kTakeBack, kVolume));
  REQUIRE(bed.begun() == 2);
  CHECK(bed.executor.started[1].base_path != bed.executor.started[0].base_path);
  CHECK(bed.executor.records.size() == 1);
  bed.refuse();
  CHECK(bed.sent_back() == 1);
  CHECK(bed.executor.records.empty());
  CHECK(bed.has_event("/data: not on its disk; /fast: not on its disk"));
  bed.step();
  CHECK(bed.begun() == 2);
  bed.executor.sights["/fast"] = "disk-1/";
  bed.step();
  CHECK(bed.begun() == 3);
}

TEST_CASE("where an attempt before it may have left something that is taken back") {
  Bed bed;
  bed.step();
  SUBCASE("by this process") {
    bed.executor.fail(Kind::kMake, kVolume, "EIO");
    bed.step();
    bed.clock.advance(seconds(2));
    bed.step();
    REQUIRE(bed.begun() == 2);
  }
  SUBCASE("by another process, as far as is known") { bed.memories.erase(kVolume); }
  bed.refuse();
  REQUIRE(bed.executor.has(Kind::kTakeBack, kVolume));
  CHECK(bed.executor.last(Kind::kTakeBack, kVolume).operation.only_if_empty);
}

TEST_CASE("what cannot be taken back without its disk is told again and again, and shown") {
  Bed bed;
  bed.step();
  REQUIRE(bed.begun() == 1);
  const std::string dead = bed.executor.started[0].base_path;
  bed.executor.fail(Kind::kMake, kVolume, "EIO");
  bed.claims.erase(kKey.claim);
  SUBCASE("its taking back has failed before") {
    bed.step();
    REQUIRE(bed.executor.has(Kind::kTakeBack, kVolume));
    bed.executor.fail(Kind::kTakeBack, kVolume, "not on its disk");
  }
  SUBCASE("it has not begun") {}
  bed.executor.unfit[dead] = "the disk is gone for good";
  const char* const waits = "waits for its disk: the disk is gone for good";
  bed.step();
  CHECK(bed.told(waits) == 1);
  bed.step();
  CHECK(bed.told(waits) == 1);
  const auto shown = bed.figures.in_flight(10);
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].kind == operation::Kind::kTakeBack);
  CHECK(shown[0].step == Step::kWaiting);
  CHECK(shown[0].problem == "the disk is gone for good");
  bed.clock.advance(minutes(16));
  bed.step();
  CHECK(bed.told(waits) == 2);
  bed.executor.unfit.clear();
  bed.step();
  REQUIRE(bed.executor.has(Kind::kTakeBack, kVolume));
  bed.executor.succeed(Kind::kTakeBack, kVolume, Directory::kAbsent);
  bed.step();
  CHECK(bed.figures.in_flight(10).empty());
}

TEST_CASE("a claim whose attempt failed on a disk that died goes elsewhere, and cleans up later") {
  Bed bed;
  bed.step();
  REQUIRE(bed.begun() == 1);
  const std::string dead = bed.executor.started[0].base_path;
  const std::string other = dead == "/data" ? "/fast" : "/data";
  bed.executor.fail(Kind::kMake, kVolume, "EIO");
  bed.executor.last(Kind::kMake, kVolume).progress.disk = "disk-1";
  bed.step();
  CHECK(bed.begun() == 1);
  bed.executor.sights[dead] = "?";
  bed.executor.unfit[dead] = "its disk is missing";
  const auto is_cleaned_up = [&] {
    bed.clock.advance(minutes(20));
    bed.step();
    CHECK_FALSE(bed.executor.has(Kind::kTakeBack, kVolume));
    bed.executor.unfit.clear();
    bed.executor.sights[dead] = "disk-1/";
    bed.step();
    REQUIRE(bed.executor.has(Kind::kTakeBack, kVolume));
    const auto& undo = bed.executor.last(Kind::kTakeBack, kVolume).operation;
    CHECK(undo.base_path == dead);
    CHECK(undo.disk == (bed.is_known ? "disk-1" : ""));
    CHECK(undo.only_if_empty);
  };
  SUBCASE("another path of the node") {
    bed.step();
    REQUIRE(bed.begun() == 2);
    CHECK(bed.executor.started[1].base_path == other);
    CHECK(bed.executor.started[1].attempt == 2);
    CHECK(bed.has_event("its disk is missing"));
    CHECK(bed.sent_back() == 0);
    is_cleaned_up();
  }
  SUBCASE("where its record is gone as well") {
    bed.step();
    bed.executor.records.erase(bed.executor.records.begin());
    bed.is_known = false;
    is_cleaned_up();
  }
  SUBCASE("back to the scheduler") {
    bed.executor.unfit[other] = "disk 2 is there; mount it";
    bed.step();
    CHECK(bed.begun() == 1);
    CHECK(bed.sent_back() == 1);
    CHECK(bed.has_event("no path of node n2 can serve the claim"));
    SUBCASE("that chooses another node") {
      bed.put(claim("a").node("n1").resource_version("99"));
      bed.executor.unfit = {{"n2:" + dead, "its disk is missing"}};
      bed.executor.sights = {{"n2:" + dead, "?"}};
      bed.step();
      REQUIRE(bed.begun() == 2);
      CHECK(bed.executor.started[1].node == "n1");
      bed.executor.sights["n2:" + dead] = "disk-1/";
    }
    SUBCASE("that chooses it again and again") {
      for (int i = 0; i < 60; ++i) {
        bed.clock.advance(seconds(1));
        bed.step();
      }
      CHECK(bed.begun() == 1);
      CHECK(bed.sent_back() <= 6);
    }
    is_cleaned_up();
  }
}

TEST_CASE("what is taken back waits for the disk of its own node, wherever the claim went") {
  Bed bed;
  bed.put(claim("a").node("n1"));
  bed.step();
  REQUIRE(bed.begun() == 1);
  bed.executor.fail(Kind::kMake, kVolume, "EIO");
  bed.step();
  SUBCASE("to another node") { bed.put(claim("a").node("n2").resource_version("2")); }
  SUBCASE("away") { bed.claims.erase(kKey.claim); }
  bed.step();
  const auto take_backs = [&] {
    return std::count_if(bed.executor.started.begin(), bed.executor.started.end(),
                         [](const auto& one) { return one.kind == Kind::kTakeBack; });
  };
  REQUIRE(take_backs() == 1);
  for (int attempt = 1; attempt < 9; ++attempt) {
    bed.executor.fail(Kind::kTakeBack, kVolume, "not on its disk");
    bed.step();
    if (attempt < 8) bed.clock.advance(minutes(20));
    bed.step();
  }
  REQUIRE(take_backs() == 8);
  bed.executor.sights["n2:/data"] = "disk-2/";
  bed.step();
  CHECK(take_backs() == 8);
  bed.executor.sights["n1:/data"] = "disk-1/";
  bed.step();
  CHECK(take_backs() == 9);
}

TEST_CASE("a removal that waits for its disk begins when that is seen again") {
  testing::VolumeBed bed;
  bed.put(testing::released());
  (void)bed.step();
  REQUIRE(bed.executor.started.size() == 1);
  bed.put(testing::released().deleting());
  for (int attempt = 1; attempt < 8; ++attempt) {
    bed.executor.fail(Kind::kRemove, testing::kReleasedName, "not on its disk");
    (void)bed.step();
    bed.clock.advance(minutes(20));
    (void)bed.step();
  }
  const auto before = bed.executor.started.size();
  bed.executor.fail(Kind::kRemove, testing::kReleasedName, "not on its disk");
  (void)bed.step();
  (void)bed.step();
  CHECK(bed.executor.started.size() == before);
  bed.executor.sights["/data"] = "disk-1/";
  (void)bed.step();
  CHECK(bed.executor.started.size() == before + 1);
}

}  // namespace lpp::provisioner::disk_sight
