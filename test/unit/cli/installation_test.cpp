// SPDX-License-Identifier: Apache-2.0
// Which of several provisioners the commands are about.

#include <doctest/doctest.h>

#include "cli_bed.h"
#include "fakes/builders.h"

namespace lpp::testing::installation {
namespace {

using nlohmann::json;

struct Deployed {
  std::string ns{};
  std::string provisioner{};
  std::string image = "registry.example.com/local-path-provisioner:v0.1.0";
  int replicas = 1;
};

json deployment(const Deployed& one) {
  return {{"metadata", {{"name", "local-path-provisioner"}, {"namespace", one.ns}}},
          {"spec",
           {{"replicas", one.replicas},
            {"template",
             {{"spec",
               {{"containers",
                 {{{"image", one.image},
                   {"command",
                    {"local-path-provisioner", "start", "--namespace", one.ns, "--provisioner-name",
                     one.provisioner}}}}}}}}}}}};
}

const Deployed kTheirs{.ns = "kube-system",
                       .provisioner = "rancher.io/local-path",
                       .image = "rancher/local-path-provisioner:v0.0.31"};
const Deployed kOurs{.ns = "local-path-storage", .provisioner = "cluster.local/disks"};

/// A cluster with these Deployments, and for each provisioner a class and a volume.
struct Cluster : CliBed {
  explicit Cluster(const std::vector<Deployed>& deployed) {
    std::vector<json> deployments;
    std::vector<json> classes;
    std::vector<json> volumes;
    for (const Deployed& one : deployed) {
      const std::string name = "of-" + one.ns;
      deployments.push_back(deployment(one));
      json storage = storage_class().json();
      storage["metadata"]["name"] = name;
      storage["provisioner"] = one.provisioner;
      classes.push_back(storage);
      json made = volume(name).node("n1").json();
      made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] = one.provisioner;
      volumes.push_back(made);
    }
    serve("/deployments", deployments);
    serve("/storageclasses", classes);
    serve("/persistentvolumes?", volumes);
    transport->on("GET", "/version").always([](const auto&) {
      return k8s::Response{.status = 200,
                           .body = R"({"gitVersion": "v1.31.0"})",
                           .content_type = "application/json"};
    });
    serve_nothing_else();
  }

  /// The namespace of the one whose volumes are shown.
  std::string shown(std::vector<std::string> flags = {}) {
    std::vector<std::string> words{"volumes", "-A", "-o", "name"};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto outcome = run(words);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 0);
    told = outcome.err;
    constexpr std::string_view kPrefix = "persistentvolume/of-";
    return outcome.out.starts_with(kPrefix) ? outcome.out.substr(kPrefix.size()) : outcome.out;
  }
  std::string told{};
};

TEST_CASE("beside the provisioner of K3s or kind ours is the one that is asked about") {
  Deployed theirs = kTheirs;
  SUBCASE("K3s") {}
  SUBCASE("kind") { theirs.image = "docker.io/kindest/local-path-provisioner:v20250214-acbabc1a"; }
  SUBCASE("from a registry of one's own") {
    theirs.image = "registry.example.com:5000/rancher/local-path-provisioner";
  }
  SUBCASE("by its digest") { theirs.image = "rancher/local-path-provisioner@sha256:0123"; }
  Cluster cluster({theirs, kOurs});
  CHECK(cluster.shown() == "local-path-storage\n");
  CHECK(cluster.told ==
        "note: there are several provisioners, and this is about Deployment "
        "local-path-storage/local-path-provisioner (cluster.local/disks); not about "
        "kube-system/local-path-provisioner (rancher.io/local-path): --provisioner-name and "
        "--provisioner-namespace choose\n");
}

TEST_CASE("of several of ours the first that is not stopped is taken, and all are named") {
  Cluster cluster({{.ns = "a", .provisioner = "x.io/a", .replicas = 0},
                   {.ns = "b", .provisioner = "x.io/b"},
                   {.ns = "c", .provisioner = "x.io/c"}});
  CHECK(cluster.shown() == "b\n");
  CHECK(cluster.told.find("about Deployment b/local-path-provisioner (x.io/b); not about "
                          "a/local-path-provisioner (x.io/a), c/local-path-provisioner (x.io/c)") !=
        std::string::npos);
}

TEST_CASE("ours is taken before the one of K3s though it is stopped") {
  Deployed stopped = kOurs;
  stopped.replicas = 0;
  CHECK(Cluster({kTheirs, stopped}).shown() == "local-path-storage\n");
}

TEST_CASE("flags choose among several, and then nothing more is told") {
  Cluster cluster({kTheirs, kOurs});
  CHECK(cluster.shown({"--provisioner-name", "rancher.io/local-path"}) == "kube-system\n");
  CHECK(cluster.told.empty());
  CHECK(cluster.shown({"--provisioner-namespace", "kube-system"}) == "kube-system\n");
  CHECK(cluster.told.empty());
  CHECK(Cluster({kTheirs}).shown() == "kube-system\n");
}

TEST_CASE("check says which one it has looked at, of a cluster and of files") {
  Cluster cluster({kTheirs, kOurs});
  std::vector<std::string> words{"check"};
  SUBCASE("of a cluster") {}
  SUBCASE("of files") {
    json items = json::array({deployment(kTheirs), deployment(kOurs)});
    for (json& one : items) one["kind"] = "Deployment";
    cluster.files["all.json"] = json{{"kind", "List"}, {"items", items}}.dump();
    words = {"check", "-f", "all.json"};
  }
  const auto outcome = cluster.run(words);
  CHECK(
      outcome.err.starts_with("note: there are several provisioners, and this is about "
                              "Deployment local-path-storage/local-path-provisioner"));
}

}  // namespace
}  // namespace lpp::testing::installation
