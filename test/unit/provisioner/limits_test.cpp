// SPDX-License-Identifier: Apache-2.0
// Volumes with limits: what nobody on the node has limited is not shown, and what a path or a node
// cannot serve goes elsewhere.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "provisioner/claim_reconciler.h"
#include "provisioner/names.h"
#include "unit/provisioner/decision_scene.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::limits {
namespace {

using operation::Directory;
using operation::Kind;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::claim;
using testing::ClaimRow;
using testing::FakeExecutor;
using testing::State;

const ClaimKey kKey{{"default", "a"}, "uid-a"};
constexpr const char* kVolume = "pvc-uid-a";

/// A claim of a class with limits on n2, which has two paths.
struct Bed : testing::Scene {
  Bed() {
    put(testing::storage_class().parameter("quota", "hard"));
    put(claim("a").node("n2"));
    transport.on("GET", "/persistentvolumes/").always([](const auto& /*request*/) {
      return k8s::Response{.status = 404};
    });
    // The scheduler chooses the same node again.
    transport.on("PATCH", "/persistentvolumeclaims/a").always([this](const auto& /*request*/) {
      put(claim("a").node("n2").resource_version(std::to_string(++version)));
      return k8s::Response{.status = 200, .body = "{}", .content_type = kJson};
    });
    transport.on("POST", "/persistentvolumes").always([](const auto& /*request*/) {
      return k8s::Response{.status = 201, .body = "{}", .content_type = kJson};
    });
  }
  Action step() { return reconciler.step(kKey); }
  bool is_published() const { return asked("POST"); }
  bool is_sent_back() const { return asked("PATCH"); }
  bool asked(const std::string& method) const {
    const auto& all = transport.requests();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& request) { return request.method == method; });
  }
  /// The last make ends because its base path cannot serve it, and is taken back.
  void turn_away() {
    executor.last(Kind::kMake, kVolume).progress = {
        .state = State::kFailed, .message = "no project quota", .reason = "x", .unfit = true};
    (void)step();
    executor.succeed(Kind::kTakeBack, kVolume, Directory::kAbsent);
    (void)step();
  }

  int version = 1;  // of the claim
  ClaimReconciler reconciler{world, memories};
};

TEST_CASE("a directory whose limit nobody has told of is not shown, but taken back and told") {
  Bed bed;
  (void)bed.step();
  REQUIRE(bed.executor.started.size() == 1);
  CHECK(bed.executor.started[0].limits.hard);
  SUBCASE("nothing is said") { bed.executor.succeed(Kind::kMake, kVolume, Directory::kMade); }
  SUBCASE("it is said that there is none") {
    bed.executor.last(Kind::kMake, kVolume).progress = {
        .state = State::kSucceeded, .directory = Directory::kMade, .kept = {.size = false}};
  }
  (void)bed.step();
  CHECK_FALSE(bed.is_published());
  CHECK(bed.has_event("Warning ProvisioningFailed"));
  CHECK(bed.has_event("parameter quota"));
  REQUIRE(bed.executor.has(Kind::kTakeBack, kVolume));
  CHECK_FALSE(bed.executor.last(Kind::kTakeBack, kVolume).operation.only_if_empty);
  bed.executor.succeed(Kind::kTakeBack, kVolume, Directory::kRemoved);
  (void)bed.step();
  CHECK(bed.executor.records.empty());
  CHECK(bed.executor.started.size() == 2);  // it waits before it tries again
  bed.clock.advance(seconds(2));
  (void)bed.step();
  CHECK(bed.executor.started.size() == 3);
  CHECK_FALSE(bed.is_sent_back());
}

TEST_CASE("a directory with its limit is shown, and its volume says so") {
  Bed bed;
  (void)bed.step();
  bed.executor.last(Kind::kMake, kVolume).progress = {
      .state = State::kSucceeded,
      .kept = {.size = true},
      .space = operation::Space{.size = 100, .free = 7},
      .usage = operation::Usage{.bytes = 5, .limit_bytes = 9},
      .disk = "disk-a"};
  (void)bed.step();
  REQUIRE(bed.is_published());
  const auto& all = bed.transport.requests();
  CHECK(std::any_of(all.begin(), all.end(), [](const auto& request) {
    return request.method == "POST" &&
           request.body.find(R"("local.path.provisioner/disk":"disk-a")") != std::string::npos;
  }));
  const auto& operation = bed.executor.started[0];
  CHECK(bed.space.find("n2", operation.base_path)->free == 7);
  REQUIRE(bed.uses.all().size() == 1);
  CHECK(bed.uses.all()[0].node == "n2");
  CHECK(bed.uses.all()[0].path == operation.path);
  CHECK(bed.uses.all()[0].usage.bytes == 5);
}

