// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cli_bed.h"
#include "fakes/builders.h"

namespace lpp::cli::volumes_command {

using namespace lpp::testing;
using lpp::testing::node;  // not the namespace

namespace {

constexpr const char* kForbidden =
    R"({"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"persistentvolumes is forbidden: User \"eve\" cannot list resource \"persistentvolumes\""})";

/// A cluster with a bound claim, two that wait, and a released volume.
struct Cluster : CliBed {
  Cluster() {
    clock.advance(std::chrono::hours(1));
    const std::string created = lpp::format_rfc3339(clock.wall_now() - std::chrono::minutes(5));
    serve("/storageclasses", {storage_class().json()});
    serve("/persistentvolumeclaims?",
          {claim("data").created(created).volume("pvc-1").node("n1").json(),
           claim("cache").created(created).json(),
           claim("data").created(created).uid("u2").ns("web").node("n2").request("5Gi").json()});
    serve("/persistentvolumes?", {volume("pvc-1")
                                      .created(created)
                                      .claim("default", "data")
                                      .annotation("local.path.provisioner/selected-node", "n1")
                                      .node("n1")
                                      .json(),
                                  volume("pvc-2")
                                      .created(created)
                                      .claim("web", "old")
                                      .released()
                                      .reclaim_policy("Retain")
                                      .node("n2")
                                      .json()});
    serve("/nodes?", {node("n1").json(), node("n2").json()});
    serve("/namespaces/default/events?", {});
    serve("/events?",
          {{{"type", "Warning"},
            {"reason", "ProvisioningFailed"},
            {"message", "no local path available on node n2"},
            {"count", 3},
            {"lastTimestamp", lpp::format_rfc3339(clock.wall_now() - std::chrono::seconds(70))},
            {"involvedObject",
             {{"kind", "PersistentVolumeClaim"},
              {"namespace", "web"},
              {"name", "data"},
              {"uid", "u2"}}}}});
    serve_nothing_else();
  }
};

}  // namespace

