// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli_bed.h"
#include "fakes/builders.h"

namespace lpp::cli::release_command {

using namespace lpp::testing;
using lpp::testing::node;  // not the namespace

namespace {

using lpp::k8s::Response;
using nlohmann::json;

constexpr const char* kConfig = R"({"nodePathMap": [{"node": "n1", "paths": ["/opt/a"]}]})";
constexpr const char* kMark = "local.path.provisioner/node-lost";

/// Node n3 was deleted; n1 and n2 are there.
struct Cluster : CliBed {
  Cluster() {
    serve("/storageclasses", {storage_class().json()});
    serve("/persistentvolumeclaims?",
          {claim("data").volume("pvc-1").resource_version("5").json(),
           claim("kept").volume("pvc-2").json(), claim("going").volume("pvc-3").deleting().json(),
           claim("elsewhere").volume("pvc-4").json(), claim("moved").volume("pvc-5").json(),
           claim("shared").volume("pvc-6").json()});
    serve("/persistentvolumes?",
          {bound("pvc-1", "data").resource_version("7").json(),
           bound("pvc-2", "kept").reclaim_policy("Retain").json(), bound("pvc-3", "going").json(),
           volume("pvc-4").claim("default", "elsewhere").phase("Bound").node("n1").json(),
           bound("pvc-5", "moved").node("n2").json(),
           volume("pvc-6")
               .claim("default", "shared")
               .phase("Bound")
               .annotation("local.path.provisioner/selected-node", "n3")
               .json()});
    serve_nodes({node("n1"), node("n2")});
    transport->on("GET", "/configmaps/local-path-config").always([](const auto&) {
      return answer(200, config_map("local-path-config").data("config.json", kConfig).json());
    });
    transport->on("PATCH", "/persistentvolumes/").always([](const auto&) {
      return answer(200, json::object());
    });
    transport->on("POST", "/events").always([this](const auto& request) {
      events.push_back(json::parse(request.body));
      return answer(201, events.back());
    });
  }
  static VolumeBuilder bound(const std::string& name, const std::string& claim) {
    return volume(name)
        .claim("default", claim)
        .phase("Bound")
        .annotation("local.path.provisioner/selected-node", "n3")
        .node("n3");
  }
  static Response answer(int status, const json& body) {
    return {.status = status, .body = body.dump(), .content_type = "application/json"};
  }
  void serve_nodes(const std::vector<NodeBuilder>& nodes) {
    std::vector<json> objects;
    for (const auto& one : nodes) objects.push_back(one.json());
    serve("/nodes?", objects);
  }
  void deletes(int status, const std::string& reason = "") {
    transport->on("DELETE", "/persistentvolumeclaims/").always([=](const auto&) {
      return answer(status, {{"kind", "Status"}, {"reason", reason}, {"code", status}});
    });
  }
  CliBed::Outcome release(std::vector<std::string> flags, const std::string& node = "n3") {
    serve_nothing_else();
    flags.insert(flags.begin(), {"release", "--node", node});
    return run(flags);
  }
  std::vector<lpp::k8s::Request> writes() const {
    auto all = transport->requests();
    std::erase_if(all, [](const auto& one) { return one.method == "GET"; });
    return all;
  }
  static std::string action_of(const json& out, const std::string& claim) {
    for (const json& item : out["items"]) {
      if (item["claim"] == claim) return item["action"];
    }
    return "not there";
  }

