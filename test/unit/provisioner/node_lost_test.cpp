// SPDX-License-Identifier: Apache-2.0
// What is asked and written when the claim of a lost node is let go.

#include "provisioner/node_lost.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/decision_scene.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::node_lost {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::bound_volume;
using testing::claim;

constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";

/// Volume v of claim a on node n3, which the cache does not show, and of a class that lets it go.
struct Bed : testing::Scene {
  Bed() {
    put(testing::storage_class().parameter("onNodeLost", "release"));
    put(claim("a").volume("v").resource_version("3"));
    put(volume());
    transport.on("GET", "/api/v1/nodes").always([this](const auto& request) {
      if (request.target.find("/nodes/n3") != std::string::npos) {
        return k8s::Response{.status = node_status, .body = testing::node("n3").json().dump()};
      }
      const bool second = request.target.find("continue=more") != std::string::npos;
      return k8s::Response{.status = second ? second_page_status : 200,
                           .body = nodes_page(second),
                           .content_type = kJson};
    });
  }
  static testing::VolumeBuilder volume() {
    return bound_volume().phase("Bound").node("n3").resource_version("7");
  }
  static testing::VolumeBuilder marked() {
    return volume().annotation(std::string(kVolumeNodeLost), "uid-a").resource_version("8");
  }
  std::string nodes_page(bool second) const {
    json page{{"items", json::array()}, {"metadata", json::object()}};
    const auto& all = second ? second_page : api_nodes;
    for (const auto& one : all) page["items"].push_back(one.json());
    if (!second && !second_page.empty()) page["metadata"]["continue"] = "more";
    return page.dump();
  }
  Action step() { return reconciler.step("v"); }
  /// Until the grace period is over.
  Action later() {
    (void)step();
    clock.advance(minutes(5));
    return step();
  }
  std::vector<std::string> written() const {
    std::vector<std::string> lines;
    for (const auto& request : transport.requests()) {
      if (request.method != "GET") lines.push_back(request.method + " " + request.target);
    }
    return lines;
  }
  std::size_t lists() const {
    const auto all = transport.requests();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& request) {
      return request.target.find("/nodes") != std::string::npos;
    }));
  }
  std::uint64_t counted(const std::string& result) const {
    std::uint64_t count = 0;
    for (const auto* entry : figures.totals().claims_released.entries()) {
      if (entry->first[0] == "local-path" && entry->first[1] == result)
        count = entry->second.load();
    }
    return count;
  }

  std::vector<testing::NodeBuilder> api_nodes{testing::node("n1"), testing::node("n2")};
  int node_status = 200;  // of n3, asked for by its name
  std::vector<testing::NodeBuilder> second_page{};
  int second_page_status = 200;
  testing::FakeTransport::Script& patch = transport.on("PATCH", "/persistentvolumes/v");
  testing::FakeTransport::Script& keep = transport.on("PATCH", "/persistentvolumeclaims/a");
  testing::FakeTransport::Script& volume_reads = transport.on("GET", "/persistentvolumes/v");
  testing::FakeTransport::Script& remove = transport.on("DELETE", "/persistentvolumeclaims/a");
  VolumeReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("a volume is on none of the nodes only if neither a label nor a name leads to one") {
  k8s::StoreWriter<k8s::Node> nodes;
  const auto add = [&](const testing::NodeBuilder& b) {
    nodes.put({"", b.build().meta.name}, b.shared());
  };
  const auto volume = Bed::volume().build();
  CHECK_FALSE(is_on_none_of(volume, nodes));  // no nodes at all: that is no answer
  add(testing::node("n1"));
  CHECK(is_on_none_of(volume, nodes));
  CHECK_FALSE(is_on_none_of(testing::volume("v").host_path("/data/v").build(), nodes));  // any
  SUBCASE("its label") { add(testing::node("x").label("kubernetes.io/hostname", "n3")); }
  SUBCASE("its name, whatever its label says") {
    add(testing::node("n3").label("kubernetes.io/hostname", "other"));
  }
  CHECK_FALSE(is_on_none_of(volume, nodes));
}

