// SPDX-License-Identifier: Apache-2.0
// Volumes as every version of the provisioner wrote them, and what becomes of their directories.

#include <doctest/doctest.h>

#include <functional>
#include <tuple>

#include "provisioner/names.h"
#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

namespace {

constexpr const char* kName = "pvc-uid-a";
constexpr const char* kUsualPath = "/data/pvc-uid-a_default_a";
constexpr const char* kHostname = "kubernetes.io/hostname";
constexpr const char* kNodeOf = "local.path.provisioner/selected-node";

/// Released, as v0.0.37 wrote it but for where it is.
VolumeBuilder base() {
  return volume(kName)
      .claim("default", "a")
      .released()
      .host_path("/data/pvc-uid-a_default_a")
      .finalizer("kubernetes.io/pv-protection");
}

nlohmann::json affinity(const char* list, const char* key, const std::vector<std::string>& values) {
  const nlohmann::json requirement{{"key", key}, {"operator", "In"}, {"values", values}};
  nlohmann::json term;
  term[list] = nlohmann::json::array({requirement});
  return {{"required", {{"nodeSelectorTerms", nlohmann::json::array({term})}}}};
}

VolumeBuilder on(const char* list, const char* key, const std::vector<std::string>& values) {
  return base().set("/spec/nodeAffinity", affinity(list, key, values));
}

nlohmann::json in(const char* key, const std::vector<std::string>& values) {
  return {{"key", key}, {"operator", "In"}, {"values", values}};
}

/// The expressions of each term.
VolumeBuilder terms(const std::vector<std::vector<nlohmann::json>>& all) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& expressions : all) list.push_back({{"matchExpressions", expressions}});
  return base().set("/spec/nodeAffinity/required/nodeSelectorTerms", list);
}

struct Row {
  const char* what;
  VolumeBuilder made;
  const char* node;  // where the directory is removed; "" = anywhere
  const char* path = "/data/pvc-uid-a_default_a";
  std::function<void(Scene&)> around = [](Scene&) {};
  const char* volume_mode = "Filesystem";
};

void only_shared(Scene& scene) {
  config::Config config;
  config.paths.shared_file_system_path = "/mnt/nfs";
  scene.use(std::move(config));
}

void only_other_class(Scene& scene) {
  config::Config config;
  config.classes["other"].node_path_map["n9"] = {"/elsewhere"};
  scene.use(std::move(config));
}

void label_n1_as_n3(Scene& scene) { scene.put(node("n1").label(kHostname, "n3")); }

void add_bare_node(Scene& scene) { scene.put(node("bare").unset("/metadata/labels", kHostname)); }

void put_n2_in_a_zone(Scene& scene) { scene.put(node("n2").label("example.com/zone", "z1")); }

