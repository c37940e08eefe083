// SPDX-License-Identifier: Apache-2.0
// What is written to bind a claim to its volume, and what follows when that fails.
// Whether it is to be bound: claim_binding_test.cpp.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fakes/captured_log.h"
#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/binding_scene.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::claim_bound {
namespace {

using operation::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::claim;
using testing::claims_volume;
using testing::half_bound_claim;
using testing::kClaimsVolume;
using testing::unasked_claim;

constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";
constexpr const char* kForbidden =
    R"({"kind":"Status","reason":"Forbidden","message":"u cannot patch resource","code":403})";

struct Bed : testing::Scene {
  Bed() : Scene(Binding::By::kUs) { put(claim("a").node("n1").resource_version("3")); }

  Action step() { return reconciler.step({{"default", "a"}, "uid-a"}); }
  /// Up to the point where the directory is there.
  void make_directory() {
    (void)step();
    executor.succeed(Kind::kMake, kClaimsVolume);
  }
  /// And the creation of its volume will succeed.
  void make() {
    make_directory();
    transport.on("POST", "/persistentvolumes").reply(201, meta("uid-v", "10"));
  }
  static std::string meta(const std::string& uid, const std::string& version) {
    return nlohmann::json{{"metadata", {{"uid", uid}, {"resourceVersion", version}}}}.dump();
  }
  /// The next writes of the volume's status, and of the claim and its status, give these versions.
  void accept_volume(const std::string& version) {
    volume_status.reply(200, meta("uid-v", version));
  }
  void accept_claim(const std::string& version, const std::string& of_status) {
    claim_patch.reply(200, meta("uid-a", version));
    claim_status.reply(200, meta("uid-a", of_status));
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
  bed.accept_volume("11");
  bed.accept_claim("12", "13");
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
    bed.put(claims_volume("Pending").resource_version("10"));
    (void)bed.step();
    bed.put(claims_volume("Bound").resource_version("11"));
    (void)bed.step();
    bed.put(half_bound_claim().resource_version("12"));
    (void)bed.step();
    CHECK(bed.writes().size() == 3);
    bed.put(half_bound_claim().phase("Bound").resource_version("13"));
    CHECK(bed.step() == Action::done());
    CHECK(bed.memories.size() == 0);
  }
  SUBCASE("a claim that the binder took for lost is bound once more, not at once") {
    bed.put(claims_volume("Bound").resource_version("11"));
    bed.put(half_bound_claim().phase("Bound").resource_version("13"));
    (void)bed.step();
    bed.put(half_bound_claim().phase("Lost").resource_version("14"));
    (void)bed.step();
    CHECK(bed.writes().size() == 3);
    bed.clock.advance(seconds(2));
    bed.claim_status.reply(200, Bed::meta("uid-a", "15"));
    (void)bed.step();
    REQUIRE(bed.writes().size() == 4);
    CHECK(bed.writes()[3].find(R"("resourceVersion":"14")") != std::string::npos);
  }
}

TEST_CASE("the step that creates a volume nobody has asked for yet leaves its claim alone") {
  Bed bed;
  bed.put(unasked_claim().resource_version("3"));
  bed.make_directory();
  bed.transport.on("POST", "/persistentvolumes").run([&](const auto&, const auto*, const auto&) {
    bed.clock.advance(seconds(3));
    return k8s::Response{.status = 201, .body = Bed::meta("uid-v", "10")};
  });
  (void)bed.step();
  // The half second goes by while the cache does not show the volume, too.
  bed.clock.advance(milliseconds(100));
  (void)bed.step();
  bed.clock.advance(milliseconds(100));
  bed.put(claims_volume("Pending").resource_version("10"));
  CHECK(bed.step() == Action::await_change(milliseconds(300)));
  CHECK(bed.writes().empty());
  bed.accept_volume("11");
  bed.accept_claim("12", "13");
  std::string version = "3";
  SUBCASE("until the control plane asks") {
    version = "4";
    bed.put(claim("a").node("n1").resource_version(version));
  }
  SUBCASE("for half a second at most") {
    bed.clock.advance(milliseconds(299));
    (void)bed.step();
    CHECK(bed.writes().empty());
    bed.clock.advance(milliseconds(1));
  }
  (void)bed.step();
  REQUIRE(bed.writes().size() == 3);
  CHECK(bed.writes()[1].find(R"("resourceVersion":")" + version + '"') != std::string::npos);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("a volume whose creation was answered too late is bound in the version that is there") {
  Bed bed;
  bed.make_directory();
  bed.transport.on("POST", "/persistentvolumes").reply(409, testing::kAlreadyExists);
  bed.transport.on("GET", "/persistentvolumes/pvc-uid-a")
      .reply(200, claims_volume("Bound").node("n1").json().dump());
  bed.accept_claim("12", "13");
  (void)bed.step();
  CHECK(bed.writes().size() == 2);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("a conflict is decided again from what is there then") {
  Bed bed;
  bed.make();
  bed.accept_volume("11");
  bed.claim_patch.reply(409, kConflict);
  (void)bed.step();
  const std::size_t before = bed.writes().size();
  bed.put(claims_volume("Bound").resource_version("11"));
  (void)bed.step();
  CHECK(bed.writes().size() == before);
  bed.put(claim("a").node("n1").resource_version("4"));
  bed.accept_claim("12", "13");
  (void)bed.step();
  REQUIRE(bed.writes().size() == before + 2);
  CHECK(bed.writes()[before].find(R"("resourceVersion":"4")") != std::string::npos);
  CHECK(bed.counted("bound") == 1);
  CHECK(bed.events.lines.size() == 2);  // of its provisioning, and none of this
}

TEST_CASE("a claim that changes during its binding is bound as soon as the cache shows it") {
  Bed bed;
  bed.make();
  bed.accept_volume("11");
  bed.claim_patch.reply(409, kConflict);
  (void)bed.step();
  // The cache shows the volume, and not yet that it is bound.
  bed.put(claims_volume("Pending").resource_version("10"));
  bed.put(claim("a").node("n1").resource_version("4"));
  bed.accept_claim("12", "13");
  (void)bed.step();
  REQUIRE(bed.writes().size() == 4);
  CHECK(bed.writes()[2].find(R"("resourceVersion":"4")") != std::string::npos);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("another volume of that name is bound by a write of its own") {
  Bed bed;
  bed.make();
  bed.accept_volume("11");
  bed.claim_patch.reply(409, kConflict);
  (void)bed.step();
  bed.put(claims_volume("Pending").uid("another").resource_version("20"));
  bed.put(claim("a").node("n1").resource_version("4"));
  bed.volume_status.reply(200, Bed::meta("another", "21"));
  bed.accept_claim("22", "23");
  (void)bed.step();
  CHECK(bed.writes().size() == 5);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("after a conflict no version is tried that is older than our own write") {
  Bed bed;
  bed.make();
  bed.accept_volume("11");
  bed.claim_patch.reply(200, Bed::meta("uid-a", "12"));
  bed.claim_status.reply(409, kConflict);
  (void)bed.step();
  bed.put(claims_volume("Bound").resource_version("11"));
  bed.put(half_bound_claim().resource_version("12"));
  CHECK(bed.step() == Action::await_change(seconds(1)));
  CHECK(bed.writes().size() == 3);
  bed.put(half_bound_claim().resource_version("13"));
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
  bed.put(claims_volume("Pending").resource_version("10"));
  bed.put(claim("a").node("n1").resource_version("4"));
  CHECK(bed.step() == Action::await_change(seconds(1)));
  CHECK(bed.writes().size() == 1);
  bed.put(claims_volume("Pending").resource_version("11"));
  bed.accept_volume("12");
  bed.accept_claim("13", "14");
  (void)bed.step();
  CHECK(bed.writes().size() == 4);
  CHECK(bed.counted("bound") == 1);
}

TEST_CASE("after three conflicts the claim is left to the control plane with one line") {
  testing::CapturedLog log;
  Bed bed;
  bed.make();
  bed.accept_volume("11");
  bed.claim_patch.reply(409, kConflict).reply(409, kConflict).reply(409, kConflict);
  (void)bed.step();
  bed.put(claims_volume("Bound").resource_version("11"));
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
    bed.put(claims_volume("Pending").resource_version("10"));
    (void)bed.step();
    CHECK(bed.writes().size() == 1);
    CHECK(bed.counted("failed") == 1);
    CHECK(bed.events.lines.size() == 2);
    bed.put(half_bound_claim().phase("Bound"));
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
  bed.put(claims_volume("Pending").resource_version("10"));
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
    bed.accept_volume("11");
    for (int version = 4; version < 9; ++version) {
      bed.claim_patch.reply(status, answer);
      bed.claim_status.reply(status, answer);
      (void)bed.step();
      bed.put(claims_volume("Bound").resource_version("11"));
      const auto seen = status == 200 ? half_bound_claim().phase("Bound") : claim("a").node("n1");
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

}  // namespace lpp::provisioner::claim_bound
