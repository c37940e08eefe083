// SPDX-License-Identifier: Apache-2.0
// Binding a claim to its volume in the control plane's place: one test for each row of the table,
// and what is written.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "fakes/captured_log.h"
#include "provisioner/claim_binding.h"
#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/decision_scene.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::claim_binding {
namespace {

using operation::Kind;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::claim;
using testing::claim_operation;
using testing::kVolumePath;
using testing::State;

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";
constexpr const char* kForbidden =
    R"({"kind":"Status","reason":"Forbidden","message":"u cannot patch resource","code":403})";

testing::VolumeBuilder own_volume(const std::string& phase) {
  return testing::volume(kVolume)
      .uid("uid-v")
      .host_path(testing::kClaimPath)
      .claim("default", "a")
      .resource_version("5")
      .phase(phase);
}
testing::ClaimBuilder half_bound() {
  return claim("a").node("n1").volume(kVolume).phase("Pending").annotation(
      std::string(kBindCompleted), "yes");
}

/// A claim that waits; its volume is there, and nobody has bound them yet.
struct Row : testing::ClaimRow {
  Row() {
    binds = true;
    volume = own_volume("Pending").shared();
  }
  bool is_not_bound_by_us() const {
    const auto decision = next();
    return !std::holds_alternative<for_claim::Bind>(decision) &&
           !std::holds_alternative<for_claim::LeaveUnbound>(decision);
  }
};

}  // namespace

// The rows.

TEST_CASE("a claim whose own volume is there is bound to it") {
  Row row;
  for (const char* phase : {"", "Pending", "Available"}) {
    row.volume = own_volume(phase).shared();
    const auto bind = row.next_is<for_claim::Bind>();
    CHECK(bind.volume_status);
    CHECK(bind.claim);
  }
  row.volume = own_volume("Bound").shared();
  const auto bind = row.next_is<for_claim::Bind>();
  CHECK_FALSE(bind.volume_status);
  CHECK(bind.claim);
}

TEST_CASE("a binding that was cut short is finished") {
  Row row;
  for (const char* phase : {"Pending", "Bound"}) {
    row.claim_is(half_bound(), "n1");
    row.volume = own_volume(phase).shared();
    const auto bind = row.next_is<for_claim::Bind>();
    CHECK(bind.volume_status == (std::string(phase) == "Pending"));
    CHECK_FALSE(bind.claim);
  }
}

TEST_CASE("a claim of an Immediate class is bound once the control plane has asked") {
  Row row;
  row.storage_class = testing::storage_class().binding_mode("Immediate").shared();
  row.claim_is(claim("a"), "");
  (void)row.next_is<for_claim::Bind>();
  row.claim_is(claim("a").no_provisioner(), "");
  CHECK(row.is_not_bound_by_us());
}

TEST_CASE("what is bound, named by somebody else, not ours or on its way out is not bound by us") {
  const auto claim_seen = [](const testing::ClaimBuilder& seen) {
    return [=](Row& row) { row.claim_is(seen, "n1"); };
  };
  const auto volume_seen = [](const testing::VolumeBuilder& seen) {
    return [=](Row& row) { row.volume = seen.shared(); };
  };
  const auto on_n1 = [] { return claim("a").node("n1"); };
  const std::vector<std::function<void(Row&)>> others{
      claim_seen(on_n1().volume(kVolume)),
      claim_seen(half_bound().volume(kVolume)),
      claim_seen(on_n1().volume("another")),
      claim_seen(half_bound().volume("another").phase("Lost")),
      claim_seen(on_n1().volume(kVolume).phase("Pending")),  // a wish, by name
      claim_seen(on_n1().annotation(std::string(kBindCompleted), "yes")),
      claim_seen(on_n1().deleting()),
      claim_seen(half_bound().deleting()),
      claim_seen(on_n1().provisioner("example.com/other")),
      claim_seen(on_n1().storage_class("another")),
      claim_seen(on_n1().volume_mode("Block")),
      claim_seen(claim("a")),  // no node is selected any more
      volume_seen(own_volume("Pending").deleting()),
      volume_seen(own_volume("Released")),
      volume_seen(own_volume("Failed")),
      volume_seen(own_volume("Pending").claim("default", "a", "another-uid")),
      volume_seen(own_volume("Pending").claim("default", "b", "uid-a")),
      volume_seen(own_volume("Pending").storage_class("another")),
      volume_seen(own_volume("Pending").annotation(std::string(kProvisionedBy), "other")),
      volume_seen(own_volume("Pending").resource_version("")),
      [](Row& row) { row.storage_class = nullptr; },
      [](Row& row) {
        row.storage_class = testing::storage_class().provisioner("example.com/other").shared();
      },
      [](Row& row) { row.binds = false; },
      [](Row& row) { row.claim_is_gone(); },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    Row row;
    others[i](row);
    CHECK(row.is_not_bound_by_us());
  }
}