std::vector<Row> rows() {
  const auto hostname = [](const char* value) {
    return on("matchExpressions", "kubernetes.io/hostname", {value});
  };
  const auto nfs = [] { return base().host_path("/mnt/nfs/pvc-uid-a_default_a"); };
  return {
      {"v0.0.37, hostPath", hostname("n1").annotation(kNodeOf, "n1"), "n1"},
      {"v0.0.37, local",
       hostname("n1").annotation(kNodeOf, "n1").local("/data/pvc-uid-a_default_a"), "n1"},
      {"hostname without the annotation", hostname("n2"), "n2"},
      {"hostname that is not the node's name", hostname("host-3"), "n3"},
      {"hostname that is another node's name", hostname("n3").annotation(kNodeOf, "n1"), "n1",
       kUsualPath, label_n1_as_n3},
      {"hostname that is another node's name, without the annotation", hostname("n3"), "n1",
       kUsualPath, label_n1_as_n3},
      {"node without the label", hostname("bare"), "bare", kUsualPath, add_bare_node},
      {"node without the label, with the annotation", hostname("bare").annotation(kNodeOf, "bare"),
       "bare", kUsualPath, add_bare_node},
      {"hostname label that came later", hostname("n3"), "n3"},
      {"node renamed, its label kept", hostname("host-3").annotation(kNodeOf, "old-name"), "n3"},
      {"custom affinity key", on("matchExpressions", "example.com/stable", {"s3"}), "n3"},
      {"custom affinity key, node made anew under another name",
       on("matchExpressions", "example.com/stable", {"s3"}).annotation(kNodeOf, "gone"), "n3"},
      {"custom affinity key, label missing at that time",
       on("matchExpressions", "example.com/other", {"n3"}).annotation(kNodeOf, "n3"), "n3"},
      {"v0.0.29, by field", on("matchFields", "metadata.name", {"n2"}), "n2"},
      {"v0.0.29, by field, with the annotation",
       on("matchFields", "metadata.name", {"n2"}).annotation(kNodeOf, "n2"), "n2"},
      {"several values, and the annotation says which",
       on("matchExpressions", kHostname, {"n1", "n2"}).annotation(kNodeOf, "n2"), "n2"},
      {"several expressions", terms({{in("example.com/zone", {"z1"}), in(kHostname, {"n2"})}}),
       "n2", kUsualPath, put_n2_in_a_zone},
      {"several expressions, the others changed since",
       terms({{in(kHostname, {"n2"}), in("example.com/zone", {"gone"})}}), "n2", kUsualPath,
       put_n2_in_a_zone},
      {"several terms for one node", terms({{in(kHostname, {"n2"})}, {in(kHostname, {"n2"})}}),
       "n2"},
      {"several terms, and the annotation says which",
       terms({{in(kHostname, {"n1"})}, {in(kHostname, {"n2"})}}).annotation(kNodeOf, "n1"), "n1"},
      {"shared filesystem, bound at once", nfs().annotation(kNodeOf, ""), "",
       "/mnt/nfs/pvc-uid-a_default_a", only_shared},
      {"shared filesystem, made on a node", nfs().annotation(kNodeOf, "n1"), "",
       "/mnt/nfs/pvc-uid-a_default_a", only_shared},
      {"shared filesystem, node gone", nfs().annotation(kNodeOf, "gone"), "",
       "/mnt/nfs/pvc-uid-a_default_a", only_shared},
      {"shared filesystem that is not configured any more, made on a node",
       nfs().annotation(kNodeOf, "n1"), "n1", "/mnt/nfs/pvc-uid-a_default_a"},
      {"path in an odd spelling", hostname("n1").host_path("/data//pvc-uid-a_default_a/./y/"), "n1",
       "/data/pvc-uid-a_default_a/y"},
      {"local path in an odd spelling", hostname("n1").local("//data/./pvc-uid-a_default_a/"),
       "n1"},
      {"a block device's volume", hostname("n1").set("/spec/volumeMode", "Block"), "n1", kUsualPath,
       [](Scene&) {}, "Block"},
      {"a node's path after a switch to a shared filesystem",
       hostname("n1").annotation(kNodeOf, "n1"), "n1", "/data/pvc-uid-a_default_a", only_shared},
      {"path not in the configuration", hostname("n1").host_path("/old/disk/pvc-uid-a_default_a"),
       "n1", "/old/disk/pvc-uid-a_default_a"},
      {"class not in the configuration", hostname("n1"), "n1", "/data/pvc-uid-a_default_a",
       only_other_class},
      {"class deleted", hostname("n1").storage_class("gone"), "n1"},
      {"class without a name", hostname("n1").unset("/spec", "storageClassName"), "n1"},
      {"folders of a path pattern", hostname("n1").host_path("/data/default/a/x"), "n1",
       "/data/default/a/x"},
      {"a path pattern without the volume's name, from before v0.0.30",
       hostname("n1").host_path("/data/any-name"), "n1", "/data/any-name"},
      {"made by another version of ours, with our finalizer",
       hostname("n1").finalizer("external-provisioner.volume.kubernetes.io/finalizer"), "n1"},
      {"migrated to us",
       hostname("n1")
           .no_annotation("pv.kubernetes.io/provisioned-by")
           .annotation("pv.kubernetes.io/migrated-to", kProvisionerName),
       "n1"},
      {"volume mode not set", hostname("n1").unset("/spec", "volumeMode"), "n1"},
      {"size of a quantity that is odd", hostname("n1").capacity("1500m"), "n1"},
  };
}

