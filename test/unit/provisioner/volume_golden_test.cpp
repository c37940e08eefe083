// SPDX-License-Identifier: Apache-2.0
// PersistentVolumes as whole objects, from claim, class, node and configuration; in
// test/data/golden/volume.json.

#include <doctest/doctest.h>

#include "fakes/builders.h"
#include "fakes/golden.h"
#include "provisioner/plan.h"
#include "provisioner/volume_manifest.h"

namespace lpp::provisioner::volume_golden {

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

config::Config paths() {
  config::Config config;
  config.paths.node_path_map["n1"] = {"/opt/local-path-provisioner"};
  config.paths.node_path_map["n2"] = {"/data/hdd", "/data/ssd"};
  return config;
}

config::Config shared() {
  config::Config config;
  config.classes["local-path"].shared_file_system_path = "/mnt/nfs";
  return config;
}

ClaimBuilder usual() { return claim("data").ns("app").uid("0b5d4f0c").resource_version("42"); }

/// The volume that the provisioner would create, compared as a whole.
void check(const std::string& name, const ClaimBuilder& asked,
           const StorageClassBuilder& of_class = storage_class(), const NodeBuilder* on = nullptr,
           const config::Config& config = paths()) {
  CAPTURE(name);
  const NodeBuilder usual_node = node("n1");
  std::shared_ptr<const k8s::Node> selected;
  if (!selected_node(asked.build()).empty()) selected = (on == nullptr ? usual_node : *on).shared();
  const auto operation = make_operation(asked.build(), of_class.build(), selected.get(), config);
  REQUIRE(std::holds_alternative<operation::Operation>(operation));
  check_golden("volume", name,
               make_volume(std::get<operation::Operation>(operation), asked.build(),
                           of_class.build().provisioner));
}

}  // namespace

TEST_CASE("golden: volumes of type hostPath and local") {
  check("host-path", usual().node("n1"));
  check("local", usual().node("n1").annotation("volumeType", "LOCAL"));
  check("local-by-class", usual().node("n1"),
        storage_class().annotation("defaultVolumeType", "local"));
  check("local-by-parameter", usual().node("n1"), storage_class().parameter("volumeType", "local"));
  check("host-path-against-the-class", usual().node("n1").annotation("volumeType", "hostPath"),
        storage_class().annotation("defaultVolumeType", "local"));
  check("local-with-mount-options", usual().node("n1").annotation("volumeType", "local"),
        storage_class().mount_options({"noatime", "nodev"}));
}

TEST_CASE("golden: volumes with the claim's modes and size, and the class's policy") {
  check("read-write-once-pod", usual().node("n1").access_modes({"ReadWriteOncePod"}));
  check("size-as-written", usual().node("n1").request("1500m"));
  check("retain", usual().node("n1"), storage_class().reclaim_policy("Retain"));
  check("no-policy", usual().node("n1").unset("/spec", "volumeMode"),
        storage_class().unset("", "reclaimPolicy"));
  check("beta-class-annotation",
        usual().node("n1").annotation("volume.beta.kubernetes.io/storage-class", "old"),
        storage_class("old"));
}

TEST_CASE("golden: volumes on the node that was chosen") {
  const NodeBuilder labelled =
      node("n1").label("kubernetes.io/hostname", "host-1").label("example.com/id", "stable-1");
  check("hostname-differs", usual().node("n1"), storage_class(), &labelled);
  check("custom-affinity-key", usual().node("n1"),
        storage_class().parameter("nodeAffinityKey", "example.com/id"), &labelled);
  check("affinity-label-missing", usual().node("n1"),
        storage_class().parameter("nodeAffinityKey", "example.com/none"), &labelled);
  check("empty-affinity-key", usual().node("n1"), storage_class().parameter("nodeAffinityKey", ""),
        &labelled);
  const NodeBuilder second = node("n2");
  check("node-path", usual().node("n2"), storage_class().parameter("nodePath", "/data/ssd"),
        &second);
}

TEST_CASE("golden: volumes of a path pattern") {
  check("path-pattern", usual().node("n1"),
        storage_class().parameter("pathPattern", "{{ .PVC.Namespace }}/{{ .PVC.Name }}/"));
}

TEST_CASE("golden: volumes on a shared filesystem belong to no node") {
  const auto immediate = storage_class().binding_mode("Immediate");
  check("shared", usual().access_modes({"ReadWriteMany"}), immediate, nullptr, shared());
  check("shared-with-a-node", usual().node("n1").access_modes({"ReadOnlyMany", "ReadWriteOnce"}),
        storage_class(), nullptr, shared());
}

TEST_CASE("golden: the volume's provisioner is the class's, whatever it is called") {
  check("other-provisioner", usual().node("n1").provisioner("cluster.local/release"),
        storage_class().provisioner("cluster.local/release"));
}

}  // namespace lpp::provisioner::volume_golden
