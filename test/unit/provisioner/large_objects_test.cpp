// SPDX-License-Identifier: Apache-2.0
// Of claims and nodes that are larger than usual only a part is kept: it is not enough to decide
// for good.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

struct LargeBed : Scene {
  provisioner::ClaimReconciler reconciler{world, memories};

  provisioner::Action step() {
    return reconciler.step({.claim = {"default", "a"}, .uid = "uid-a"});
  }
  /// What the cache keeps of the claim that was put.
  void keep_a_part() {
    k8s::PersistentVolumeClaim part = *claims.get({"default", "a"});
    part.meta.labels.clear();
    part.meta.incomplete = true;
    claims.put({"default", "a"}, std::make_shared<const k8s::PersistentVolumeClaim>(part));
  }
};

StorageClassBuilder by_label() {
  return storage_class().parameter("pathPattern",
                                   "{{ .PVC.Namespace }}/{{ .PVC.Name }}/{{ .PVC.Labels.app }}");
}

}  // namespace

TEST_CASE("a claim of which only a part is kept is read again before its directory is planned") {
  LargeBed scene;
  scene.put(by_label());
  scene.put(claim("a").node("n1").label("app", "web"));
  scene.keep_a_part();
  bool is_over = false;
  SUBCASE("all of it is there now") {
    (void)scene.step();
    REQUIRE(scene.executor.started.size() == 1);
    CHECK(scene.executor.started[0].path == "/data/default/a/web");
    (void)scene.step();  // while it is made
    CHECK(scene.transport.count("GET", "/persistentvolumeclaims") == 1);
    is_over = true;
  }
  SUBCASE("it is gone") { scene.api_claims = nlohmann::json::array(); }
  SUBCASE("it is another") {
    scene.api_claims =
        nlohmann::json::array({claim("a").node("n1").set("/metadata/uid", "uid-b").json()});
  }
  SUBCASE("it is bound") {
    scene.api_claims =
        nlohmann::json::array({claim("a").node("n1").volume("static-volume").json()});
  }
  SUBCASE("it moved to another node") {
    scene.api_claims = nlohmann::json::array({claim("a").node("n2").label("app", "w").json()});
  }
  SUBCASE("the API server does not answer") { scene.claim_reads.fail(ErrorCode::kTimeout); }
  if (is_over) return;
  (void)scene.step();
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.count("GET", "/persistentvolumeclaims") == 1);
}

TEST_CASE("a claim with all the annotations that an API server takes is served") {
  LargeBed scene;
  scene.put(by_label());
  ClaimBuilder large = claim("a").node("n1").label("app", "web");
  constexpr int kEach = 20;  // bytes, of 256 KiB
  for (int i = 0; i < (256 << 10) / kEach; ++i) {
    large.annotation("example/" + std::to_string(100'000 + i), "a-text");
  }
  scene.put(large);
  scene.keep_a_part();
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  CHECK(scene.executor.started[0].path == "/data/default/a/web");
}

TEST_CASE("a claim that is too large even so is refused, with the reason") {
  LargeBed scene;
  scene.put(by_label());
  scene.put(claim("a").node("n1").label("app", "web").label("b", std::string(2'200'000, 'x')));
  scene.keep_a_part();
  (void)scene.step();
  CHECK(scene.executor.started.empty());
  CHECK(scene.has_event("the claim is too large"));
}

TEST_CASE("a label that a node may have is asked for before its name stands for it") {
  LargeBed scene;
  scene.put(claim("a").node("n1"));
  k8s::Node part = *scene.nodes.get({"", "n1"});
  part.meta.incomplete = true;
  scene.nodes.put({"", "n1"}, std::make_shared<const k8s::Node>(part));
  SUBCASE("the label is among those that are kept") {
    (void)scene.step();
    REQUIRE(scene.executor.started.size() == 1);
    CHECK(scene.transport.requests().empty());
  }
  SUBCASE("it is not") {
    scene.put(storage_class().parameter("nodeAffinityKey", "example.com/rack"));
    scene.transport.on("GET", "/nodes/n1")
        .reply(200, node("n1").label("example.com/rack", "r7").json().dump());
    (void)scene.step();
    REQUIRE(scene.executor.started.size() == 1);
    CHECK(scene.executor.started[0].shape->affinity_value == "r7");
  }
}

TEST_CASE("a volume is tied to its node by the label that the node has when it is published") {
  LargeBed scene;
  scene.put(claim("a").node("n1"));
  (void)scene.step();
  scene.executor.succeed(operation::Kind::kMake, "pvc-uid-a");
  SUBCASE("it is not among those that are kept") {
    k8s::Node part = *node("n1").shared();
    part.meta.labels.clear();
    part.meta.incomplete = true;
    scene.nodes.put({"", "n1"}, std::make_shared<const k8s::Node>(part));
    scene.transport.on("GET", "/nodes/n1")
        .reply(200, node("n1").label("kubernetes.io/hostname", "other").json().dump());
  }
  SUBCASE("it is kept of a node with many") {
    k8s::Node part = *node("n1").label("kubernetes.io/hostname", "other").shared();
    part.meta.incomplete = true;
    scene.nodes.put({"", "n1"}, std::make_shared<const k8s::Node>(part));
  }
  SUBCASE("it was changed") { scene.put(node("n1").label("kubernetes.io/hostname", "other")); }
  scene.transport.on("POST", "/persistentvolumes").reply(201);
  (void)scene.step();
  nlohmann::json posted;
  for (const auto& request : scene.transport.requests()) {
    if (request.method == "POST") posted = nlohmann::json::parse(request.body);
  }
  const auto terms = posted["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
  CHECK(terms[0]["matchExpressions"][0]["values"] == nlohmann::json({"other"}));
}

TEST_CASE("a volume is not published while its node's label cannot be read") {
  LargeBed scene;
  scene.put(claim("a").node("n1"));
  (void)scene.step();
  scene.executor.succeed(operation::Kind::kMake, "pvc-uid-a");
  k8s::Node part = *node("n1").shared();
  part.meta.labels.clear();
  part.meta.incomplete = true;
  scene.nodes.put({"", "n1"}, std::make_shared<const k8s::Node>(part));
  scene.transport.on("GET", "/nodes/n1").fail(ErrorCode::kTimeout);
  (void)scene.step();
  CHECK(scene.transport.count("POST", "/persistentvolumes") == 0);
}