TEST_CASE("volumes -A shows all volumes and claims, with what is pending") {
  Cluster cluster;
  const auto outcome = cluster.run({"volumes", "-A"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(
      outcome.out ==
      R"(NAMESPACE   CLAIM   NODE   PATH                                SIZE   PHASE      AGE   PENDING
default     cache   -      -                                   1Gi    Pending    5m    waits for the first pod that uses it (WaitForFirstConsumer)
default     data    n1     /opt/local-path-provisioner/pvc-1   1Gi    Bound      5m    -
web         data    n2     -                                   5Gi    Pending    5m    no local path available on node n2 (3 times)
web         old     n2     /opt/local-path-provisioner/pvc-2   1Gi    Released   5m    its claim is gone; volume and data are kept (reclaim policy Retain)
)");
}

TEST_CASE("volumes shows one namespace: that of the context, or the one that -n names") {
  Cluster cluster;
  const auto first = cluster.run({"volumes"});
  CHECK(first.out.find("cache") != std::string::npos);
  CHECK(first.out.find("NAMESPACE") == std::string::npos);
  CHECK(first.out.find("old") == std::string::npos);
  CHECK(cluster.run({"volumes", "-n", "web"}).out.find("old") != std::string::npos);
  const auto none = cluster.run({"volumes", "-n", "empty"});
  CHECK(none.code == 0);
  CHECK(none.out.empty());
  CHECK(none.err.find("-A shows all namespaces") != std::string::npos);
}

TEST_CASE("with a name, volumes says all about the claim") {
  Cluster cluster;
  const auto outcome = cluster.run({"volumes", "web/data"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out ==
        R"(Claim:      web/data
Phase:      Pending, 5m old
Pending:    no local path available on node n2 (3 times)
Class:      local-path
Size:       5Gi
Node:       n2
Warnings:   70s ago (3 times): ProvisioningFailed: no local path available on node n2
)");
  CHECK(cluster.run({"volumes", "-n", "web", "data"}).out == outcome.out);
  CHECK(cluster.run({"volumes", "-A", "pvc-1"}).out.starts_with("Claim:"));
}

TEST_CASE("a claim that is not there, or not ours, is told with the reason") {
  Cluster cluster;
  CHECK(cluster.run({"volumes", "nope"}).code == 1);
  CHECK(cluster.run({"volumes", "nope"}).err.find("no claim or volume nope") != std::string::npos);
  CliBed bed;
  bed.serve("/storageclasses", {storage_class("other").provisioner("x.io/y").json()});
  bed.serve("/persistentvolumeclaims?",
            {claim("a").provisioner("x.io/y").storage_class("other").json(),
             claim("b").no_provisioner().storage_class("nope").json()});
  bed.serve_nothing_else();
  CHECK(bed.run({"volumes", "a"}).err.find("belongs to provisioner x.io/y") != std::string::npos);
  CHECK(bed.run({"volumes", "b"}).err.find("StorageClass \"nope\" does not exist") !=
        std::string::npos);
}

TEST_CASE("output for machines holds every row") {
  Cluster cluster;
  const auto out = nlohmann::json::parse(cluster.run({"volumes", "-A", "-o", "json"}).out);
  CHECK(out["provisioner"] == kProvisionerName);
  REQUIRE(out["items"].size() == 4);
  CHECK(out["items"][1] == nlohmann::json{{"namespace", "default"},
                                          {"claim", "data"},
                                          {"phase", "Bound"},
                                          {"volume", "pvc-1"},
                                          {"node", "n1"},
                                          {"path", "/opt/local-path-provisioner/pvc-1"},
                                          {"size", "1Gi"},
                                          {"storageClass", "local-path"},
                                          {"reclaimPolicy", "Delete"},
                                          {"created", out["items"][1]["created"]},
                                          {"problem", false}});
  CHECK(out["items"][2]["reason"] == "no local path available on node n2 (3 times)");
  CHECK(cluster.run({"volumes", "-A", "-o", "yaml"}).out.starts_with("items:\n  - claim: cache\n"));
  CHECK(cluster.run({"volumes", "-A", "-o", "name"}).out ==
        "persistentvolumeclaim/cache\npersistentvolume/pvc-1\npersistentvolumeclaim/data\n"
        "persistentvolume/pvc-2\n");
  CHECK(cluster.run({"volumes", "-o", "xml"}).code == 2);
}

TEST_CASE("-o wide adds volume, class and helper pod") {
  Cluster cluster;
  const auto out = cluster.run({"volumes", "-o", "wide"}).out;
  CHECK(out.find("VOLUME   CLASS        RECLAIM   HELPER POD   PENDING\n") != std::string::npos);
  CHECK(out.find("pvc-1    local-path   Delete    -            -\n") != std::string::npos);
}

TEST_CASE(
    "without a cluster, or the permissions for it, the reason is told and the exit code is 1") {
  CliBed bed;
  bed.connect_error = lpp::Error{lpp::ErrorCode::kInvalid, "no configuration was found"};
  const auto none = bed.run({"volumes", "--kubeconfig", "k", "--context", "c"});
  CHECK(none.code == 1);
  CHECK(none.err ==
        "local-path-provisioner volumes: cannot reach a cluster: no configuration was found\n");
  CHECK(bed.connected_with == std::vector<std::string>{"k c"});

  CliBed forbidden;
  forbidden.serve("/storageclasses", {});
  forbidden.serve("/persistentvolumeclaims?", {});
  forbidden.transport->on("GET", "/persistentvolumes?").always([](const auto&) {
    return lpp::k8s::Response{403, kForbidden, "application/json"};
  });
  const auto refused = forbidden.run({"volumes", "-A"});
  CHECK(refused.code == 1);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("persistentvolumes is forbidden: User \"eve\"") != std::string::npos);
}

TEST_CASE("permissions in one namespace suffice for questions about it") {
  CliBed bed;
  const std::string created = lpp::format_rfc3339(bed.clock.wall_now() - std::chrono::minutes(5));
  bed.serve("/namespaces/web/persistentvolumeclaims?",
            {claim("data").ns("web").created(created).volume("pvc-1").node("n1").json(),
             claim("fresh").ns("web").uid("u2").created(created).node("n2").json(),
             claim("idle").ns("web").uid("u3").no_provisioner().created(created).json(),
             claim("other").ns("web").uid("u4").provisioner("x.io/y").created(created).json()});
  bed.serve("/namespaces/web/pods?", {});
  bed.serve("/namespaces/web/events?", {{{"type", "Warning"},
                                         {"reason", "ProvisioningFailed"},
                                         {"message", "no space"},
                                         {"involvedObject",
                                          {{"kind", "PersistentVolumeClaim"},
                                           {"namespace", "web"},
                                           {"name", "fresh"},
                                           {"uid", "u2"}}}}});
  bed.transport->on("GET", "").always([](const auto&) {
    return lpp::k8s::Response{403, kForbidden, "application/json"};
  });
  const auto outcome = bed.run({"volumes", "-n", "web"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out ==
        R"(CLAIM   NODE   PATH   SIZE   PHASE     AGE   PENDING
data    n1     -      1Gi    Bound     5m    -
fresh   n2     -      1Gi    Pending   5m    no space
idle    -      -      1Gi    Pending   5m    waits for the first pod that uses it (WaitForFirstConsumer)
)");
  CHECK(outcome.err.find("note: list persistentvolumes: ") != std::string::npos);
  CHECK(outcome.err.find("note: list storageclasses: ") != std::string::npos);
  // A name with its namespace is such a question too; one about all namespaces is none.
  CHECK(bed.run({"volumes", "web/fresh"}).out.find("Pending:    no space") != std::string::npos);
  CHECK(bed.run({"volumes", "-A"}).code == 1);
  CHECK(bed.run({"volumes", "web/fresh", "db/data"}).code == 1);
}

TEST_CASE("other failures than a missing permission are failures in one namespace, too") {
  CliBed bed;
  bed.serve("/storageclasses", {});
  bed.serve("/persistentvolumeclaims?", {});
  bed.transport->on("GET", "/persistentvolumes?").always([](const auto&) {
    return lpp::k8s::Response{500, "{}", "application/json"};
  });
  CHECK(bed.run({"volumes", "-n", "web"}).code == 1);
}

TEST_CASE("what -o name prints is accepted back") {
  Cluster cluster;
  const auto printed = cluster.run({"volumes", "-A", "-o", "name"}).out;
  std::vector<std::string> again{"volumes", "-A", "-o", "name"};
  for (std::size_t at = 0; at < printed.size(); at = printed.find('\n', at) + 1) {
    again.push_back(printed.substr(at, printed.find('\n', at) - at));
  }
  CHECK(cluster.run(again).out == printed);
  CHECK(cluster.run({"volumes", "persistentvolume/pvc-2"})
            .out.starts_with("Claim:            web/old"));
  CHECK(cluster.run({"volumes", "-n", "web", "persistentvolumeclaim/data"})
            .out.starts_with("Claim:      web/data"));
  CHECK(cluster.run({"volumes", "persistentvolumeclaims/cache"}).out.starts_with("Claim:"));
  CHECK(cluster.run({"volumes", "persistentvolumeclaim/nope"}).code == 1);
  CHECK(cluster.run({"volumes", "persistentvolumeclaim/"}).code == 1);
}

TEST_CASE("what is only helpful may be forbidden: a note says what is missing") {
  CliBed bed;
  bed.serve("/storageclasses", {storage_class().json()});
  bed.serve("/persistentvolumeclaims?", {claim("data").json()});
  bed.serve("/persistentvolumes?", {});
  bed.transport->on("GET", "").always([](const auto&) {
    return lpp::k8s::Response{403, kForbidden, "application/json"};
  });
  const auto outcome = bed.run({"volumes"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("waits for the first pod") != std::string::npos);
  CHECK(outcome.err.find("note: list events: ") != std::string::npos);
}

TEST_CASE("the provisioner's name and namespace come from its Deployment, unless a flag says so") {
  CliBed bed;
  const nlohmann::json container{
      {"image", "registry/local-path-provisioner:v1"},
      {"command", {"local-path-provisioner", "start", "--provisioner-name=my.io/paths"}},
      {"env",
       {{{"name", "POD_NAMESPACE"},
         {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.namespace"}}}}}}}}};
  bed.serve("/deployments",
            {{{"metadata", {{"name", "p"}, {"namespace", "kube-system"}}},
              {"spec", {{"template", {{"spec", {{"containers", {container}}}}}}}}}});
  bed.serve("/storageclasses", {storage_class().provisioner("my.io/paths").json()});
  bed.serve("/persistentvolumeclaims?", {claim("data").provisioner("my.io/paths").json()});
  bed.serve_nothing_else();
  CHECK(bed.run({"volumes"}).out.find("data") != std::string::npos);
  CHECK(bed.transport->count("GET", "/namespaces/kube-system/pods") == 1);
  CHECK(bed.run({"volumes", "--provisioner-name", "x.io/y"}).out.empty());
  CHECK(bed.transport->count("GET", "/namespaces/local-path-storage/pods") == 1);
}

}  // namespace lpp::cli::volumes_command
