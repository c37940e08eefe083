// SPDX-License-Identifier: Apache-2.0
#include "cli/volume_rows.h"

#include <doctest/doctest.h>

#include "fakes/builders.h"
#include "operation/operation.h"

using namespace lpp::cli;
using namespace lpp::testing;
using lpp::operation::Kind;

namespace {

/// A view with the class local-path and two nodes.
struct Scene {
  ClusterView view{};

  Scene() {
    view.names = kProvisionerName;
    view.provisioner_namespace = "local-path-storage";
    add(storage_class());
    add(node("n1"));
    add(node("n2"));
  }
  template <typename Builder>
  Scene& add(const Builder& builder) {
    add_object(builder.json(), view);
    return *this;
  }
  Scene& helper(Kind action, const std::string& volume, const PodBuilder& pod, int attempt = 1) {
    lpp::operation::Operation operation;
    operation.kind = action;
    operation.volume_name = volume;
    operation.claim = {"default", "data"};
    operation.node = "n1";
    operation.path = "/opt/local-path-provisioner/" + volume;
    operation.attempt = attempt;
    view.helper_pods.push_back({pod.build(), operation});
    return *this;
  }
  Scene& warning(const std::string& uid, const std::string& message, int count = 1) {
    view.events.push_back({.type = "Warning", .message = message, .uid = uid, .count = count});
    return *this;
  }
  Scene& waiting(const PodBuilder& pod) {
    view.waiting_pods.push_back(pod.json());
    return *this;
  }
  VolumeRow only_row() const {
    const auto rows = volume_rows(view);
    REQUIRE(rows.size() == 1);
    return rows.front();
  }
};

PodBuilder pod_with_claim(const std::string& claim) {
  return pod("web-0").set("/spec/volumes",
                          {{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}}});
}

}  // namespace

TEST_CASE("a bound claim shows where its directory is, and that nothing is pending") {
  Scene scene;
  scene.add(claim("data").volume("pvc-1").node("n1"));
  scene.add(volume("pvc-1")
                .claim("default", "data")
                .annotation("local.path.provisioner/selected-node", "n1")
                .node("n1"));
  const VolumeRow row = scene.only_row();
  CHECK(row.claim.to_string() == "default/data");
  CHECK(row.volume == "pvc-1");
  CHECK(row.node == "n1");
  CHECK(row.path == "/opt/local-path-provisioner/pvc-1");
  CHECK(row.size == "1Gi");
  CHECK(row.phase == "Bound");
  CHECK(row.why.empty());
  CHECK_FALSE(row.problem);
}

TEST_CASE("claims and volumes of other provisioners have no row") {
  Scene scene;
  scene.add(storage_class("other").provisioner("x.io/y"));
  scene.add(claim("a").provisioner("x.io/y").storage_class("other"));
  scene.add(claim("b").volume("pvc-2"));  // bound to a volume that is not ours
  scene.add(volume("pvc-2").annotation("pv.kubernetes.io/provisioned-by", "x.io/y"));
  CHECK(volume_rows(scene.view).empty());
}

TEST_CASE("a claim that has lost its volume has a row if it was ours") {
  const auto lost = [] { return claim("data").volume("pvc-1").phase("Lost"); };
  Scene scene;
  std::size_t rows = 1;
  SUBCASE("by its annotation") { scene.add(lost().storage_class("gone")); }
  SUBCASE("by its class") { scene.add(lost().no_provisioner()); }
  SUBCASE("by neither") {
    scene.add(lost().storage_class("gone").no_provisioner());
    rows = 0;
  }
  const auto found = volume_rows(scene.view);
  REQUIRE(found.size() == rows);
  if (rows == 1) CHECK(found[0].why == "its volume pvc-1 is gone");
}