TEST_CASE("a path that has no room says how much there is") {
  Bed bed;
  (void)bed.step();
  const auto first = bed.executor.started[0];
  bed.executor.last(Kind::kMake, kVolume).progress = {
      .state = State::kFailed,
      .message = "no room",
      .reason = "x",
      .unfit = true,
      .space = operation::Space{.size = 100, .free = 3}};
  (void)bed.step();
  CHECK(bed.space.find("n2", first.base_path)->free == 3);
}

TEST_CASE("nothing is made or shown on a path whose disk may be missing") {
  Bed bed;
  config::Config config = *bed.config.current();
  config.paths.mount_nodes.insert("n2");
  bed.use(std::move(config));
  bed.put(testing::storage_class());  // no limits
  (void)bed.step();
  REQUIRE(bed.executor.started.size() == 1);
  CHECK(bed.executor.started[0].require_mount);
  SUBCASE("the node says so: the other path is tried") {
    bed.turn_away();
    REQUIRE(bed.executor.started.size() == 3);
    CHECK(bed.executor.started[1].require_mount);  // what takes it back
    CHECK(bed.executor.started[2].base_path != bed.executor.started[0].base_path);
  }
  SUBCASE("nobody on the node has looked") {
    bed.executor.succeed(Kind::kMake, kVolume, Directory::kMade);
    (void)bed.step();
    CHECK_FALSE(bed.is_published());
    CHECK(bed.has_event("requireMount"));
    CHECK(bed.executor.has(Kind::kTakeBack, kVolume));
  }
  SUBCASE("it is there") {
    bed.executor.last(Kind::kMake, kVolume).progress = {.state = State::kSucceeded,
                                                        .kept = {.mount = true}};
    (void)bed.step();
    CHECK(bed.is_published());
  }
}

TEST_CASE("a path that cannot serve the claim gives way to the node's other path at once") {
  Bed bed;
  (void)bed.step();
  bed.turn_away();
  REQUIRE(bed.executor.started.size() == 3);  // make, take back, make
  CHECK(bed.executor.started[2].kind == Kind::kMake);
  CHECK(bed.executor.started[2].base_path != bed.executor.started[0].base_path);
  CHECK_FALSE(bed.is_sent_back());
  CHECK_FALSE(bed.has_event("Warning"));

  SUBCASE("and when that cannot either, the claim goes back to the scheduler, with both causes") {
    bed.turn_away();
    CHECK(bed.is_sent_back());
    CHECK(bed.has_event("no path of node n2 can serve the claim: /data: no project quota; /fast:"));
    SUBCASE("which may choose another node at once") {
      bed.put(claim("a").node("n1").resource_version("9"));
      (void)bed.step();
      CHECK(bed.executor.last(Kind::kMake, kVolume).operation.node == "n1");
    }
    SUBCASE("which chooses the same: nothing is tried there for longer than a helper pod takes") {
      const auto started = bed.executor.started.size();
      (void)bed.step();
      bed.clock.advance(seconds(45));
      (void)bed.step();
      CHECK(bed.executor.started.size() == started);
      bed.clock.advance(minutes(20));
      (void)bed.step();
      CHECK(bed.executor.started.size() == started + 1);
    }
    SUBCASE("a changed class is tried at once") {
      const auto started = bed.executor.started.size();
      bed.put(testing::storage_class()
                  .parameter("quota", "none")
                  .set("/metadata/resourceVersion", "99"));
      (void)bed.step();
      CHECK(bed.executor.started.size() == started + 1);
    }
  }
}

TEST_CASE("a path where an earlier attempt cannot be taken back does not hold the claim up") {
  Bed bed;
  (void)bed.step();
  // The first path has become read-only; the other is full for a while, and works.
  const std::string broken = bed.executor.started[0].base_path;
  for (int round = 0; round < 200; ++round) {
    for (auto& [operation, progress] : bed.executor.records) {
      if (progress.over()) continue;
      if (operation.kind == Kind::kMake) {
        progress = {.state = State::kFailed, .message = "no room", .reason = "x", .unfit = true};
      } else if (operation.base_path == broken) {
        progress = {.state = State::kFailed, .message = "read-only", .reason = "x"};
      } else {
        progress = {.state = State::kSucceeded, .directory = Directory::kAbsent};
      }
    }
    (void)bed.step();
    bed.clock.advance(seconds(10));
  }
  const auto& started = bed.executor.started;
  const auto makes = std::count_if(started.begin(), started.end(), [&](const auto& operation) {
    return operation.kind == Kind::kMake && operation.base_path != broken;
  });
  CHECK(makes > 3);
  CHECK(bed.is_sent_back());
  CHECK(bed.has_event("cannot be taken back: read-only"));
}

