// SPDX-License-Identifier: Apache-2.0
#include "cli/orphans.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli_bed.h"

using namespace lpp::testing;
using nlohmann::json;

namespace {

/// With one pod of the daemon that leads and one that does not.
struct OrphanCluster : CliBed {
  OrphanCluster() {
    std::vector<json> pods;
    for (const char* const name : {"leader", "standby"}) {
      json pod{{"metadata", {{"name", name}, {"namespace", "local-path-storage"}}},
               {"status", {{"phase", "Running"}}}};
      pod["spec"]["containers"] = json::array({{{"name", "main"},
                                                {"image", "local-path-provisioner:1"},
                                                {"command", {"local-path-provisioner", "start"}}}});
      pods.push_back(pod);
    }
    serve("/namespaces/local-path-storage/pods?", pods);
  }
  void answer(const std::string& pod, int status, const std::string& body) {
    transport->on("GET", "/namespaces/local-path-storage/pods/" + pod + "%3A8080/proxy/orphans")
        .always([status, body](const auto&) {
          return lpp::k8s::Response{
              .status = status, .body = body, .content_type = "application/json"};
        });
  }
  void answer_all(const json& leader) {
    answer("leader", 200, leader.dump());
    answer("standby", 200, R"({"orphans":[]})");
    serve_nothing_else();
  }
  json orphan(const std::string& node, const std::string& path, const std::string& why) const {
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(
        (clock.wall_now() - std::chrono::hours(50)).time_since_epoch());
    return {{"node", node},           {"path", path}, {"volume", "pvc-u"},
            {"claim", "web/data"},    {"uid", "u"},   {"size", 1U << 30U},
            {"since", since.count()}, {"why", why},   {"message", "lost"}};
  }
};

}  // namespace

TEST_CASE("volumes --orphans shows what the daemon knows, by node and path") {
  OrphanCluster cluster;
  json used = cluster.orphan("n1", "/data/b", "NoVolume");
  used["used"] = 1U << 20U;
  used["limit"] = 1U << 30U;
  json bare{{"node", "n1"}, {"path", "/data/a"}, {"why", "NoRecord"}};
  cluster.answer_all({{"orphans", {cluster.orphan("n2", "/data/c", "OtherCluster"), used, bare}}});
  const auto table = cluster.run({"volumes", "--orphans"});
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK(table.out ==
        R"(NODE   PATH      SIZE   USED   AGE    WHY            CLAIM
n1     /data/a   -      -      -      NoRecord       -
n1     /data/b   1Gi    1Mi    2d2h   NoVolume       web/data
n2     /data/c   1Gi    -      2d2h   OtherCluster   web/data
)");
  const auto wide = cluster.run({"volumes", "--orphans", "-o", "wide"});
  CHECK(wide.out.find("VOLUME") != std::string::npos);
  CHECK(wide.out.find("pvc-u    lost") != std::string::npos);
  CHECK(cluster.run({"volumes", "--orphans", "-o", "name"}).out ==
        "n1:/data/a\nn1:/data/b\nn2:/data/c\n");
  const json items = json::parse(cluster.run({"volumes", "--orphans", "-o", "json"}).out)["items"];
  REQUIRE(items.size() == 3);
  CHECK(items[1] == used);
}

TEST_CASE("volumes --orphans says that there are none, and what is not shown") {
  OrphanCluster cluster;
  cluster.answer_all({{"orphans", json::array()}, {"leftOut", {{"n1", 7}}}});
  const auto none = cluster.run({"volumes", "--orphans"});
  CHECK(none.code == 0);
  CHECK(none.out.empty());
  CHECK(none.err.find("7 more on node n1 are not shown") != std::string::npos);
  CHECK(none.err.find("No directories that are nobody's") != std::string::npos);
}

TEST_CASE("volumes --orphans needs an answer, and no names") {
  SUBCASE("it may not ask") {
    OrphanCluster cluster;
    cluster.answer("leader", 403, "{}");
    cluster.serve_nothing_else();
    const auto outcome = cluster.run({"volumes", "--orphans"});
    CHECK(outcome.code == 1);
    CHECK(outcome.err.find("pods/proxy") != std::string::npos);
  }
  SUBCASE("nobody answers") {
    OrphanCluster cluster;
    cluster.serve_nothing_else();
    CHECK(cluster.run({"volumes", "--orphans"}).code == 1);
  }
  SUBCASE("one of them answers") {
    OrphanCluster cluster;
    cluster.answer("leader", 500, "{}");
    cluster.answer("standby", 200, R"({"orphans":[]})");
    cluster.serve_nothing_else();
    CHECK(cluster.run({"volumes", "--orphans"}).code == 0);
  }
  SUBCASE("names and namespaces") {
    OrphanCluster cluster;
    cluster.serve_nothing_else();
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"data"}, {"-A"}, {"-n", "web"}}) {
      std::vector<std::string> arguments{"volumes", "--orphans"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      CHECK(cluster.run(arguments).code == 2);
    }
  }
}

TEST_CASE("of a page of orphans what cannot be read is left out") {
  const auto orphans_in = [](const char* text) {
    lpp::cli::Orphans all;
    lpp::cli::add_orphans(json::parse(text), all);
    return all.listed;
  };
  for (const char* const text :
       {"{}", "[]", R"({"orphans":7})", R"({"orphans":[7,{},{"node":"n"},{"path":"/x"}]})"}) {
    CHECK(orphans_in(text).empty());
  }
  const auto rows = orphans_in(
      R"({"orphans":[{"node":"n","path":"/x","size":-1,"used":"much","limit":-1,"since":99999999999999999}]})");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].size == 0);
  CHECK_FALSE(rows[0].used.has_value());
  CHECK(rows[0].claim.name.empty());
}