  std::vector<json> events{};
};

}  // namespace

TEST_CASE(
    "release --dry-run shows the claims of the node and what would happen, and does nothing") {
  Cluster cluster;
  const auto outcome = cluster.release({"--dry-run"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("default/data") != std::string::npos);
  CHECK(outcome.out.find("the volume goes, its directory stays on the node's disk") !=
        std::string::npos);
  CHECK(outcome.out.find("the volume stays Released") != std::string::npos);
  CHECK(outcome.out.find("elsewhere") == std::string::npos);
  CHECK(cluster.writes().empty());
  const auto out = json::parse(cluster.release({"--dry-run", "-o", "json"}).out);
  CHECK(out["dryRun"] == true);
  CHECK(Cluster::action_of(out, "data") == "delete");
  CHECK(Cluster::action_of(out, "kept") == "delete");
  CHECK(Cluster::action_of(out, "going") == "kept");
  CHECK(Cluster::action_of(out, "moved") == "kept");   // its label leads to n2
  CHECK(Cluster::action_of(out, "shared") == "kept");  // on a filesystem of all nodes
}

TEST_CASE(
    "release marks each volume and deletes its claim, as they were seen, and tells it on both") {
  Cluster cluster;
  cluster.deletes(200);
  const auto outcome = cluster.release({"-o", "json"});
  CHECK(outcome.code == 0);
  const auto out = json::parse(outcome.out);
  CHECK(out["dryRun"] == false);
  CHECK(Cluster::action_of(out, "data") == "deleted");
  CHECK(Cluster::action_of(out, "kept") == "deleted");
  auto writes = cluster.writes();
  std::erase_if(writes, [](const auto& one) { return one.method == "POST"; });
  REQUIRE(writes.size() == 4);
  const json mark = json::parse(writes[0].body);
  CHECK(writes[0].target.find("/persistentvolumes/pvc-1") != std::string::npos);
  CHECK(mark["metadata"]["annotations"][kMark] == "uid-data");
  CHECK(mark["metadata"]["resourceVersion"] == "7");
  CHECK(writes[1].target.find("/persistentvolumeclaims/data") != std::string::npos);
  CHECK(json::parse(writes[1].body)["preconditions"]["resourceVersion"] == "5");
  CHECK(json::parse(writes[1].body)["preconditions"]["uid"] == "uid-data");
  REQUIRE(cluster.events.size() == 4);
  CHECK(cluster.events[0]["involvedObject"]["name"] == "data");
  CHECK(cluster.events[0]["type"] == "Warning");
  CHECK(cluster.events[0]["reason"] == "ClaimReleased");
  CHECK(cluster.events[1]["involvedObject"]["name"] == "pvc-1");
}

TEST_CASE("on a terminal release does nothing without --yes, and says so") {
  Cluster cluster;
  cluster.deletes(200);
  cluster.terminal.progress = true;
  const auto asked = cluster.release({});
  CHECK(asked.code == 2);
  CHECK(asked.err.find("2 claims would be deleted, nothing was done: say it with --yes") !=
        std::string::npos);
  CHECK(asked.out.find("default/data") != std::string::npos);
  CHECK(cluster.writes().empty());
  CHECK(cluster.release({"--yes"}).code == 0);
  CHECK_FALSE(cluster.writes().empty());
}

TEST_CASE("release refuses a node that is registered, and one that it cannot know to be gone") {
  Cluster cluster;
  SUBCASE("it is there") {
    const auto outcome = cluster.release({}, "n1");
    CHECK(outcome.code == 1);
    CHECK(outcome.err.find("node n1 is registered") != std::string::npos);
  }
  SUBCASE("the nodes cannot be listed") {
    Cluster blind;
    blind.transport = std::make_shared<FakeTransport>();
    blind.transport->on("GET", "/nodes?").always([](const auto&) {
      return Cluster::answer(403, {{"kind", "Status"}, {"reason", "Forbidden"}, {"code", 403}});
    });
    blind.serve("/storageclasses", {});
    blind.transport->on("GET", "/configmaps/").always([](const auto&) {
      return Cluster::answer(200,
                             config_map("local-path-config").data("config.json", kConfig).json());
    });
    const auto outcome = blind.release({});
    CHECK(outcome.code == 1);
    CHECK(outcome.err.find("list nodes") != std::string::npos);
  }
  SUBCASE("which paths are shared is not known") {
    Cluster unknown;
    unknown.transport = std::make_shared<FakeTransport>();
    const auto outcome = unknown.release({});
    CHECK(outcome.code == 1);
    CHECK(outcome.err.find("which paths all nodes share") != std::string::npos);
  }
  CHECK(cluster.writes().empty());
}

TEST_CASE("release says what failed, goes on with the others and ends with 1") {
  Cluster cluster;
  cluster.transport->on("DELETE", "/persistentvolumeclaims/data").always([](const auto&) {
    return Cluster::answer(409, {{"kind", "Status"}, {"reason", "Conflict"}, {"code", 409}});
  });
  cluster.deletes(200);
  const auto outcome = cluster.release({"-o", "json"});
  CHECK(outcome.code == 1);
  const auto out = json::parse(outcome.out);
  CHECK(Cluster::action_of(out, "data") == "failed");
  CHECK(Cluster::action_of(out, "kept") == "deleted");
}

TEST_CASE("a node that is registered while release works keeps the claims that are left") {
  Cluster cluster;
  cluster.deletes(200);
  cluster.transport->on("GET", "/nodes/n3").always([](const auto&) {
    return Cluster::answer(200, node("n3").json());
  });
  const auto outcome = cluster.release({"-o", "json"});
  CHECK(outcome.code == 1);
  CHECK(cluster.writes().empty());
  CHECK(outcome.out.find("registered again") != std::string::npos);
}

TEST_CASE("release needs a node's name") {
  Cluster cluster;
  const auto outcome = cluster.run({"release"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("--node NAME") != std::string::npos);
}

TEST_CASE("release of a node that no volume names has nothing to do") {
  Cluster cluster;
  const auto outcome = cluster.release({}, "n9");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("No volume") != std::string::npos);
  CHECK(cluster.writes().empty());
}

}  // namespace lpp::cli::release_command