TEST_CASE("what was just written is given time to come into the cache") {
  Row row;
  row.memory.binding = {.tries = 1, .hold_until = row.now + seconds(2)};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.volume = own_volume("Bound").resource_version("6").shared();
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.claim_is(half_bound(), "n1");
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  CHECK_FALSE(row.next_is<for_claim::Wait>().forget);
  row.claim_is(half_bound().phase("Bound"), "n1");
  CHECK(row.next_is<for_claim::Wait>().forget);
}

TEST_CASE("after a conflict another version of the claim is tried at once") {
  Row row;
  row.memory.binding = {.tries = 1,
                        .hold_until = row.now + seconds(1),
                        .outdated = {row.claim->meta.resource_version}};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(1));
  row.claim_is(claim("a").node("n1").resource_version("2"), "n1");
  (void)row.next_is<for_claim::Bind>();
}

TEST_CASE("what could not be written is left to the control plane, and that is told once") {
  Row row;
  row.memory.binding = {.failure = "conflict", .message = "it has changed"};
  const auto left = row.next_is<for_claim::LeaveUnbound>();
  CHECK(left.reason == "conflict");
  CHECK(left.message == "it has changed");
  row.memory.binding.left = true;
  CHECK_FALSE(row.next_is<for_claim::Wait>().forget);
  row.binds = false;
  row.memory.binding.left = false;
  (void)row.next_is<for_claim::LeaveUnbound>();
}

TEST_CASE("a claim that the binder lost sight of is bound again after a moment") {
  Row row;
  row.claim_is(half_bound().phase("Lost"), "n1");
  note_lost(row);
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.now += seconds(2);
  note_lost(row);
  CHECK_FALSE(row.next_is<for_claim::Bind>().claim);
  row.claim_is(half_bound().phase("Bound"), "n1");
  note_lost(row);
  CHECK_FALSE(row.memory.lost);
}

TEST_CASE("what is on record comes before the binding") {
  Row row;
  row.take_back(State::kRunning).in_use = true;
  (void)row.next_is<for_claim::Cancel>();
}

// What is written.

namespace {

struct Bed : testing::Scene {
  Bed() : Scene(Binding::By::kUs) { put(claim("a").node("n1").resource_version("3")); }

  Action step() { return reconciler.step({{"default", "a"}, "uid-a"}); }
  /// Up to the point where the directory is there.
  void make() {
    (void)step();
    executor.succeed(Kind::kMake, kVolume);
    transport.on("POST", "/persistentvolumes").reply(201, meta("uid-v", "10"));
  }
  static std::string meta(const std::string& uid, const std::string& version) {
    return nlohmann::json{{"metadata", {{"uid", uid}, {"resourceVersion", version}}}}.dump();
  }
  std::vector<std::string> writes() const {
    std::vector<std::string> all;
    for (const auto& request : transport.requests()) {
      if (request.method == "PATCH") all.push_back(request.target + " " + request.body);
    }
    return all;
  }
  std::uint64_t counted(const std::string& result) {
    std::uint64_t count = 0;
    for (const auto* entry : figures.totals().bindings.entries()) {
      if (entry->first[0] == result) count = entry->second;
    }
    return count;
  }

