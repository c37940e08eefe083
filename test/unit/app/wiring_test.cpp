// SPDX-License-Identifier: Apache-2.0
// What the daemon keeps of the objects that arrive, and that it is enough.

#include "app/wiring.h"

#include <doctest/doctest.h>

#include "config/path_template.h"
#include "fakes/builders.h"
#include "provisioner/base_paths.h"
#include "provisioner/volume_rules.h"

using namespace lpp;
using namespace lpp::testing;

namespace {

/// All that a pattern can ask for.
constexpr const char* kEverything =
    "{{with .PVC}}{{.Name}} {{.Namespace}} {{.UID}} {{.GenerateName}} {{.ResourceVersion}} "
    "{{.CreationTimestamp}} {{.DeletionTimestamp}} {{.Labels}} {{.Annotations}} {{.Finalizers}} "
    "{{range .OwnerReferences}}{{.APIVersion}} {{.Kind}} {{.Name}} {{.UID}}{{end}}{{end}}";

std::string rendered(const k8s::PersistentVolumeClaim& claim) {
  const auto pattern = config::PathTemplate::parse(kEverything, "p");
  REQUIRE_MESSAGE(pattern.ok(), pattern.error().message);
  const auto text = pattern->render("pvc-1", claim.meta);
  REQUIRE_MESSAGE(text.ok(), text.error().message);
  return *text;
}

}  // namespace

TEST_CASE("patterns see all of a claim that waits for its volume") {
  const auto owner = nlohmann::json{{"apiVersion", "apps/v1"},
                                    {"kind", "StatefulSet"},
                                    {"name", "web"},
                                    {"uid", "5c1e"},
                                    {"controller", true}};
  const auto asked = claim("data")
                         .node("n1")
                         .label("app", "web")
                         .annotation("example.com/note", "x")
                         .finalizer("example.com/hold")
                         .deleting()
                         .set("/metadata/generateName", "da")
                         .set("/metadata/ownerReferences", nlohmann::json::array({owner}));
  k8s::PersistentVolumeClaim kept = asked.build();
  CHECK(app::trim_claims(kProvisionerName)(kept));
  CHECK(rendered(kept) == rendered(asked.build()));
  CHECK(rendered(kept) ==
        "data default uid-data da 1 2026-05-28 20:26:40 +0000 UTC 2026-05-28 20:27:00 +0000 UTC "
        "map[app:web] map[example.com/note:x volume.beta.kubernetes.io/storage-provisioner:"
        "rancher.io/local-path volume.kubernetes.io/selected-node:n1 "
        "volume.kubernetes.io/storage-provisioner:rancher.io/local-path] "
        "[kubernetes.io/pvc-protection example.com/hold] apps/v1 StatefulSet web 5c1e");
}

TEST_CASE("of a bound claim its sizes are kept as long as it grows, whoever it asked") {
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    auto bound = claim("data").volume("pvc-1").request("2Gi").capacity("1Gi").condition("Resizing");
    if (!ours) bound.no_provisioner();
    k8s::PersistentVolumeClaim grows = bound.growing("2Gi").build();
    CHECK(app::trim_claims(kProvisionerName)(grows));
    CHECK(grows.storage_request == "2Gi");
    CHECK(grows.capacity == "1Gi");
    CHECK(grows.allocated == "2Gi");
    CHECK(grows.resize_status == "ControllerResizeInProgress");
    CHECK(grows.conditions.size() == 1);
    CHECK(grows.phase == "Bound");
    k8s::PersistentVolumeClaim grown = bound.growing("2Gi", "").capacity("2Gi").build();
    CHECK(app::trim_claims(kProvisionerName)(grown));
    CHECK(grown.storage_request.empty());
    CHECK(grown.capacity.empty());
    CHECK(grown.allocated.empty());
    CHECK(grown.conditions.empty());
  }
}

TEST_CASE("of a bound claim it is kept that it is being deleted, whoever it asked") {
  k8s::PersistentVolumeClaim adopted =
      claim("data").volume("pv").no_provisioner().deleting().build();
  CHECK(app::trim_claims(kProvisionerName)(adopted));
  CHECK(adopted.meta.deleting());
}

