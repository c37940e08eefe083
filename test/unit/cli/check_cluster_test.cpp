// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "cli/check.h"
#include "cli_bed.h"
#include "fakes/builders.h"

using namespace lpp::testing;

namespace {

using lpp::k8s::Request;
using lpp::k8s::Response;
using nlohmann::json;

Response ok(const json& body, int status = 200) {
  return {.status = status, .body = body.dump(), .content_type = "application/json"};
}

json deployment(const std::string& ns, int ready) {
  return {{"metadata", {{"name", "local-path-provisioner"}, {"namespace", ns}}},
          {"spec",
           {{"replicas", 1},
            {"template",
             {{"spec",
               {{"serviceAccountName", "sa"},
                {"containers",
                 {{{"command", {"local-path-provisioner", "start", "--namespace", ns}}}}}}}}}}},
          {"status", {{"readyReplicas", ready}}}};
}

/// A cluster in which everything is as it should be, unless a test answers first.
struct Cluster : CliBed {
  bool right_missing = false;

  void be_good() {
    transport->on("GET", "/version").always([](const auto&) {
      return ok({{"gitVersion", "v1.31.0"}});
    });
    transport->on("POST", "subjectaccessreviews").always([this](const Request& request) {
      const auto spec = json::parse(request.body)["spec"];
      CHECK(spec["user"] == "system:serviceaccount:local-path-storage:sa");
      const auto& what = spec["resourceAttributes"];
      const bool allowed = !right_missing || what["resource"] != "pods" || what["verb"] == "get" ||
                           what.contains("subresource");
      return ok({{"status", {{"allowed", allowed}}}}, 201);
    });
    transport->on("GET", "/configmaps/local-path-config").always([](const auto&) {
      return ok(
          config_map("local-path-config")
              .data("config.json", R"({"nodePathMap": [{"node": "n1", "paths": ["/opt/a"]}]})")
              .data("helperPod.yaml", "spec: {containers: [{name: a, image: b}]}")
              .data("setup", "x")
              .data("teardown", "x")
              .json());
    });
    transport->on("GET", "/namespaces/local-path-storage").run([](const auto&, auto, const auto&) {
      return lpp::Result<Response>(ok({{"metadata", {{"name", "local-path-storage"}}}}));
    });
    serve("/deployments", {deployment("local-path-storage", 1)});
    serve("/storageclasses", {storage_class().json()});
    serve("/nodes?", {node("n1").json()});
    serve_nothing_else();
  }
};

}  // namespace

TEST_CASE("a cluster in which all is well is ok") {
  Cluster cluster;
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.err.empty());
  CHECK(outcome.code == 0);
  CHECK(
      outcome.out ==
      "Checked:   Deployment local-path-storage/local-path-provisioner, Namespace "
      "local-path-storage, 30 permissions, config.json, helperPod.yaml, 1 StorageClass, 1 node, 0 "
      "volumes\nResult:    ok\n");
}

TEST_CASE("a missing right is a problem that names its verbs") {
  Cluster cluster;
  cluster.right_missing = true;
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("PROBLEM:   ServiceAccount local-path-storage/sa\n"
                         "           may not list, watch, create, delete pods in namespace "
                         "local-path-storage\n") != std::string::npos);
}

TEST_CASE("with a namespace for helper pods, rights there are asked for the daemon's account") {
  Cluster cluster;
  json apart = deployment("local-path-storage", 1);
  apart["metadata"]["namespace"] = "daemon";
  cluster.serve("/deployments", {apart});
  std::set<std::string> asked;
  cluster.transport->on("POST", "subjectaccessreviews").always([&](const Request& request) {
    const auto spec = json::parse(request.body)["spec"];
    CHECK(spec["user"] == "system:serviceaccount:daemon:sa");
    const auto& what = spec["resourceAttributes"];
    asked.insert(what.value("namespace", "-") + "/" + what.value("resource", "") + "/" +
                 what.value("name", "*"));
    return ok({{"status", {{"allowed", true}}}}, 201);
  });
  cluster.be_good();
  CHECK(cluster.run({"check"}).code == 0);
  CHECK(asked.contains("local-path-storage/pods/*"));
  CHECK(asked.contains("local-path-storage/configmaps/local-path-config"));
  CHECK(asked.contains("local-path-storage/leases/rancher.io-local-path"));
  CHECK(asked.contains("-/persistentvolumes/*"));
}