  testing::FakeTransport::Script& volume_status =
      transport.on("PATCH", "/persistentvolumes/pvc-uid-a/status");
  testing::FakeTransport::Script& claim_status =
      transport.on("PATCH", "/persistentvolumeclaims/a/status");
  testing::FakeTransport::Script& claim_patch = transport.on("PATCH", "/persistentvolumeclaims/a");
  ClaimReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("the step that creates the volume binds it, each write on the version before it") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
  bed.claim_patch.reply(200, Bed::meta("uid-a", "12"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "13"));
  (void)bed.step();
  const auto writes = bed.writes();
  REQUIRE(writes.size() == 3);
  CHECK(writes[0] ==
        "/api/v1/persistentvolumes/pvc-uid-a/status "
        R"({"metadata":{"resourceVersion":"10","uid":"uid-v"},"status":{"phase":"Bound"}})");
  CHECK(writes[1] ==
        "/api/v1/namespaces/default/persistentvolumeclaims/a "
        R"({"metadata":{"annotations":{"pv.kubernetes.io/bind-completed":"yes",)"
        R"("pv.kubernetes.io/bound-by-controller":"yes"},"resourceVersion":"3","uid":"uid-a"},)"
        R"("spec":{"volumeName":"pvc-uid-a"}})");
  CHECK(writes[2] ==
        "/api/v1/namespaces/default/persistentvolumeclaims/a/status "
        R"({"metadata":{"resourceVersion":"12","uid":"uid-a"},"status":{"accessModes":)"
        R"(["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"phase":"Bound"}})");
  CHECK(bed.counted("bound") == 1);
  CHECK(bed.executor.forgotten == std::vector<std::string>{"make pvc-uid-a"});

  SUBCASE("caches that do not show it yet bring no more writes") {
    bed.put(own_volume("Pending").resource_version("10"));
    (void)bed.step();
    bed.put(own_volume("Bound").resource_version("11"));
    (void)bed.step();
    bed.put(half_bound().resource_version("12"));
    (void)bed.step();
    CHECK(bed.writes().size() == 3);
    bed.put(half_bound().phase("Bound").resource_version("13"));
    CHECK(bed.step() == Action::done());
    CHECK(bed.memories.size() == 0);
  }
  SUBCASE("a claim that the binder took for lost is bound once more, not at once") {
    bed.put(own_volume("Bound").resource_version("11"));
    bed.put(half_bound().phase("Bound").resource_version("13"));
    (void)bed.step();
    bed.put(half_bound().phase("Lost").resource_version("14"));
    (void)bed.step();
    CHECK(bed.writes().size() == 3);
    bed.clock.advance(seconds(2));
    bed.claim_status.reply(200, Bed::meta("uid-a", "15"));
    (void)bed.step();
    REQUIRE(bed.writes().size() == 4);
    CHECK(bed.writes()[3].find(R"("resourceVersion":"14")") != std::string::npos);
  }
}

TEST_CASE("a volume whose creation was answered too late is bound in the version that is there") {
  Bed bed;
  (void)bed.step();
  bed.executor.succeed(Kind::kMake, kVolume);
  bed.transport.on("POST", "/persistentvolumes").reply(409, testing::kAlreadyExists);
  bed.transport.on("GET", "/persistentvolumes/pvc-uid-a")
      .reply(200, own_volume("Bound").node("n1").json().dump());
  bed.claim_patch.reply(200, Bed::meta("uid-a", "12"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "13"));
  (void)bed.step();
  CHECK(bed.writes().size() == 2);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("a conflict is decided again from what is there then") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
  bed.claim_patch.reply(409, kConflict);
  (void)bed.step();
  const std::size_t before = bed.writes().size();
  bed.put(own_volume("Bound").resource_version("11"));
  (void)bed.step();
  CHECK(bed.writes().size() == before);
  bed.put(claim("a").node("n1").resource_version("4"));
  bed.claim_patch.reply(200, Bed::meta("uid-a", "12"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "13"));
  (void)bed.step();
  REQUIRE(bed.writes().size() == before + 2);
  CHECK(bed.writes()[before].find(R"("resourceVersion":"4")") != std::string::npos);
  CHECK(bed.counted("bound") == 1);
  CHECK(bed.events.lines.size() == 2);  // of its provisioning, and none of this
}

