// SPDX-License-Identifier: Apache-2.0
// Whether what a node tells of work that nobody here has ordered is believed.

#include "provisioner/told_work.h"

#include <doctest/doctest.h>

#include "fakes/builders.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::told_works {
namespace {

using operation::Kind;
using operation::Operation;
using testing::claim;
using testing::node;
using testing::volume;

constexpr std::int64_t kGi = 1LL << 30;

struct Cluster : testing::Scene {
  Cluster() {
    put(node("n1"));
    put(node("n2"));
    put(claim("a").node("n1").request("1Gi"));
  }
  operation::Belief judged(const Operation& told) {
    return judge(told, base_paths, world.claims, world.volumes, world.nodes, now);
  }
  bool believes(const Operation& told) { return judged(told).against.empty(); }

  std::vector<std::string> base_paths{"/data", "/data/ssd", "/other"};
  std::chrono::system_clock::time_point now =
      std::chrono::sys_days{std::chrono::year{2026} / 1 / 1};
};

Operation told(Kind kind) {
  Operation operation;
  operation.kind = kind;
  operation.volume_name = "pvc-uid-a";
  operation.claim = {"default", "a"};
  operation.owner_uid = kind == Kind::kMake || kind == Kind::kTakeBack ? "uid-a" : "uid-pvc-uid-a";
  operation.node = "n1";
  operation.base_path = "/data";
  operation.path = "/data/pvc-uid-a_default_a";
  operation.size_bytes = kGi;
  return operation;
}

TEST_CASE("what a former leader has ordered is believed") {
  Cluster cluster;
  for (const Kind kind : {Kind::kMake, Kind::kTakeBack, Kind::kRemove, Kind::kResize}) {
    CHECK(cluster.believes(told(kind)));
    // Its claim is gone, or waits on another node: it is for the owner to take back.
    Operation other = told(kind);
    if (kind == Kind::kMake || kind == Kind::kTakeBack) {
      other.volume_name = "pvc-uid-gone";
      other.owner_uid = "uid-gone";
    }
    CHECK(cluster.believes(other));
    other.node = "n2";
    CHECK(cluster.believes(other));
    CHECK_FALSE(cluster.judged(other).at_home);
  }
  CHECK(cluster.judged(told(Kind::kMake)).at_home);
}

TEST_CASE("no directory is believed that the node's base paths do not hold") {
  Cluster cluster;
  for (const Kind kind : {Kind::kMake, Kind::kTakeBack, Kind::kRemove, Kind::kResize}) {
    Operation lie = told(kind);
    SUBCASE("outside") { lie.path = "/etc"; }
    SUBCASE("outside with a base path of its own") {
      lie.base_path = "/etc";
      lie.path = "/etc/kubernetes";
    }
    SUBCASE("the whole node") {
      lie.base_path = "/";
      lie.path = "/etc";
    }
    SUBCASE("the base path") { lie.path = "/data"; }
    SUBCASE("another base path within") { lie.path = "/data/ssd"; }
    SUBCASE("of another base path") { lie.path = "/other/pvc-uid-a_default_a"; }
    SUBCASE("with a line of its own") { lie.path = "/data/a\nb"; }
    SUBCASE("of a path that is configured no more, by a pattern") {
      cluster.base_paths = {"/other"};
      lie.path = "/data/default/a";
    }
    SUBCASE("below itself") {
      lie.base_path = "/etc";
      lie.path = "/etc";
    }
    CHECK_FALSE(cluster.believes(lie));
  }
}

TEST_CASE("a directory that has its claim's name is believed wherever it was begun") {
  Cluster cluster;
  cluster.base_paths = {"/other"};
  CHECK(cluster.believes(told(Kind::kMake)));
  CHECK(cluster.believes(told(Kind::kTakeBack)));
  Operation lie = told(Kind::kMake);
  SUBCASE("that of another volume") { lie.path = "/data/pvc-uid-b_default_b"; }
  SUBCASE("within it") { lie.path = "/data/pvc-uid-a_default_a/below"; }
  SUBCASE("no claim's") {
    lie.volume_name = "database";
    lie.path = "/data/database_default_a";
  }
  CHECK_FALSE(cluster.believes(lie));
}

TEST_CASE("a make is believed for its own claim only, in the claim's size") {
  Cluster cluster;
  Operation lie = told(Kind::kMake);
  SUBCASE("another size") { lie.size_bytes = 1; }
  SUBCASE("the volume of another claim") { lie.volume_name = "pvc-uid-b"; }
  SUBCASE("a volume that no claim can have") { lie.volume_name = "database"; }
  CHECK_FALSE(cluster.believes(lie));
}

TEST_CASE("the volume names its directory after its path has left the configuration") {
  Cluster cluster;
  cluster.base_paths = {"/other"};
  const auto made = [](const std::string& path) {
    return volume("pvc-uid-a")
        .host_path(path)
        .node("n1")
        .annotation("local.path.provisioner/selected-node", "n1");
  };
  for (const Kind kind : {Kind::kRemove, Kind::kResize}) {
    cluster.put(made("/data/pvc-uid-a_default_a"));
    CHECK(cluster.believes(told(kind)));
    CHECK(cluster.judged(told(kind)).at_home);
    Operation elsewhere = told(kind);
    elsewhere.node = "n2";
    CHECK_FALSE(cluster.believes(elsewhere));
    CHECK_FALSE(cluster.judged(elsewhere).at_home);
    cluster.put(made("/data/another"));
    CHECK_FALSE(cluster.believes(told(kind)));
  }
}

TEST_CASE("no node uses up the numbers of another node's attempts") {
  Cluster cluster;
  const auto most_of = [&](Operation told) {
    int most = 0;
    for (int bit = 1 << 30; bit > 0; bit /= 2) {
      told.attempt = most + bit;
      if (cluster.believes(told)) most += bit;
    }
    return most;
  };
  for (const bool has_clock : {true, false}) {
    CAPTURE(has_clock);
    if (!has_clock) cluster.now = {};
    cluster.put(claim("a").node("n1").request("1Gi"));
    Operation next = told(Kind::kMake);
    next.node = "n2";
    CHECK(most_of(next) >= 500'000);
    CHECK(most_of(next) < (1 << 30));
    // At home the next number and many after it are believed, under the next leader too.
    CHECK(most_of(next) + 100'000 < most_of(told(Kind::kMake)));
    if (!has_clock) continue;
    // The claim goes from a node that has said the most to another one.
    next.attempt = most_of(told(Kind::kMake)) + 1;
    cluster.put(claim("a").node("n2").request("1Gi"));
    CHECK_FALSE(cluster.believes(next));
    cluster.now += std::chrono::seconds(1);
    CHECK(cluster.believes(next));
    // Whatever name the claim is given.
    Operation elsewhere = told(Kind::kMake);
    elsewhere.claim.name = "nope";
    elsewhere.attempt = next.attempt;
    CHECK_FALSE(cluster.believes(elsewhere));
    // What the other one has made is heard when the claim is gone, too.
    cluster.claims.erase({"default", "a"});
    CHECK(cluster.believes(next));
    next.kind = Kind::kTakeBack;
    CHECK(cluster.believes(next));
  }
  // Of volumes, too, and of claims that are gone: what takes back has numbers as well.
  for (const Kind kind : {Kind::kTakeBack, Kind::kRemove, Kind::kResize}) {
    Operation many = told(kind);
    many.attempt = 1'000'000'000;
    CHECK_FALSE(cluster.believes(many));
  }
}

}  // namespace
}  // namespace lpp::provisioner::told_works