TEST_CASE("what is going to happen is told on claim and volume, and nothing is written yet") {
  Bed bed;
  CHECK(bed.step() == Action::await_change(minutes(5)));
  CHECK(bed.written().empty());
  CHECK(bed.lists() == 1);
  CHECK(bed.has_event("PersistentVolumeClaim/a Warning NodeLost: node n3 was deleted"));
  CHECK(bed.has_event("PersistentVolume/v Warning NodeLost: node n3 was deleted"));
  (void)bed.step();
  CHECK(bed.lists() == 1);
  CHECK(bed.events.lines.size() == 2);
}

TEST_CASE(
    "after the grace period the volume is marked and then the claim deleted, as both were seen") {
  Bed bed;
  bed.patch.reply(200);
  bed.remove.reply(200);
  (void)bed.later();
  CHECK(bed.written() ==
        std::vector<std::string>{"PATCH /api/v1/persistentvolumes/v",
                                 "DELETE /api/v1/namespaces/default/persistentvolumeclaims/a"});
  CHECK(bed.lists() == 2);  // once more, after the grace period
  const auto all = bed.transport.requests();
  const json mark = json::parse(all[all.size() - 2].body);
  CHECK(mark["metadata"]["annotations"]["local.path.provisioner/node-lost"] == "uid-a");
  CHECK(mark["metadata"]["resourceVersion"] == "7");
  CHECK(mark["metadata"]["uid"] == "uid-v");
  const json preconditions = json::parse(all.back().body)["preconditions"];
  CHECK(preconditions["uid"] == "uid-a");
  CHECK(preconditions["resourceVersion"] == "3");
  CHECK(bed.has_event("PersistentVolumeClaim/a Warning ClaimReleased: node n3 was deleted"));
  CHECK(bed.has_event("PersistentVolume/v Warning ClaimReleased: node n3 was deleted"));
  CHECK(bed.counted("released") == 1);
}

TEST_CASE("a volume that was marked before is another version before its claim is deleted") {
  Bed bed;
  bed.put(Bed::marked());
  bed.patch.reply(200);
  bed.remove.reply(200);
  (void)bed.later();
  REQUIRE(bed.written().size() == 2);
  CHECK(bed.written().back() == "DELETE /api/v1/namespaces/default/persistentvolumeclaims/a");
  const auto all = bed.transport.requests();
  const json mark = json::parse(all[all.size() - 2].body)["metadata"];
  CHECK(mark["resourceVersion"] == "8");
  CHECK(mark["annotations"]["local.path.provisioner/node-lost"] == "uid-a");
  CHECK(mark["annotations"].contains("local.path.provisioner/node-lost-at"));
}

TEST_CASE("no claim is deleted by a mark of others that only the cache shows") {
  Bed bed;
  bed.put(Bed::marked());
  bed.patch.reply(409, kConflict);  // it was taken off, the watch is behind
  CHECK(bed.later() == Action::await_change(seconds(1)));
  CHECK(bed.written() == std::vector<std::string>{"PATCH /api/v1/persistentvolumes/v"});
}

TEST_CASE("no claim is deleted by a mark of our own that only the cache shows") {
  Bed bed;
  bed.patch.reply(200);
  bed.remove.reply(500);
  (void)bed.later();
  bed.put(Bed::marked());
  SUBCASE("it was taken off since") { bed.volume_reads.reply(200, Bed::volume().json().dump()); }
  SUBCASE("it is of another volume") {
    bed.volume_reads.reply(200, Bed::marked().uid("another").json().dump());
  }
  SUBCASE("the volume is gone") { bed.volume_reads.reply(404); }
  CHECK(bed.step() == Action::await_change(seconds(1)));
  CHECK(bed.written().size() == 2);
}