TEST_CASE("without a Deployment the lease is the one that the daemon would take") {
  Cluster cluster;
  std::set<std::string> asked;
  cluster.transport->on("POST", "subjectaccessreviews").always([&](const Request& request) {
    const json review = json::parse(request.body);
    const json& what = review["spec"]["resourceAttributes"];
    if (what["resource"] == "leases") asked.insert(what.value("name", "*"));
    return ok({{"status", {{"allowed", true}}}}, 201);
  });
  cluster.serve("/deployments", {});
  cluster.be_good();
  (void)cluster.run({"check", "--provisioner-name", "Cluster.local/My_App"});
  CHECK(asked.contains("cluster.local-my-app"));
}

TEST_CASE("who may not ask for rights gets a warning, and the rest is checked") {
  Cluster cluster;
  cluster.transport->on("POST", "subjectaccessreviews").always([](const auto&) {
    return ok({{"kind", "Status"}, {"reason", "Forbidden"}, {"message", "no"}, {"code", 403}}, 403);
  });
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("permissions are not checked: ask for the daemon's permissions: ") !=
        std::string::npos);
  CHECK(cluster.transport->count("POST", "subjectaccessreviews") == 1);
  CHECK(outcome.out.find("1 StorageClass") != std::string::npos);
}

TEST_CASE("who may not read Deployments and the namespace is told so, and rights are checked") {
  Cluster cluster;
  const auto forbidden = [](const auto&) {
    return ok({{"kind", "Status"}, {"reason", "Forbidden"}, {"message", "no"}, {"code", 403}}, 403);
  };
  cluster.transport->on("GET", "/deployments").always(forbidden);
  cluster.transport->on("GET", "/namespaces/local-path-storage").always(forbidden);
  cluster.transport->on("POST", "subjectaccessreviews").always([](const auto&) {
    return ok({{"status", {{"allowed", true}}}}, 201);
  });
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.out.find("Deployments\n           not checked: ") != std::string::npos);
  CHECK(outcome.out.find("Namespace local-path-storage\n           not checked: ") !=
        std::string::npos);
  CHECK(outcome.out.find("no Deployment runs") == std::string::npos);
  CHECK(outcome.out.find("30 permissions") != std::string::npos);
}

TEST_CASE("a class that lets claims of lost nodes go needs a right that is asked for only then") {
  bool may = false;
  SUBCASE("missing") {}
  SUBCASE("there") { may = true; }
  Cluster cluster;
  cluster.transport->on("POST", "subjectaccessreviews").always([&](const Request& request) {
    const json what = json::parse(request.body)["spec"]["resourceAttributes"];
    const bool is_it = what["resource"] == "persistentvolumeclaims" && what["verb"] == "delete";
    return ok({{"status", {{"allowed", may || !is_it}}}}, 201);
  });
  cluster.serve("/storageclasses", {storage_class().parameter("onNodeLost", "release").json()});
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.code == 0);
  CAPTURE(outcome.out);
  CHECK((outcome.out.find("kubectl apply -f deploy/node-lost.yaml") == std::string::npos) == may);
  CHECK((outcome.out.find("may not delete persistentvolumeclaims; StorageClass local-path has") ==
         std::string::npos) == may);
}