struct OldScene : Scene {
  OldScene() {
    put(node("n3").label("kubernetes.io/hostname", "host-3").label("example.com/stable", "s3"));
    // They come without our finalizer, mostly: it is added first.
    transport.on("PATCH", "/persistentvolumes/pvc-uid-a").always([this](const auto&) {
      auto patched = nlohmann::json::parse(served.at(kName));
      patched["metadata"]["finalizers"] =
          nlohmann::json::array({"external-provisioner.volume.kubernetes.io/finalizer"});
      return k8s::Response{.status = 200, .body = patched.dump(), .content_type = kJson};
    });
  }
  provisioner::Action step() { return reconciler.step(kName); }
  VolumeReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("the directory of a volume of any older version is removed where it is") {
  for (const Row& row : rows()) {
    CAPTURE(row.what);
    OldScene scene;
    row.around(scene);
    scene.put(row.made);
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    REQUIRE(scene.executor.started.size() == 1);
    const auto& operation = scene.executor.started[0];
    CHECK(operation.kind == Kind::kRemove);
    CHECK(operation.node == row.node);
    CHECK(operation.path == row.path);
    CHECK(operation.volume_mode == row.volume_mode);
    CHECK(scene.events.lines.empty());

    if (scene.transport.count("DELETE", "") == 1) {
      scene.put(VolumeBuilder(row.made).deleting().finalizer(std::string(provisioner::kFinalizer)));
    }
    scene.executor.succeed(Kind::kRemove, kName);
    (void)scene.step();
    CHECK(scene.transport.count("DELETE", "/persistentvolumes/pvc-uid-a") == 1);
    CHECK(scene.events.lines.empty());
  }
}

TEST_CASE("a volume of any older version whose node is gone is let go, and that is said") {
  for (const auto& row : std::initializer_list<std::pair<const char*, VolumeBuilder>>{
           {"hostname", on("matchExpressions", "kubernetes.io/hostname", {"gone"})},
           {"field", on("matchFields", "metadata.name", {"gone"})},
           {"with the annotation", on("matchExpressions", "kubernetes.io/hostname", {"gone"})
                                       .annotation(kNodeOf, "gone")}}) {
    CAPTURE(row.first);
    OldScene scene;
    scene.put(row.second);
    scene.transport.on("GET", "/nodes/gone").reply(404);
    scene.transport.on("DELETE", "/persistentvolumes/").reply(200);
    (void)scene.step();
    CHECK(scene.executor.started.empty());
    REQUIRE(scene.events.lines.size() == 1);
    CHECK(scene.events.lines[0].find("Warning VolumeNodeGone") != std::string::npos);
    CHECK(scene.events.lines[0].find("gone") != std::string::npos);
    CHECK(scene.transport.count("DELETE", "/persistentvolumes/") == 1);
  }
}

TEST_CASE("a volume is not let go because no node has its label: somebody may have edited it") {
  OldScene scene;
  scene.put(on("matchExpressions", "example.com/stable", {"gone"}));
  CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.requests().empty());
  REQUIRE(scene.events.lines.size() == 1);
  CHECK(scene.events.lines[0].find("name it with the volume's annotation") != std::string::npos);
  // Named, it is asked for.
  scene.put(on("matchExpressions", "example.com/stable", {"gone"})
                .annotation(kNodeOf, "gone")
                .resource_version("2"));
  scene.transport.on("GET", "/nodes/gone").reply(404);
  scene.transport.on("DELETE", "/persistentvolumes/").reply(200);
  (void)scene.step();
  CHECK(scene.events.lines.back().find("Warning VolumeNodeGone") != std::string::npos);
}

TEST_CASE("Retain keeps the data of a volume of any older version") {
  for (const Row& row : rows()) {
    CAPTURE(row.what);
    OldScene scene;
    row.around(scene);
    VolumeBuilder kept = row.made;
    kept.reclaim_policy("Retain").unset("/metadata", "finalizers");
    for (const char* phase : {"Bound", "Released", "Available", "Failed"}) {
      scene.put(kept.phase(phase));
      CHECK(scene.step() == provisioner::Action::done());
    }
    scene.put(kept.phase("Released").deleting());
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.executor.started.empty());
    CHECK(scene.transport.requests().empty());
  }
}

