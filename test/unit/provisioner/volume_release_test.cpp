// SPDX-License-Identifier: Apache-2.0
// Saying that a volume is released in the control plane's place: the rows, and what is written.

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/decision_scene.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::volume_release {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::bound_volume;
using testing::claim;

constexpr milliseconds kBindersTime{500};

/// A bound volume whose claim the cache does not show.
struct Row : testing::VolumeRow {
  Row() {
    is_kept(bound_volume().phase("Bound"));
    binds = true;
    memory.abandoned = now - kBindersTime;
  }
};

}  // namespace

TEST_CASE("a volume whose claim is gone is released when the binder has had its time") {
  for (const char* phase : {"Bound", "Available", "Pending"}) {
    Row row;
    row.is_kept(bound_volume().phase(phase));
    (void)row.next_is<for_volume::MarkReleased>();
    row.memory.abandoned = row.now;
    CHECK(row.next_is<for_volume::Wait>().at_most == kBindersTime);
  }
}

TEST_CASE("an API server that has the claim is not asked again at once") {
  Row row;
  row.memory.claim_asked_at = row.now + seconds(5);
  CHECK(row.next_is<for_volume::Wait>().at_most == seconds(5));
}

TEST_CASE("a volume that is not ours to remove, or not ours to release, is left alone") {
  const std::vector<std::function<void(Row&)>> others{
      [](Row& row) { row.binds = false; },
      [](Row& row) { row.memory.abandoned.reset(); },
      [](Row& row) { row.is_kept(bound_volume().phase("Bound").reclaim_policy("Retain")); },
      [](Row& row) { row.is_kept(bound_volume().phase("Failed")); },
      [](Row& row) { row.is_kept(bound_volume().phase("Bound").claim("default", "a", "")); },
      [](Row& row) {
        row.is_kept(bound_volume().phase("Bound").annotation(std::string(kProvisionedBy), "other"));
      },
      [](Row& row) { row.is_kept(testing::volume("v").claim("default", "a")); },  // no finalizer
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    Row row;
    others[i](row);
    CHECK_FALSE(std::holds_alternative<for_volume::MarkReleased>(row.next()));
  }
}

TEST_CASE("a removal that is on record is stopped before a volume is released") {
  Row row;
  row.removal(testing::State::kRunning);
  (void)row.next_is<for_volume::Cancel>();
}

namespace {

struct Bed : testing::Scene {
  explicit Bed(Binding::By by = Binding::By::kUs) : Scene(by) {
    put(bound_volume().phase("Bound").resource_version("7"));
  }
  Action step() { return reconciler.step("v"); }
  /// Past the time that the binder has.
  Action later() {
    (void)step();
    clock.advance(kBindersTime);
    return step();
  }
  bool has_begun() const { return !executor.started.empty(); }