TEST_CASE("what was begun under a class with other limits is taken back, not shown or repeated") {
  ClaimRow row;
  row.storage_class = testing::storage_class().parameter("quota", "hard").shared();
  auto& make = row.make(State::kSucceeded);
  SUBCASE("it has succeeded") {}
  SUBCASE("it has failed") {
    make.progress->state = State::kFailed;
    row.make_has_failed(1, {});
  }
  CHECK(row.next_is<for_claim::TakeBack>().make.operation().attempt == 1);
  SUBCASE("a volume shows it: it is that volume's") {
    make.shown = true;
    row.volume_is_there();
    (void)row.next_is<for_claim::Forget>();
  }
}

TEST_CASE("mostFree goes where most is left, with what was promised meanwhile") {
  Bed bed;
  bed.put(testing::storage_class().parameter("pathSelection", "mostFree"));
  constexpr std::int64_t kGi = 1LL << 30U;
  bed.space.note("n2", "/data", {.size = 100 * kGi, .free = 60 * kGi});
  bed.space.note("n2", "/fast", {.size = 100 * kGi, .free = 80 * kGi});
  std::string expected = "/fast";
  SUBCASE("by what is free") {}
  SUBCASE("a volume was promised more than it has used") {
    bed.put(testing::volume("v").host_path("/fast/v").node("n2").capacity("70Gi"));
    expected = "/data";
  }
  SUBCASE("a volume of another node does not count") {
    bed.put(testing::volume("v").host_path("/fast/v").node("n1").capacity("70Gi"));
  }
  SUBCASE("a volume below another base path of the file system counts") {
    bed.space.note("n2", "/other", {.size = 100 * kGi, .free = 80 * kGi, .filesystem = "8:17"});
    bed.space.note("n2", "/fast", {.size = 100 * kGi, .free = 80 * kGi, .filesystem = "8:17"});
    bed.put(testing::volume("v").host_path("/other/v").node("n2").capacity("70Gi"));
    expected = "/data";
  }
  SUBCASE("as the node tells it, used bytes count once") {
    // By the sum of the sizes the first would have 30 left.
    bed.put(testing::volume("v").host_path("/fast/v").node("n2").capacity("70Gi"));
    bed.space.note(
        "n2", "/fast",
        {.size = 100 * kGi, .free = 70 * kGi, .promises = operation::Promises{.unused = 5 * kGi}});
    SUBCASE("") {}
    SUBCASE("with what an agent has made since") {
      operation::Operation other{.volume_name = "pvc-other", .node = "n2"};
      other.base_path = "/fast";
      other.path = "/fast/pvc-other";
      other.size_bytes = 10 * kGi;
      const operation::Progress done{
          .state = State::kSucceeded,
          .space = operation::Space{.size = 100 * kGi, .free = 70 * kGi, .filesystem = "8:17"}};
      for (const bool hard : {true, false}) {
        other.limits.hard = hard;
        note_told(bed.world, other, done);
      }
      // Without a limit it may lie in what is used: 65 are left, else 55.
      CHECK(bed.space.promises("n2", {"/fast"}) ==
            operation::Promises{.unused = 5 * kGi, .unlimited = 10 * kGi});
      other.limits.hard = true;
      note_told(bed.world, other, done);
      expected = "/data";
      SUBCASE("and taken away") {
        other.kind = Kind::kRemove;
        note_told(bed.world, other, done);
        expected = "/fast";
      }
    }
  }
  SUBCASE("one that is being made counts") {
    operation::Operation other;
    other.volume_name = "pvc-other";
    other.owner_uid = "uid-other";
    other.node = "n2";
    other.base_path = "/fast";
    other.path = "/fast/pvc-other";
    other.size_bytes = 70 * kGi;
    REQUIRE_FALSE(bed.ledger.take(other));
    expected = "/data";
  }
  (void)bed.step();
  REQUIRE(bed.executor.started.size() == 1);
  CHECK(bed.executor.started[0].base_path == expected);
}

TEST_CASE("a make that falls short is not wanted once it is told, whatever came in between") {
  ClaimRow row;
  row.storage_class = testing::storage_class().parameter("reserve", "1Gi").shared();
  auto& make = row.make(State::kSucceeded);
  testing::change(make.begun.operation, [](auto& operation) { operation.limits.reserve = "1Gi"; });
  CHECK(row.next_is<for_claim::Failed>().reason == "LimitsMissing");
  row.make_has_failed(1, minutes(1));
  CHECK(row.next_is<for_claim::TakeBack>().make.operation().attempt == 1);
  SUBCASE("it is kept to") {
    make.progress->kept.reserve = true;
    (void)row.next_is<for_claim::Publish>();
  }
  SUBCASE("a volume shows it: it is that volume's") {
    make.shown = true;
    row.volume_is_there();
    (void)row.next_is<for_claim::Forget>();
  }
}

}  // namespace
}  // namespace lpp::provisioner::limits