TEST_CASE("a claim that changes during its binding is bound as soon as the cache shows it") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
  bed.claim_patch.reply(409, kConflict);
  (void)bed.step();
  // The cache shows the volume, and not yet that it is bound.
  bed.put(own_volume("Pending").resource_version("10"));
  bed.put(claim("a").node("n1").resource_version("4"));
  bed.claim_patch.reply(200, Bed::meta("uid-a", "12"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "13"));
  (void)bed.step();
  REQUIRE(bed.writes().size() == 4);
  CHECK(bed.writes()[2].find(R"("resourceVersion":"4")") != std::string::npos);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("another volume of that name is bound by a write of its own") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
  bed.claim_patch.reply(409, kConflict);
  (void)bed.step();
  bed.put(own_volume("Pending").uid("another").resource_version("20"));
  bed.put(claim("a").node("n1").resource_version("4"));
  bed.volume_status.reply(200, Bed::meta("another", "21"));
  bed.claim_patch.reply(200, Bed::meta("uid-a", "22"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "23"));
  (void)bed.step();
  CHECK(bed.writes().size() == 5);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("after a conflict no version is tried that is older than our own write") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
  bed.claim_patch.reply(200, Bed::meta("uid-a", "12"));
  bed.claim_status.reply(409, kConflict);
  (void)bed.step();
  bed.put(own_volume("Bound").resource_version("11"));
  bed.put(half_bound().resource_version("12"));
  CHECK(bed.step() == Action::await_change(seconds(1)));
  CHECK(bed.writes().size() == 3);
  bed.put(half_bound().resource_version("13"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "14"));
  (void)bed.step();
  REQUIRE(bed.writes().size() == 4);
  CHECK(bed.writes()[3].find(R"("resourceVersion":"13")") != std::string::npos);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("a volume that changes during its binding is tried again in another version only") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(409, kConflict);
  (void)bed.step();
  // The cache shows what we have created before it shows what somebody has made of it.
  bed.put(own_volume("Pending").resource_version("10"));
  bed.put(claim("a").node("n1").resource_version("4"));
  CHECK(bed.step() == Action::await_change(seconds(1)));
  CHECK(bed.writes().size() == 1);
  bed.put(own_volume("Pending").resource_version("11"));
  bed.volume_status.reply(200, Bed::meta("uid-v", "12"));
  bed.claim_patch.reply(200, Bed::meta("uid-a", "13"));
  bed.claim_status.reply(200, Bed::meta("uid-a", "14"));
  (void)bed.step();
  CHECK(bed.writes().size() == 4);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("after three conflicts the claim is left to the control plane with one line") {
  testing::CapturedLog log;
  Bed bed;
  bed.make();
  bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
  bed.claim_patch.reply(409, kConflict).reply(409, kConflict).reply(409, kConflict);
  (void)bed.step();
  bed.put(own_volume("Bound").resource_version("11"));
  for (int version = 4; version < 8; ++version) {
    bed.put(claim("a").node("n1").resource_version(std::to_string(version)));
    (void)bed.step();
  }
  CHECK(bed.writes().size() == 4);
  const auto lines = log.take();
  CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
          return line.find("left to the control plane") != std::string::npos;
        }) == 1);
  CHECK(bed.counted("conflict") == 1);
  CHECK(bed.counted("bound") == 0);
  CHECK(bed.events.lines.size() == 2);
}

TEST_CASE("whatever else goes wrong leaves the claim to the control plane, without an Event") {
  for (const int status : {400, 422, 500}) {
    Bed bed;
    bed.make();
    bed.volume_status.reply(status);
    (void)bed.step();
    bed.put(own_volume("Pending").resource_version("10"));
    (void)bed.step();
    CHECK(bed.writes().size() == 1);
    CHECK(bed.counted("failed") == 1);
    CHECK(bed.events.lines.size() == 2);
    bed.put(half_bound().phase("Bound"));
    CHECK(bed.step() == Action::done());
    CHECK(bed.memories.size() == 0);
  }
}

TEST_CASE("a webhook that denies one write costs the other claims nothing") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(
      403, R"({"kind":"Status","reason":"Forbidden","message":"webhook denied it","code":403})");
  (void)bed.step();
  CHECK(bed.counted("failed") == 1);
  CHECK(bed.binding.is_ours());
}

TEST_CASE("an older ClusterRole is noticed once, and nothing is tried for a good while") {
  Bed bed;
  bed.make();
  bed.volume_status.reply(403, kForbidden);
  (void)bed.step();
  CHECK(bed.counted("forbidden") == 1);
  CHECK_FALSE(bed.binding.is_ours());
  bed.put(own_volume("Pending").resource_version("10"));
  CHECK(bed.step() == Action::done());
  CHECK(bed.writes().size() == 1);
  CHECK(bed.events.lines.size() == 2);
  bed.clock.advance(Binding::kRefusedFor);
  CHECK(bed.binding.is_ours());
}

TEST_CASE("a binding is counted once, by how it ended") {
  const auto counts_after = [](int status, const char* answer) {
    Bed bed;
    bed.make();
    bed.volume_status.reply(200, Bed::meta("uid-v", "11"));
    for (int version = 4; version < 9; ++version) {
      bed.claim_patch.reply(status, answer);
      bed.claim_status.reply(status, answer);
      (void)bed.step();
      bed.put(own_volume("Bound").resource_version("11"));
      const auto seen = status == 200 ? half_bound().phase("Bound") : claim("a").node("n1");
      bed.put(testing::ClaimBuilder(seen).resource_version(std::to_string(version)));
      bed.clock.advance(seconds(3));
    }
    std::vector<std::string> counts;
    for (const auto* result : bed.figures.totals().bindings.entries()) {
      counts.push_back(result->first[0] + " " + std::to_string(result->second));
    }
    return counts;
  };
  CHECK(counts_after(200, R"({"metadata":{"resourceVersion":"12"}})") ==
        std::vector<std::string>{"bound 1"});
  CHECK(counts_after(409, kConflict) == std::vector<std::string>{"conflict 1"});
  CHECK(counts_after(403, kForbidden) == std::vector<std::string>{"forbidden 1"});
  CHECK(counts_after(422, "{}") == std::vector<std::string>{"failed 1"});
}

}  // namespace lpp::provisioner::claim_binding
