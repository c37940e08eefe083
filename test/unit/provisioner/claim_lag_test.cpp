// SPDX-License-Identifier: Apache-2.0
// What was written to a claim, and the cache does not show yet.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::claim_lag {
namespace {

using testing::claim;

constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";

/// A claim on a node that cannot serve it.
struct Bed : testing::Scene {
  Bed() { put(claim("a").node("empty")); }

  Action step() { return reconciler.step({{"default", "a"}, "uid-a"}); }
  std::size_t patches() const { return transport.count("PATCH", ""); }
  std::uint64_t failures() {
    std::uint64_t count = 0;
    for (const auto* entry : figures.totals().failures.entries()) count += entry->second;
    return count;
  }

  testing::FakeTransport::Script& patch = transport.on("PATCH", "/persistentvolumeclaims/a");
  ClaimReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("a claim that was sent back to the scheduler is not sent again before that is seen") {
  Bed bed;
  SUBCASE("its node has no path") {}
  SUBCASE("its node is gone") {
    bed.put(claim("a").node("ghost"));
    bed.transport.on("GET", "/nodes/ghost").reply(404).reply(404);
  }
  bed.patch.reply(200).reply(409, kConflict);
  CHECK(bed.step() == Action::done());
  const std::size_t asked = bed.transport.requests().size();
  for (int i = 0; i < 3; ++i) {
    (void)bed.step();
    bed.clock.advance(std::chrono::seconds(5));
  }
  CHECK(bed.transport.requests().size() == asked);
  CHECK(bed.failures() == 1);
  CHECK(bed.events.lines.size() == 1);
}

TEST_CASE("the scheduler's next choice is judged though it is the same node") {
  Bed bed;
  bed.patch.reply(200).reply(200);
  (void)bed.step();
  bed.clock.advance(std::chrono::seconds(5));
  bed.put(claim("a").resource_version("2"));
  (void)bed.step();
  bed.put(claim("a").node("empty").resource_version("3"));
  (void)bed.step();
  CHECK(bed.patches() == 2);
  CHECK(bed.failures() == 2);
}

TEST_CASE("a claim that changes while it is sent back is decided again, without an Event") {
  Bed bed;
  int status = 409;
  SUBCASE("changed") {}
  SUBCASE("gone") { status = 404; }
  bed.patch.reply(status, kConflict).reply(200);
  CHECK(bed.step() == Action::await_change(kSoon));
  CHECK(bed.events.lines.empty());
  CHECK(bed.failures() == 0);
  bed.put(claim("a").node("empty").resource_version("2"));
  CHECK(bed.step() == Action::done());
  CHECK(bed.events.lines.size() == 1);
  CHECK(bed.failures() == 1);
}

TEST_CASE("a claim that cannot be sent back is one failure, not two") {
  Bed bed;
  bed.patch.reply(403, R"({"kind":"Status","reason":"Forbidden","message":"no","code":403})");
  CHECK(bed.step() == Action::retry());
  CHECK(bed.failures() == 1);
}

TEST_CASE("a make that waits for word goes on only when the API server knows no volume of it") {
  Bed bed;
  bed.put(claim("a").node("n1"));
  (void)bed.step();
  auto& make = bed.executor.last(operation::Kind::kMake, "pvc-uid-a").progress;
  make = {.state = operation::Progress::State::kRunning, .outdated = true};
  auto& volume = bed.transport.on("GET", "/persistentvolumes/pvc-uid-a");
  const auto is_held = [&] {
    CHECK(bed.step() == Action::await_change(kRecheck));
    CHECK(bed.executor.cancelled.empty());
    return make.outdated;
  };
  SUBCASE("it knows one") {
    volume.reply(200, testing::volume("pvc-uid-a").json().dump());
    CHECK(is_held());
  }
  SUBCASE("it has the claim bound") {
    volume.reply(404);
    bed.api_shows(claim("a").node("n1").volume("pvc-uid-a"));
    CHECK(is_held());
  }
  SUBCASE("it knows none") {
    volume.reply(404);
    CHECK_FALSE(is_held());
  }
  CHECK(bed.executor.started.size() == 1);
}

}  // namespace lpp::provisioner::claim_lag