TEST_CASE("a claim that must not be deleted makes no other version of its volume each time") {
  Bed bed;
  bed.patch.reply(200);
  bed.remove.always([](const auto&) { return k8s::Response{.status = 403}; });
  (void)bed.later();
  bed.put(Bed::marked());
  bed.volume_reads.always([](const auto&) {
    return k8s::Response{.status = 200, .body = Bed::marked().json().dump()};
  });
  for (int i = 0; i < 3; ++i) CHECK(bed.step() == Action::retry());
  const auto lines = bed.written();
  CHECK(std::count(lines.begin(), lines.end(), "PATCH /api/v1/persistentvolumes/v") == 1);
}

TEST_CASE("a node that goes again is waited for anew, whatever became of taking the mark off") {
  Bed bed;
  bed.put(Bed::marked());
  bed.patch.reply(200);
  bed.remove.reply(500);
  (void)bed.later();
  const std::size_t before = bed.written().size();
  bed.put(testing::node("n3"));
  bed.api_shows(claim("a").volume("v"));
  bed.keep.reply(200);
  SUBCASE("no answer") { bed.patch.reply(503); }
  SUBCASE("another version") { bed.patch.reply(409, kConflict); }
  (void)bed.step();
  CHECK(bed.written().size() == before + 2);
  bed.nodes.erase({"", "n3"});
  CHECK(bed.step() == Action::await_change(minutes(5)));
  CHECK(bed.written().size() == before + 2);
}

TEST_CASE("a mark that must not be taken off is told as what it is") {
  Bed bed;
  bed.put(Bed::marked());
  bed.put(testing::node("n3"));
  bed.api_shows(claim("a").volume("v"));
  const char* const no = R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})";
  SUBCASE("the claim") { bed.keep.reply(403, no); }
  SUBCASE("the volume") {
    bed.keep.reply(200);
    bed.patch.reply(403, no);
  }
  CHECK(bed.step() == Action::retry());
  CHECK(bed.has_event("PersistentVolumeClaim/a Warning ClaimReleaseFailed: the node is back"));
  CHECK_FALSE(bed.has_event("node-lost.yaml"));
  CHECK(bed.counted("keep_failed") == 1);
  CHECK(bed.counted("forbidden") == 0);
}

TEST_CASE("a former claim's mark that must not be taken off is not said to keep anything") {
  Bed bed;
  bed.put(Bed::marked().annotation("local.path.provisioner/node-lost", "another-uid"));
  bed.patch.reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})");
  bed.keep.reply(200);
  bed.api_shows(claim("a").volume("v"));
  CHECK(bed.step() == Action::retry());
  CHECK(bed.has_event("ClaimReleaseFailed: the annotation"));
  CHECK(bed.has_event("it keeps nothing"));
  CHECK_FALSE(bed.has_event("nothing removes"));
}

TEST_CASE("the API server's nodes count, whatever the cache shows") {
  Bed bed;
  SUBCASE("the node is there by its name") { bed.api_nodes.push_back(testing::node("n3")); }
  SUBCASE("it has another name, and its label is the volume's") {
    bed.api_nodes.push_back(testing::node("renamed").label("kubernetes.io/hostname", "n3"));
  }
  SUBCASE("it stands on a later page") { bed.second_page = {testing::node("n3")}; }
  SUBCASE("there is no node at all") { bed.api_nodes.clear(); }
  CHECK(bed.step() == Action::await_change(seconds(1)));
  CHECK(bed.events.lines.empty());
  CHECK(bed.written().empty());
}

TEST_CASE("a node that only the API server knows to be back after the grace period stops it") {
  Bed bed;
  (void)bed.step();
  bed.clock.advance(minutes(5));
  bed.api_nodes.push_back(testing::node("n3"));
  (void)bed.step();
  CHECK(bed.written().empty());
}