TEST_CASE("of volumes that name a disk that is kept, and when they were made, whoever made them") {
  const auto trim = app::trim_volumes(kProvisionerName);
  for (const bool by_hand : {false, true}) {
    CAPTURE(by_hand);
    const auto made = [&](const std::string& name, const std::string& disk,
                          const std::string& when) {
      auto builder = volume(name)
                         .host_path("/opt/lp/" + name)
                         .node("n1")
                         .annotation("local.path.provisioner/disk", disk)
                         .annotation("local.path.provisioner/base-path", "/opt/lp")
                         .annotation("local.path.provisioner/selected-node", "n1")
                         .created(when);
      if (by_hand) builder.no_annotation("pv.kubernetes.io/provisioned-by");
      auto kept = builder.build();
      REQUIRE(trim(kept));
      return std::make_shared<const k8s::PersistentVolume>(std::move(kept));
    };
    k8s::StoreWriter<k8s::Node> nodes;
    nodes.put({"", "n1"}, lpp::testing::node("n1").shared());
    const provisioner::Volumes volumes{made("a", "disk-1", "2026-01-01T00:00:00Z"),
                                       made("b", "disk-2", "2026-03-01T00:00:00Z"),
                                       made("c", "disk-3", "2026-02-01T00:00:00Z")};
    CHECK(provisioner::disks_named(volumes, nodes, "n1", "/opt/lp", {"/opt/lp"}) ==
          std::vector<std::string>{"disk-2", "disk-3", "disk-1"});
  }
}

TEST_CASE("of volumes made by hand the directory is kept, so that none of ours overlaps it") {
  const auto trim = app::trim_volumes(kProvisionerName);
  const operation::Operation operation{
      .volume_name = "pvc-1", .node = "n1", .base_path = "/opt/lp", .path = "/opt/lp/default/data"};
  struct Row {
    const char* what;
    VolumeBuilder made;
    bool kept;
    bool in_the_way;
  };
  const auto by_hand = [] {
    return volume("other").no_annotation("pv.kubernetes.io/provisioned-by").label("a", "b");
  };
  for (const Row& row : std::vector<Row>{
           {"hostPath by hand", by_hand().host_path("/opt/lp/default/data"), true, true},
           {"local by hand", by_hand().local("/opt/lp/default/data/part"), true, true},
           {"around it", by_hand().host_path("/opt/lp/default"), true, true},
           {"the base path", by_hand().host_path("/opt/lp"), true, false},
           {"the base path, with a slash", by_hand().host_path("/opt/lp/"), true, false},
           {"around the base path", by_hand().host_path("/"), true, false},
           {"written in another way", by_hand().host_path("/opt//lp/./default/data/"), true, true},
           {"elsewhere", by_hand().host_path("/opt/lp/default/database"), true, false},
           {"of another provisioner",
            volume("other")
                .annotation("pv.kubernetes.io/provisioned-by", "example.com/other")
                .host_path("/opt/lp/default/data"),
            false, false},
           {"without a directory",
            by_hand().unset("/spec", "hostPath").set("/spec/csi/driver", "example.com"), false,
            false},
           {"on another node", by_hand().local("/opt/lp/default/data").node("n2"), true, false},
           {"on its node", by_hand().local("/opt/lp/default/data").node("n1"), true, true},
           {"ours", volume("other").host_path("/opt/lp/default/data"), true, true},
       }) {
    CAPTURE(row.what);
    k8s::PersistentVolume kept = row.made.build();
    REQUIRE(trim(kept) == row.kept);
    if (!row.kept) continue;
    CHECK(kept.meta.labels.empty());
    k8s::StoreWriter<k8s::Node> nodes;
    for (const char* name : {"n1", "n2"}) nodes.put({"", name}, lpp::testing::node(name).shared());
    k8s::StoreWriter<k8s::PersistentVolume> volumes;
    volumes.put(kept.meta.key(), std::make_shared<const k8s::PersistentVolume>(kept));
    const auto found =
        provisioner::overlapping_volume(volumes, nodes, operation, kProvisionerName, {});
    CHECK((found != nullptr) == row.in_the_way);
  }
}
