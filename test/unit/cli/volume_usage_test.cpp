// SPDX-License-Identifier: Apache-2.0
#include "cli/volume_usage.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli_bed.h"
#include "fakes/builders.h"

namespace lpp::cli::volume_usage_cases {

using namespace lpp;
using namespace lpp::cli;
using namespace lpp::testing;
using lpp::testing::node;  // not the namespace

namespace {

using nlohmann::json;

json stats(const std::string& ns, const std::string& claim, std::uint64_t used) {
  return {{"pvcRef", {{"namespace", ns}, {"name", claim}}},
          {"usedBytes", used},
          {"capacityBytes", 1U << 30U},
          {"inodesUsed", 12},
          {"inodes", 1000}};
}

json summary_of(std::vector<json> volumes) {
  return {{"pods", json::array({{{"volume", json::array()}}, {{"volume", std::move(volumes)}}})}};
}

/// Two volumes with a limit, on two nodes, and one without.
struct LimitedCluster : CliBed {
  LimitedCluster() {
    serve("/storageclasses", {storage_class().json()});
    serve("/persistentvolumeclaims?", {claim("data").volume("pvc-1").node("n1").json(),
                                       claim("logs").volume("pvc-2").node("n2").json(),
                                       claim("free").volume("pvc-3").node("n1").json()});
    const auto bound = [](const std::string& name, const std::string& claim_name,
                          const std::string& node_name) {
      return volume(name)
          .claim("default", claim_name)
          .annotation("local.path.provisioner/selected-node", node_name)
          .node(node_name);
    };
    serve("/persistentvolumes?",
          {bound("pvc-1", "data", "n1").annotation("local.path.provisioner/quota", "hard").json(),
           bound("pvc-2", "logs", "n2").annotation("local.path.provisioner/quota", "hard").json(),
           bound("pvc-3", "free", "n1").json()});
    serve("/nodes?", {node("n1").json(), node("n2").json()});
  }
  void answer(const std::string& name, int status, const std::string& body) {
    transport->on("GET", "/nodes/" + name + "/proxy/stats/summary").always([=](const auto&) {
      return k8s::Response{.status = status, .body = body, .content_type = "application/json"};
    });
  }
};

}  // namespace

TEST_CASE("volumes with a limit show how full they are, as their own nodes tell") {
  LimitedCluster cluster;
  const std::uint64_t used = std::uint64_t{972} << 20U;
  cluster.answer("n1", 200,
                 summary_of({stats("default", "data", used), stats("default", "free", 7),
                             stats("default", "logs", 1)})
                     .dump());
  cluster.answer("n2", 200, summary_of({}).dump());
  cluster.serve_nothing_else();
  const auto table = cluster.run({"volumes", "-o", "wide"});
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK(table.out.find("SIZE   USED    USE%   INODES    PHASE") != std::string::npos);
  CHECK(table.out.find("1Gi    972Mi   95%    12/1000   Bound") != std::string::npos);
  CHECK(table.out.find("1Gi    -       -      -         Bound") != std::string::npos);

  const auto narrow = cluster.run({"volumes"}).out;
  CHECK(narrow.find("SIZE   USED    USE%   INODES    PHASE") != std::string::npos);
  CHECK(narrow.find("1Gi    972Mi   95%    12/1000   Bound") != std::string::npos);
  CHECK(narrow.find("VOLUME") == std::string::npos);

  const auto listed = json::parse(cluster.run({"volumes", "-o", "json"}).out);
  REQUIRE(listed["items"].size() == 3);
  CHECK(listed["items"][0]["usage"] == json{{"usedBytes", used},
                                            {"capacityBytes", 1U << 30U},
                                            {"usedInodes", 12},
                                            {"inodes", 1000}});
  CHECK_FALSE(listed["items"][1].contains("usage"));
  CHECK_FALSE(listed["items"][2].contains("usage"));
  const auto one = cluster.run({"volumes", "data"});
  CHECK(one.out.find("1Gi, enforced") != std::string::npos);
  CHECK(one.out.find("972Mi (95%), 12 inodes") != std::string::npos);
}

TEST_CASE("a kubelet that does not answer, or may not be asked, costs a note") {
  LimitedCluster cluster;
  cluster.answer("n1", 403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})");
  cluster.answer("n2", 200, std::string(100, '['));
  cluster.serve_nothing_else();
  const auto outcome = cluster.run({"volumes"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("USED") != std::string::npos);
  CHECK(outcome.err.find("needs the permission to get nodes/proxy") != std::string::npos);
  CHECK(outcome.err.find("node n2") != std::string::npos);
}

namespace {

/// With a pod of the daemon, at that port, that answers.
struct DaemonCluster : LimitedCluster {
  explicit DaemonCluster(const std::string& phase = "Running") {
    json pod{{"metadata", {{"name", "daemon-1"}, {"namespace", "local-path-storage"}}},
             {"status", {{"phase", phase}}}};
    pod["spec"]["containers"] =
        json::array({{{"name", "sidecar"}, {"image", "other"}, {"command", {"run"}}},
                     {{"name", "main"},
                      {"image", "local-path-provisioner:1"},
                      {"command", {"local-path-provisioner", "start"}},
                      {"ports", json::array({{{"name", "health"}, {"containerPort", 8081}}})}}});
    serve("/namespaces/local-path-storage/pods?", {pod});
    answer("n2", 200, summary_of({}).dump());
  }
  void daemon(int status, const std::string& body) {
    transport->on("GET", "/namespaces/local-path-storage/pods/daemon-1%3A8081/proxy/usage")
        .always([this, status, body](const auto&) {
          ++asked;
          return k8s::Response{.status = status, .body = body, .content_type = "application/json"};
        });
  }
  int asked = 0;
};

json told(const std::string& volume_name, std::uint64_t used) {
  return {{"volume", volume_name},
          {"node", "n1"},
          {"usedBytes", used},
          {"capacityBytes", 1U << 30U},
          {"inodesUsed", 7}};
}

}  // namespace

TEST_CASE("of volumes that no pod uses the daemon knows how full they are") {
  DaemonCluster cluster;
  const std::uint64_t used = std::uint64_t{972} << 20U;
  json btrfs = told("pvc-3", 1U << 20U);  // given its limit by hand
  btrfs.erase("inodesUsed");
  cluster.daemon(
      200, json{{"volumes", json::array({told("pvc-1", used), btrfs, told("gone", 1)})}}.dump());
  cluster.answer("n1", 403, "{}");  // nothing is left to ask of it
  cluster.serve_nothing_else();
  const auto table = cluster.run({"volumes", "-o", "wide"});
  CHECK(table.code == 0);
  CHECK(table.err.empty());
  CHECK(table.out.find("1Gi    972Mi   95%    7        Bound") != std::string::npos);
  CHECK(table.out.find("1Gi    1Mi     0%     -        Bound") != std::string::npos);
  CHECK(table.out.find("1Gi    -       -      -        Bound") != std::string::npos);
  CHECK(cluster.run({"volumes", "data"}).out.find("972Mi (95%), 7 inodes") != std::string::npos);
  const auto by_hand = cluster.run({"volumes", "free"}).out;
  CHECK(by_hand.find("1Mi (0%)\n") != std::string::npos);
}

TEST_CASE("what a helper pod has told is shown where the kubelet knows nothing newer") {
  DaemonCluster cluster;
  json data = told("pvc-1", 7U << 20U);
  data["toldAt"] = "2024-05-06T07:08:09Z";
  json logs = told("pvc-2", 8U << 20U);
  logs["node"] = "n2";
  logs["toldAt"] = "2024-05-06T07:08:09Z";
  cluster.daemon(200, json{{"volumes", json::array({data, logs})}}.dump());
  cluster.answer("n1", 200, summary_of({stats("default", "data", 972U << 20U)}).dump());
  cluster.serve_nothing_else();
  const auto listed = json::parse(cluster.run({"volumes", "-o", "json"}).out)["items"];
  REQUIRE(listed.size() == 3);
  CHECK(listed[0]["usage"]["usedBytes"] == 972U << 20U);
  CHECK_FALSE(listed[0]["usage"].contains("toldAt"));
  CHECK(listed[2]["usage"]["usedBytes"] == 8U << 20U);
  CHECK(listed[2]["usage"]["toldAt"] == "2024-05-06T07:08:09Z");
}

TEST_CASE("of a limit by hand the kubelet is asked when only a helper pod has told of it") {
  DaemonCluster cluster;
  json told_of = told("pvc-3", 7U << 20U);
  told_of["toldAt"] = "2024-05-06T07:08:09Z";
  cluster.daemon(200, json{{"volumes", json::array({told_of})}}.dump());
  const auto unlimited = stats("default", "data", 5U << 20U);
  cluster.answer("n1", 200, summary_of({stats("default", "free", 972U << 20U), unlimited}).dump());
  cluster.answer("n2", 200, "{}");
  cluster.serve_nothing_else();
  const auto listed = json::parse(cluster.run({"volumes", "-o", "json"}).out)["items"];
  REQUIRE(listed.size() == 3);
  CHECK(listed[1]["usage"]["usedBytes"] == 972U << 20U);
  CHECK_FALSE(listed[1]["usage"].contains("toldAt"));
}

TEST_CASE("how long ago a helper pod has told how full a volume is stands beside that") {
  DaemonCluster cluster;
  const auto ago = cluster.clock.wall_now() - std::chrono::minutes(40);
  json data = told("pvc-1", 7U << 20U);
  data["toldAt"] = format_rfc3339(ago);
  json free = told("pvc-3", 3U << 20U);  // an agent's
  cluster.daemon(200, json{{"volumes", json::array({data, free})}}.dump());
  cluster.answer("n1", 200, "{}");
  cluster.answer("n2", 200, "{}");
  cluster.serve_nothing_else();
  const auto table = cluster.run({"volumes"}).out;
  CHECK_MESSAGE(table.find("  7Mi (40m ago)   1%     7 ") != std::string::npos, table);
  CHECK_MESSAGE(table.find("  3Mi             0%     7 ") != std::string::npos, table);
  const auto details = cluster.run({"volumes", "data"}).out;
  CHECK_MESSAGE(
      details.find("7Mi (1%), 7 inodes, as a helper pod told 40m ago\n") != std::string::npos,
      details);
}

TEST_CASE("which nodes have an agent the daemon knows, and nobody else") {
  DaemonCluster cluster;
  const auto told_of = [](json agents) { return json{{"agents", std::move(agents)}}.dump(); };
  cluster.daemon(200, told_of(json::array({{{"node", "n1"}}, {{"node", 7}}, 7})));
  cluster.answer("n1", 200, summary_of({}).dump());
  cluster.serve_nothing_else();
  const auto listed = json::parse(cluster.run({"volumes", "-o", "json"}).out)["items"];
  REQUIRE(listed.size() > 1);
  for (const auto& one : listed) {
    const auto executor = one["node"] == "n1" ? "agent" : "helper pods";
    CHECK(one["executor"] == executor);
  }
  const auto table = cluster.run({"volumes", "-o", "wide"}).out;
  CHECK(table.find("EXECUTOR") != std::string::npos);
  CHECK(cluster.run({"volumes", "data"}).out.find("agent\n") != std::string::npos);
  // Without agents there is nothing to tell apart.
  DaemonCluster plain;
  plain.daemon(200, told_of(json::array()));
  plain.answer("n1", 200, summary_of({}).dump());
  plain.serve_nothing_else();
  CHECK(plain.run({"volumes", "-o", "wide"}).out.find("EXECUTOR") == std::string::npos);
  CHECK(plain.run({"volumes", "-o", "json"}).out.find("executor") == std::string::npos);
}

TEST_CASE("a daemon that may not be asked, or does not know, is passed over in silence") {
  for (const auto& row : std::vector<std::pair<int, std::string>>{
           {403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})"},
           {404, "404 page not found"},
           {503, "no route to the pod"},
           {200, R"({"volumes":[]})"},
           {200, R"({"volumes":7})"},
           {200, R"({"volumes":[7,{"volume":7},{"volume":"pvc-1","usedBytes":-1}]})"},
           {200, "<html>"}}) {
    CAPTURE(row.first);
    const auto& [status, body] = row;
    DaemonCluster cluster;
    cluster.daemon(status, body);
    cluster.answer("n1", 200, summary_of({stats("default", "data", 1U << 29U)}).dump());
    cluster.serve_nothing_else();
    const auto outcome = cluster.run({"volumes"});
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(cluster.asked > 0);
    CHECK(outcome.out.find("50%") != std::string::npos);  // the kubelet's word counts
  }
  DaemonCluster cluster("Pending");
  cluster.daemon(200, json{{"volumes", json::array({told("pvc-1", 1)})}}.dump());
  cluster.answer("n1", 200, summary_of({}).dump());
  cluster.serve_nothing_else();
  (void)cluster.run({"volumes"});
  CHECK(cluster.asked == 0);
}

TEST_CASE("a kubelet's answer of any shape is read as far as it makes sense") {
  for (const char* text : {"{}", R"({"pods":7})", R"({"pods":[7,{"volume":7},{"volume":[7,{}]}]})",
                           R"({"pods":[{"volume":[{"pvcRef":{"name":"a"},"usedBytes":-1}]}]})",
                           R"({"pods":[{"volume":[{"pvcRef":{"name":"a"},"usedBytes":1,
                               "capacityBytes":0}]}]})",
                           // of a btrfs: it is the whole disk's
                           R"({"pods":[{"volume":[{"pvcRef":{"name":"a"},"usedBytes":1,
                               "capacityBytes":9,"inodes":0,"inodesUsed":0}]}]})"}) {
    CAPTURE(text);
    CHECK(usage_in(json::parse(text)).empty());
  }
  const auto usage = usage_in(summary_of({stats("a", "b", 5)}));
  REQUIRE(usage.count({"a", "b"}) == 1);
  CHECK(usage.at({"a", "b"}).used_bytes == 5);
}

}  // namespace lpp::cli::volume_usage_cases