TEST_CASE("a list of nodes that ends early says nothing") {
  Bed bed;
  bed.second_page = {testing::node("n4")};
  bed.second_page_status = 500;
  CHECK(bed.step() == Action::retry());
  CHECK(bed.written().empty());
  CHECK_FALSE(bed.has_event("NodeLost"));
}

TEST_CASE("a node that comes back in the cache begins the grace period anew") {
  Bed bed;
  (void)bed.step();
  bed.clock.advance(minutes(4));
  bed.put(testing::node("n3"));
  CHECK(bed.step() == Action::done());
  bed.nodes.erase({"", "n3"});
  CHECK(bed.step() == Action::await_change(minutes(5)));
  CHECK(bed.written().empty());
}

TEST_CASE("a claim that is not the one that was seen is left alone") {
  Bed bed;
  SUBCASE("it was made again") { bed.api_shows(claim("a").uid("another").volume("v")); }
  SUBCASE("it is bound elsewhere") { bed.api_shows(claim("a").volume("w")); }
  SUBCASE("it is on its way out") { bed.api_shows(claim("a").volume("v").deleting()); }
  SUBCASE("it is gone") { bed.api_shows_no_claim(); }
  (void)bed.later();
  CHECK(bed.written().empty());
}

TEST_CASE("what somebody has changed meanwhile is looked at again") {
  Bed bed;
  SUBCASE("the volume") { bed.patch.reply(409, kConflict); }
  SUBCASE("the claim") {
    bed.patch.reply(200);
    bed.remove.reply(409, kConflict);
  }
  CHECK(bed.later() == Action::await_change(seconds(1)));
  CHECK_FALSE(bed.has_event("ClaimReleased"));
  CHECK_FALSE(bed.has_event("ClaimReleaseFailed"));
  CHECK(bed.counted("released") == 0);
}

TEST_CASE("a right that is missing is told with what gives it") {
  Bed bed;
  bed.patch.reply(200);
  bed.remove.reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})");
  CHECK(bed.later() == Action::retry());
  CHECK(bed.has_event("PersistentVolumeClaim/a Warning ClaimReleaseFailed"));
  CHECK(bed.has_event("PersistentVolume/v Warning ClaimReleaseFailed"));
  CHECK(bed.has_event("deploy/node-lost.yaml"));
  CHECK(bed.counted("forbidden") == 1);
}

TEST_CASE("what heals by itself is tried again without an Event") {
  Bed bed;
  SUBCASE("the list") {
    (void)bed.step();
    bed.clock.advance(minutes(5));
    bed.claim_reads.reply(503);
    CHECK(bed.step() == Action::retry());
  }
  SUBCASE("the mark") {
    bed.patch.reply(500);
    CHECK(bed.later() == Action::retry());
  }
  SUBCASE("the deletion") {
    bed.patch.reply(200);
    bed.remove.reply(500);
    CHECK(bed.later() == Action::retry());
  }
  CHECK(bed.counted("failed") == 1);
  CHECK_FALSE(bed.has_event("ClaimReleaseFailed"));
}

TEST_CASE("the mark comes off, as it was seen, when the node is back before the claim went") {
  Bed bed;
  bed.put(Bed::marked());
  bed.put(testing::node("n3"));
  bed.api_shows(claim("a").volume("v"));
  bed.keep.reply(200);
  bed.patch.reply(200);
  (void)bed.step();
  const json patch = json::parse(bed.transport.requests().back().body);
  CHECK(patch["metadata"]["annotations"]["local.path.provisioner/node-lost"].is_null());
  CHECK(patch["metadata"]["resourceVersion"] == "8");
  CHECK(bed.counted("node_back") == 1);
}