  testing::FakeTransport::Script& status = transport.on("PATCH", "/persistentvolumes/v/status");
  VolumeReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("the API server is asked for the claim, and the version that was seen is released") {
  Bed bed;
  bed.status.reply(200);
  CHECK(bed.step() == Action::await_change(kBindersTime));
  CHECK(bed.transport.requests().empty());
  (void)bed.later();
  REQUIRE(bed.transport.requests().size() == 2);
  CHECK(bed.transport.requests()[0].method == "GET");
  CHECK(bed.transport.requests()[1].body ==
        R"({"metadata":{"resourceVersion":"7","uid":"uid-v"},"status":{"phase":"Released"}})");
  CHECK_FALSE(bed.has_begun());
  SUBCASE("once") {
    (void)bed.step();
    CHECK(bed.transport.requests().size() == 2);
  }
  SUBCASE("and then it is removed like any other") {
    bed.put(testing::released_volume().node("n1").resource_version("8"));
    (void)bed.step();
    CHECK(bed.has_begun());
  }
}

TEST_CASE("a binder that is behind and calls the volume bound once more stops no removal") {
  Bed bed;
  bed.status.reply(200);
  (void)bed.later();
  bed.put(testing::released_volume().node("n1").resource_version("8"));
  (void)bed.step();
  REQUIRE(bed.has_begun());
  bed.put(bound_volume().phase("Bound").node("n1").deleting().resource_version("9"));
  (void)bed.step();
  CHECK(bed.executor.cancelled.empty());
  SUBCASE("nor keeps its finalizer") {
    bed.executor.succeed(operation::Kind::kRemove, "v");
    auto& patch = bed.transport.on("PATCH", "/persistentvolumes/v");
    patch.reply(200);
    (void)bed.step();
    CHECK(bed.transport.requests().back().method == "PATCH");
  }
  SUBCASE("nor keeps a second attempt away") {
    bed.executor.fail(operation::Kind::kRemove, "v", "exit code 1");
    (void)bed.step();
    bed.clock.advance(seconds(2));
    bed.put(bound_volume().phase("Bound").node("n1").deleting().resource_version("9"));
    (void)bed.step();
    CHECK(bed.executor.started.size() == 2);
  }
}

TEST_CASE("a bound volume that is being deleted keeps its directory while its claim is there") {
  Bed bed;
  bed.put(claim("a").volume("v"));
  bed.put(bound_volume().phase("Bound").node("n1").deleting());
  (void)bed.later();
  CHECK_FALSE(bed.has_begun());
  CHECK(bed.transport.requests().empty());
}

TEST_CASE("a claim made again under the name is another one") {
  Bed bed;
  bed.api_shows(claim("a").uid("another"));
  bed.status.reply(200);
  (void)bed.later();
  CHECK(bed.transport.requests().size() == 2);
}

TEST_CASE("a claim that only the cache does not show keeps its volume bound") {
  Bed bed;
  bed.api_shows(claim("a"));
  (void)bed.later();
  bed.clock.advance(seconds(10));
  (void)bed.step();
  CHECK(bed.transport.requests().size() == 1);
  CHECK_FALSE(bed.has_begun());
  SUBCASE("and is asked for again when it has come into sight and gone") {
    bed.put(claim("a"));
    (void)bed.step();
    bed.claims.erase({"default", "a"});
    bed.api_shows_no_claim();
    bed.status.reply(200);
    (void)bed.later();
    CHECK(bed.transport.requests().size() == 3);
  }
}

TEST_CASE("a claim in the cache keeps its volume bound without a question") {
  Bed bed;
  bed.put(claim("a").volume("v"));
  (void)bed.later();
  CHECK(bed.transport.requests().empty());
}

TEST_CASE("a release that fails is left to the binder, without an Event") {
  Bed bed;
  SUBCASE("the question") { bed.claim_reads.reply(500); }
  SUBCASE("the write") { bed.status.reply(500); }
  SUBCASE("by a conflict") {
    bed.status.reply(409, R"({"kind":"Status","reason":"Conflict","code":409})");
  }
  SUBCASE("by an older ClusterRole") {
    bed.status.reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,)"
                          R"("message":"u cannot patch resource \"persistentvolumes/status\""})");
    (void)bed.later();
    CHECK_FALSE(bed.binding.is_ours());
  }
  (void)bed.later();
  const auto asked = bed.transport.requests().size();
  (void)bed.step();
  CHECK(bed.transport.requests().size() == asked);
  CHECK(bed.events.lines.empty());
  CHECK_FALSE(bed.has_begun());
}

TEST_CASE("a release in an old version is written again when the cache shows the new one") {
  Bed bed;
  bed.status.reply(409, R"({"kind":"Status","reason":"Conflict","code":409})").reply(200);
  (void)bed.later();
  REQUIRE(bed.transport.requests().size() == 2);
  bed.put(bound_volume().phase("Bound").node("n1").resource_version("8"));
  bed.clock.advance(seconds(1));
  (void)bed.step();
  REQUIRE(bed.transport.requests().size() == 4);
  CHECK(bed.transport.requests()[3].body.find(R"("resourceVersion":"8")") != std::string::npos);
}

TEST_CASE("the control plane releases what it is to bind") {
  Bed bed(Binding::By::kControlPlane);
  (void)bed.later();
  CHECK(bed.transport.requests().empty());
}

}  // namespace lpp::provisioner::volume_release