TEST_CASE("a volume of an older version that cannot be removed safely says why and stays") {
  for (const auto& [made, says] : std::initializer_list<std::pair<VolumeBuilder, const char*>>{
           {base().unset("/spec", "hostPath"), "neither hostPath.path nor local.path"},
           {base().host_path("/data"), "directly under the root"},
           {base().host_path("/data/../x"), "relative component"},
           {base().host_path("/etc/x"), "system directory"},
           {base().host_path("relative/x"), "is not absolute"}}) {
    OldScene scene;
    scene.put(VolumeBuilder(made).node("n1"));
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
    REQUIRE(scene.events.lines.size() == 1);
    CHECK_MESSAGE(scene.events.lines[0].find(says) != std::string::npos, scene.events.lines[0]);
    CHECK(scene.executor.started.empty());
    CHECK(scene.transport.requests().empty());
  }
}

TEST_CASE("a volume of an older version stays where it is not clear on which node it is") {
  nlohmann::json not_in = in(kHostname, {"n1"});
  not_in["operator"] = "NotIn";
  for (const auto& row : std::initializer_list<std::tuple<const char*, VolumeBuilder, const char*>>{
           {"NotIn", terms({{not_in}}), "is met by several nodes: bare, empty, n2, n3"},
           {"two values", terms({{in(kHostname, {"n1", "n2"})}}), "several nodes: n1, n2"},
           {"two values, one of a node that is gone", terms({{in(kHostname, {"gone", "n2"})}}),
            "it could have been on another one"},
           {"two terms", terms({{in(kHostname, {"n1"})}, {in(kHostname, {"n2"})}}),
            "several nodes: n1, n2"},
           {"two terms, one of a node that is gone",
            terms({{in(kHostname, {"n1"})}, {in(kHostname, {"gone"})}}),
            "it could have been on another one"},
           {"a label of several nodes", terms({{in("kubernetes.io/os", {"linux"})}}), "several"},
           {"the annotation names another node",
            terms({{in(kHostname, {"n2"})}}).annotation(kNodeOf, "n1"), "annotation names node n1"},
           {"no affinity", base(), "no node affinity"},
           {"no affinity, node gone", base().annotation(kNodeOf, "gone"), "no node affinity"},
           {"a shared filesystem that is not configured any more",
            base().host_path("/mnt/nfs/pvc-uid-a_default_a").annotation(kNodeOf, ""),
            "no node affinity"}}) {
    const auto& [what, made, says] = row;
    CAPTURE(std::get<0>(row));
    OldScene scene;
    add_bare_node(scene);
    scene.put(made);
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
    REQUIRE(scene.events.lines.size() == 1);
    CHECK(scene.events.lines[0].find("Warning VolumeFailedDelete") != std::string::npos);
    CHECK_MESSAGE(scene.events.lines[0].find(says) != std::string::npos, scene.events.lines[0]);
    CHECK(scene.executor.started.empty());
    CHECK(scene.transport.requests().empty());
  }
}

TEST_CASE("a volume of somebody else that shows a whole base path is in nobody's way") {
  OldScene scene;
  const auto backup =
      volume("backup").host_path("/data").no_annotation("pv.kubernetes.io/provisioned-by");
  scene.put(backup);
  scene.put(base().node("n1"));
  (void)scene.step();
  CHECK(scene.executor.started.size() == 1);
  CHECK(scene.events.lines.empty());
  // Inside the base path it is.
  OldScene inside;
  inside.put(VolumeBuilder(backup).host_path("/data/pvc-uid-a_default_a/part"));
  inside.put(base().node("n1"));
  CHECK(inside.step() == provisioner::Action::await_change(kRecheck));
  CHECK(inside.executor.started.empty());
  CHECK(inside.events.lines.size() == 1);
}