TEST_CASE("before the mark comes off the claim is another version than a deletion may ask for") {
  Bed bed;
  bed.put(Bed::marked());
  bed.put(testing::node("n3"));
  bed.api_shows(claim("a").volume("v"));
  bed.keep.reply(200);
  (void)bed.step();
  REQUIRE(bed.written().size() == 2);
  CHECK(bed.written().front() == "PATCH /api/v1/namespaces/default/persistentvolumeclaims/a");
  const auto& requests = bed.transport.requests();
  const json patch = json::parse(requests[requests.size() - 2].body);
  CHECK(patch["metadata"]["resourceVersion"] == claim("a").build().meta.resource_version);
  CHECK(patch["metadata"]["annotations"].contains("local.path.provisioner/kept"));
}

TEST_CASE("the mark stays when a deletion of the claim may be on its way") {
  Bed bed;
  bed.put(Bed::marked());
  bed.put(testing::node("n3"));
  bed.api_shows(claim("a").volume("v"));
  SUBCASE("it came right before") { bed.keep.reply(404); }
  SUBCASE("the claim has changed") { bed.keep.reply(409, kConflict); }
  SUBCASE("nobody knows") { bed.keep.reply(503); }
  (void)bed.step();
  CHECK(bed.written().size() == 1);
  CHECK(bed.counted("node_back") == 0);
}

TEST_CASE("the mark stays when only the caches say that the node is back and the claim stays") {
  Bed bed;
  bed.put(Bed::marked());
  bed.put(testing::node("n3"));
  bed.api_shows(claim("a").volume("v"));
  SUBCASE("its claim is on its way out") { bed.api_shows(claim("a").volume("v").deleting()); }
  SUBCASE("its claim is gone") { bed.api_shows_no_claim(); }
  SUBCASE("its claim was made again") { bed.api_shows(claim("a").uid("another").volume("v")); }
  SUBCASE("its node is gone") { bed.node_status = 404; }
  SUBCASE("nobody says whether its node is there") { bed.node_status = 500; }
  (void)bed.step();
  CHECK(bed.written().empty());
  CHECK(bed.counted("node_back") == 0);
}

TEST_CASE("a volume that was let go keeps its directory though its node is back, and goes") {
  Bed bed;
  bed.put(testing::node("n3"));
  bed.claims.erase({"default", "a"});
  bed.put(Bed::marked().released());
  (void)bed.step();
  CHECK(bed.executor.started.empty());
  CHECK(bed.has_event("PersistentVolume/v Warning DirectoryKept: its claim was let go"));
  REQUIRE_FALSE(bed.written().empty());
  CHECK(bed.written().front() == "DELETE /api/v1/persistentvolumes/v");
}

TEST_CASE("volumes of one node that are due together share a list of the nodes") {
  Bed bed;
  bed.put(claim("b").volume("w").resource_version("4"));
  bed.put(testing::volume("w")
              .claim("default", "b")
              .phase("Bound")
              .node("n3")
              .finalizer(std::string(kFinalizer)));
  auto& patches = bed.transport.on("PATCH", "/persistentvolumes/w");
  auto& removes = bed.transport.on("DELETE", "/persistentvolumeclaims/b");
  patches.reply(200);
  removes.reply(200);
  bed.patch.reply(200);
  bed.remove.reply(200);
  (void)bed.step();
  (void)bed.reconciler.step("w");
  CHECK(bed.lists() == 1);
  bed.clock.advance(minutes(5));
  (void)bed.step();
  (void)bed.reconciler.step("w");
  CHECK(bed.lists() == 2);
  CHECK(bed.counted("released") == 2);
}

TEST_CASE("a list from before the grace period ended does not count") {
  Bed bed;
  NodeCensus census;
  const auto first = census.ask(bed.client, bed.clock, {});
  REQUIRE(first.ok());
  bed.clock.advance(seconds(1));
  const auto again = census.ask(bed.client, bed.clock, bed.clock.now() - seconds(1));
  CHECK(*again == *first);
  const auto later = census.ask(bed.client, bed.clock, bed.clock.now());
  CHECK(*later != *first);
  bed.clock.advance(seconds(3));
  CHECK(*census.ask(bed.client, bed.clock, {}) != *later);
}

}  // namespace lpp::provisioner::node_lost