TEST_CASE("why a claim is pending") {
  Scene scene;
  SUBCASE("no pod uses it") {
    scene.add(claim("data"));
    const VolumeRow row = scene.only_row();
    CHECK(row.why == "waits for the first pod that uses it (WaitForFirstConsumer)");
    CHECK_FALSE(row.problem);
  }
  SUBCASE("its pod cannot be scheduled") {
    scene.add(claim("data"));
    scene.waiting(pod_with_claim("data").condition("PodScheduled", "False", "Unschedulable",
                                                   "0/3 nodes are available"));
    const VolumeRow row = scene.only_row();
    CHECK(row.why == "pod web-0 cannot be scheduled: 0/3 nodes are available");
    CHECK(row.next == "kubectl -n default describe pod web-0");
    CHECK(row.problem);
  }
  SUBCASE("its pod is being scheduled") {
    scene.add(claim("data")).waiting(pod_with_claim("data"));
    CHECK(scene.only_row().why == "the scheduler is choosing a node for pod web-0");
  }
  SUBCASE("it is a generic ephemeral volume of a pod") {
    scene.add(claim("web-0-v"));
    scene.waiting(pod("web-0").set("/spec/volumes", {{{"name", "v"}, {"ephemeral", {{"a", 1}}}}}));
    CHECK(scene.only_row().why == "the scheduler is choosing a node for pod web-0");
  }
  SUBCASE("its class does not exist") {
    scene.add(claim("data").storage_class("nope"));
    CHECK(scene.only_row().why == "StorageClass \"nope\" does not exist");
    CHECK(scene.only_row().problem);
  }
  SUBCASE("the node has no path, and the scheduler is to choose another") {
    scene.add(claim("data")).warning("uid-data", "no local path available on node n1");
    CHECK(scene.only_row().why == "no local path available on node n1");
  }
  SUBCASE("the helper pod runs") {
    scene.add(claim("data").node("n1"));
    scene.helper(Kind::kMake, "pvc-uid-data", pod("h").phase("Running"), 2);
    const VolumeRow row = scene.only_row();
    CHECK(row.why == "helper pod h makes the directory (Running, attempt 2)");
    CHECK(row.path == "/opt/local-path-provisioner/pvc-uid-data");
    CHECK(row.helper_pod == "default/h");
    CHECK_FALSE(row.problem);
  }
  SUBCASE("the image of the helper pod cannot be pulled") {
    scene.add(claim("data").node("n1"));
    scene.helper(Kind::kMake, "pvc-uid-data",
                 pod("h").waiting("c", "ErrImagePull", "no such image"));
    const VolumeRow row = scene.only_row();
    CHECK(row.why == "helper pod cannot start: ErrImagePull: no such image");
    CHECK(row.next == "kubectl -n default describe pod h");
    CHECK(row.problem);
  }
  SUBCASE("the script failed: the Event knows more than the pod") {
    scene.add(claim("data").node("n1"));
    scene.helper(Kind::kMake, "pvc-uid-data", pod("h").terminated("c", 7), 3);
    CHECK(scene.only_row().why == "attempt 3: helper pod failed: exit code 7");
    scene.warning("uid-data",
                  "failed to provision volume with StorageClass \"local-path\": exit code 7: disk "
                  "full",
                  4);
    CHECK(scene.only_row().why == "exit code 7: disk full (4 times)");
    CHECK(scene.only_row().problem);
  }
  SUBCASE("the provisioner refused it") {
    scene.add(claim("data").node("n1")).warning("uid-data", "access mode x is not supported");
    CHECK(scene.only_row().why == "access mode x is not supported");
  }
  SUBCASE("the provisioner does nothing") {
    scene.add(claim("data").node("n1"));
    CHECK(scene.only_row().why == "the provisioner has not taken it up yet");
    CHECK(scene.only_row().next.find("kubectl -n local-path-storage get pods") !=
          std::string::npos);
  }
  SUBCASE("another claim's events, pods and helper pods do not count") {
    scene.add(claim("data")).warning("uid-other", "no").waiting(pod_with_claim("other"));
    scene.waiting(pod_with_claim("data").ns("elsewhere"));
    CHECK(scene.only_row().why == "waits for the first pod that uses it (WaitForFirstConsumer)");
  }
}

TEST_CASE("what becomes of a volume without a claim") {
  Scene scene;
  const auto released = volume("pvc-1").claim("default", "data").released().node("n1");
  SUBCASE("its directory is being removed") {
    scene.add(released).helper(Kind::kRemove, "pvc-1", pod("h").phase("Running"));
    const VolumeRow row = scene.only_row();
    CHECK(row.why == "helper pod h removes the directory (Running, attempt 1)");
    CHECK(row.claim.to_string() == "default/data");
    CHECK(row.phase == "Released");
  }
  SUBCASE("a delete operation is shown before what is left of the create operation") {
    scene.add(released)
        .helper(Kind::kRemove, "pvc-1", pod("d").phase("Running"))
        .helper(Kind::kMake, "pvc-1", pod("c").terminated("x", 0), 9);
    CHECK(scene.only_row().helper_pod == "default/d");
  }
  SUBCASE("the removal failed") {
    scene.add(released).warning("uid-pvc-1", "device busy");
    CHECK(scene.only_row().why == "device busy");
    CHECK(scene.only_row().problem);
  }
  SUBCASE("it is kept") {
    scene.add(volume("pvc-1").claim("default", "data").released().reclaim_policy("Retain"));
    CHECK(scene.only_row().why ==
          "its claim is gone; volume and data are kept (reclaim policy Retain)");
    CHECK(scene.only_row().next.find("kubectl patch pv pvc-1 -p '{\"spec\":") != std::string::npos);
  }
  SUBCASE("its node is gone") {
    scene.add(volume("pvc-1").claim("default", "data").node("n9"));
    CHECK(scene.only_row().why.starts_with("its node is gone ("));
    CHECK(scene.only_row().problem);
  }
  SUBCASE("nodes that may not be listed are not taken for gone") {
    scene.view.nodes_known = false;
    scene.add(volume("pvc-1").claim("default", "data").node("n9"));
    CHECK(scene.only_row().why.empty());
  }
}

TEST_CASE("a helper pod without claim and volume is shown as being taken back") {
  Scene scene;
  scene.helper(Kind::kMake, "pvc-1", pod("h").phase("Running"));
  const VolumeRow row = scene.only_row();
  CHECK(row.phase == "Undoing");
  CHECK(row.volume == "pvc-1");
  CHECK(row.why.find("its claim is gone") != std::string::npos);
}

TEST_CASE("rows are sorted by namespace and claim") {
  Scene scene;
  scene.add(claim("b")).add(claim("a").ns("z").uid("u1")).add(claim("a").uid("u2"));
  const auto rows = volume_rows(scene.view);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].claim.to_string() == "default/a");
  CHECK(rows[1].claim.to_string() == "default/b");
  CHECK(rows[2].claim.to_string() == "z/a");
}