TEST_CASE("two provisioners of one name, and one that is not ready, are problems") {
  Cluster cluster;
  cluster.serve("/deployments",
                {deployment("kube-system", 1), deployment("local-path-storage", 0)});
  cluster.be_good();
  const auto outcome = cluster.run({"check", "--provisioner-namespace", "local-path-storage"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("Deployments kube-system/local-path-provisioner, "
                         "local-path-storage/local-path-provisioner\n") != std::string::npos);
  CHECK(outcome.out.find("no replica is ready") != std::string::npos);
}

TEST_CASE("helper pods of our own image with scripts are a problem of a cluster, too") {
  Cluster cluster;
  json ours = deployment("local-path-storage", 1);
  json& container = ours["spec"]["template"]["spec"]["containers"][0];
  container["image"] = "registry.example.com/local-path-provisioner:v1";
  container["env"] = {{{"name", "HELPER_IMAGE"}, {"value", container["image"]}}};
  std::string place = "ConfigMap local-path-storage/local-path-config config.json: ";
  std::string config = R"({"nodePathMap": [{"node": "n1", "paths": ["/opt/a"]}]})";
  SUBCASE("of the ConfigMap") {}
  SUBCASE("of the Deployment") {
    container["command"] = {"local-path-provisioner", "start", "--config", config};
    config.insert(1, R"("setupCommand": "/a", "teardownCommand": "/a", )");
    place = "Deployment local-path-storage/local-path-provisioner: --config: ";
  }
  cluster.transport->on("GET", "/configmaps/local-path-config").always([config](const auto&) {
    return ok(config_map("local-path-config")
                  .data("config.json", config)
                  .data("helperPod.yaml", "spec: {containers: [{name: a}]}")
                  .data("setup", "x")
                  .data("teardown", "x")
                  .json());
  });
  cluster.serve("/deployments", {ours});
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CAPTURE(outcome.out);
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("PROBLEM:   " + place + "setupCommand, ") != std::string::npos);
}

TEST_CASE("volumes that are stuck and nodes without a path are warnings") {
  Cluster cluster;
  cluster.serve("/nodes?", {node("n1").json(), node("n2").json()});
  cluster.serve("/persistentvolumeclaims?", {claim("data").storage_class("nope").json()});
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("1 of 2 nodes have no path for class local-path: n2") !=
        std::string::npos);
  CHECK(outcome.out.find("volume default/data (Pending)\n           StorageClass \"nope\" does "
                         "not exist") != std::string::npos);
}

TEST_CASE("a cluster without the provisioner is told, with what to do") {
  Cluster cluster;
  cluster.serve("/deployments", {});
  cluster.serve("/storageclasses", {});
  cluster.transport->on("GET", "/configmaps/local-path-config").always([](const auto&) {
    return ok({{"kind", "Status"}, {"reason", "NotFound"}, {"code", 404}}, 404);
  });
  cluster.transport->on("GET", "/namespaces/local-path-storage").always([](const auto&) {
    return ok({{"kind", "Status"}, {"reason", "NotFound"}, {"code", 404}}, 404);
  });
  cluster.be_good();
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.out.find("no Deployment runs provisioner rancher.io/local-path") !=
        std::string::npos);
  CHECK(outcome.out.find("Namespace local-path-storage\n           does not exist") !=
        std::string::npos);
  CHECK(outcome.out.find("no StorageClass names provisioner") != std::string::npos);
}

TEST_CASE("a server that does not answer is an error at once") {
  Cluster cluster;
  cluster.transport->on("GET", "/version").fail(lpp::ErrorCode::kUnavailable, "refused");
  const auto outcome = cluster.run({"check"});
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("cannot reach the API server (kubeconfig test, context test): refused") !=
        std::string::npos);
}

TEST_CASE("files are checked against the cluster when it is named") {
  Cluster cluster;
  cluster.files["c.json"] = R"({"nodePathMap": [{"node": "n9", "paths": ["/opt/a"]}]})";
  cluster.be_good();
  CHECK(cluster.run({"check", "--config", "c.json"}).out.find("n9") == std::string::npos);
  const auto outcome = cluster.run({"check", "--config", "c.json", "--context", "x"});
  CHECK(outcome.out.find("there is no node n9") != std::string::npos);
}
