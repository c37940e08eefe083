// SPDX-License-Identifier: Apache-2.0
// Every request that cannot work as things stand: one row each.

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::refused_requests {

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;

namespace {

const ClaimKey kKey{{"default", "a"}, "uid-a"};

ClaimBuilder good_claim() { return claim("a").node("n1"); }
ClaimBuilder mended_claim() { return good_claim().resource_version("2"); }
StorageClassBuilder mended_class() { return storage_class().resource_version("2"); }

config::Config paths_of(const char* storage_class, const char* node) {
  config::Config config;
  config.classes[storage_class].node_path_map[node] = {"/data"};
  return config;
}

config::Config shared() {
  config::Config config;
  config.paths.shared_file_system_path = "/mnt/nfs";
  return config;
}

config::Config mended_config() {
  config::Config config;
  config.generation = 2;
  config.paths.node_path_map["n1"] = {"/data"};
  return config;
}

struct Row {
  const char* what;
  std::function<void(Scene&)> spoil;
  const char* says;
  std::function<void(Scene&)> mend;
};

void mend_claim(Scene& scene) { scene.put(mended_claim()); }
void mend_class(Scene& scene) { scene.put(mended_class()); }

/// A row whose claim is wrong, and one whose class is.
Row claim_row(const char* what, const ClaimBuilder& bad, const char* says) {
  return {what, [bad](Scene& scene) { scene.put(bad); }, says, mend_claim};
}
Row class_row(const char* what, const StorageClassBuilder& bad, const char* says) {
  return {what, [bad](Scene& scene) { scene.put(bad); }, says, mend_class};
}
Row pattern_row(const char* what, const char* parameter, const char* value, const char* says) {
  return class_row(what, storage_class().parameter(parameter, value), says);
}

std::vector<Row> rows() {
  const auto source = nlohmann::json{
      {"apiGroup", "snapshot.storage.k8s.io"}, {"kind", "VolumeSnapshot"}, {"name", "s"}};
  return {
      claim_row("selector", good_claim().set("/spec/selector/matchLabels/a", "b"),
                "claim.Spec.Selector is not supported"),
      claim_row("empty selector", good_claim().set("/spec/selector", nlohmann::json::object()),
                "claim.Spec.Selector is not supported"),
      claim_row("ReadWriteMany", good_claim().access_modes({"ReadWriteMany"}),
                "access mode ReadWriteMany is not supported"),
      claim_row("ReadOnlyMany", good_claim().access_modes({"ReadOnlyMany"}),
                "access mode ReadOnlyMany is not supported"),
      claim_row("one access mode of two",
                good_claim().access_modes({"ReadWriteOnce", "ReadOnlyMany"}),
                "access mode ReadOnlyMany is not supported"),
      claim_row("no access mode", good_claim().access_modes({}), "spec.accessModes is empty"),
      claim_row("Block", good_claim().volume_mode("Block"), "volumeMode Block is not supported"),
      claim_row("dataSource", good_claim().data_source("PersistentVolumeClaim", "other"),
                "dataSource PersistentVolumeClaim/other is not supported"),
      claim_row("dataSourceRef", good_claim().set("/spec/dataSourceRef", source),
                "dataSource VolumeSnapshot/s is not supported"),
      claim_row("volume type of the claim", good_claim().annotation("volumeType", "nfs"),
                "\"nfs\" is not a recognised volume type"),
      claim_row("empty volume type", good_claim().annotation("volumeType", ""),
                "\"\" is not a recognised volume type"),
      class_row("volume type of the class", storage_class().annotation("defaultVolumeType", "csi"),
                "\"csi\" is not a recognised volume type"),
      class_row("volume type by parameter", storage_class().parameter("volumeType", "csi"),
                "\"csi\" is not a recognised volume type"),
      class_row("mountOptions on hostPath", storage_class().mount_options({"ro"}),
                "has mountOptions, which hostPath volumes do not support"),
      claim_row("size zero", good_claim().request("0"), "is not a size that a volume can have"),
      claim_row("negative size", good_claim().request("-1Gi"),
                "is not a size that a volume can have"),
      claim_row("size beyond int64", good_claim().request("100E"),
                "is not a size that a volume can have"),
      claim_row("size that is none", good_claim().request("1 Gi"),
                "spec.resources.requests.storage"),
      {"Immediate without a shared filesystem",
       [](Scene& scene) {
         scene.put(claim("a"));
         scene.put(storage_class().binding_mode("Immediate"));
       },
       "no node was selected",
       [](Scene& scene) {
         auto config = shared();
         config.generation = 2;
         scene.use(std::move(config));
       }},
      {"local on a shared filesystem",
       [](Scene& scene) {
         scene.use(shared());
         scene.put(good_claim().annotation("volumeType", "local"));
       },
       "volume type local needs a node", mend_claim},
      {"Block on a shared filesystem",
       [](Scene& scene) {
         scene.use(shared());
         scene.put(good_claim().volume_mode("Block"));
       },
       "volumeMode Block is not supported", mend_claim},
      {"data source on a shared filesystem",
       [](Scene& scene) {
         scene.use(shared());
         scene.put(good_claim().data_source("VolumeSnapshot", "s"));
       },
       "dataSource VolumeSnapshot/s is not supported", mend_claim},
      {"class without paths", [](Scene& scene) { scene.use(paths_of("other", "n1")); },
       "has no paths for StorageClass \"local-path\"",
       [](Scene& scene) { scene.use(mended_config()); }},
      {"class that is not there",
       [](Scene& scene) {
         scene.classes.erase({"", "local-path"});
       },
       "storageClass \"local-path\" not found", mend_class},
      pattern_row("key of no label", "nodeAffinityKey", "no key!", "cannot be the key of a label"),
      pattern_row("user", "userPattern", "a b", "userPattern gives \"a b\""),
      pattern_row("group", "groupPattern", "-R", "groupPattern gives \"-R\""),
      pattern_row("mode", "permPattern", "0999", "permPattern gives \"0999\""),
      pattern_row("user of a label that is missing", "userPattern", "{{.PVC.Labels.uid}}",
                  "map has no entry for key \"uid\""),
      pattern_row("path with a label that is missing", "pathPattern",
                  "{{.PVC.Namespace}}/{{.PVC.Name}}/{{.PVC.Labels.app}}",
                  "map has no entry for key \"app\""),
      pattern_row("path that is no pattern", "pathPattern", "{{.PVC.Namespace", "pathPattern:1:"),
      pattern_row("path out of the claim's folder", "pathPattern",
                  "{{.PVC.Namespace}}/{{.PVC.Name}}/../x", "has the component \"..\""),
      pattern_row("path of another claim", "pathPattern", "shared/{{.PVC.Name}}",
                  "which must begin with \"default/a/\""),
      {"path out of the base",
       [](Scene& scene) {
         scene.put(storage_class()
                       .parameter("pathPattern", "../etc")
                       .parameter("allowUnsafePathPattern", "true"));
       },
       "which leads to or above the base path", mend_class},
      pattern_row("name that is too long", "pathPattern",
                  "{{.PVC.Namespace}}/{{.PVC.Name}}/{{printf \"%0256d\" 1}}",
                  "longer than 255 bytes"),
      pattern_row("path that is too long", "pathPattern",
                  "{{.PVC.Namespace}}/{{.PVC.Name}}/"
                  "{{range 40}}{{printf \"%0100d\" 1}}/{{end}}{{printf \"%0100d\" 1}}",
                  "is longer than 4095 bytes"),
      pattern_row("user beyond the last ID", "userPattern", "4294967295",
                  "userPattern gives \"4294967295\""),
  };
}

struct RefusalScene : Scene {
  RefusalScene() { put(good_claim()); }
  provisioner::Action step() { return reconciler.step(kKey); }
  ClaimReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE(
    "each request that cannot work gets one event, no helper pod, and another try on change") {
  std::set<std::string> events;
  for (const Row& row : rows()) {
    CAPTURE(row.what);
    RefusalScene scene;
    row.spoil(scene);
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
    REQUIRE(scene.events.lines.size() == 1);
    CHECK_MESSAGE(scene.events.lines[0].find(row.says) != std::string::npos, scene.events.lines[0]);
    CHECK(scene.events.lines[0].starts_with(
        "PersistentVolumeClaim/a Warning ProvisioningFailed: failed to provision volume with "
        "StorageClass \"local-path\": "));
    CHECK(scene.executor.started.empty());
    CHECK(scene.transport.requests().empty());

    // Nothing changes: silence until the resync, and then the same again.
    scene.clock.advance(std::chrono::minutes(14));
    CHECK(scene.step().kind == provisioner::Action::Kind::kAwaitChange);
    CHECK(scene.events.lines.size() == 1);
    scene.clock.advance(std::chrono::minutes(2));
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
    CHECK(scene.events.lines.size() == 2);
    CHECK(scene.executor.started.empty());

    // The cause goes: at once.
    row.mend(scene);
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.started.size() == 1);
  }
}

TEST_CASE("a node's label that was missing is seen when it comes") {
  RefusalScene scene;
  const std::string long_name = std::string(60, 'n') + ".example.com";
  scene.put(node(long_name).unset("/metadata", "labels"));
  config::Config config;
  config.paths.node_path_map[long_name] = {"/data"};
  scene.use(std::move(config));
  scene.put(claim("a").node(long_name));
  // The node's name cannot stand for the label, so the scheduler is asked for another one.
  scene.transport.on("PATCH", "/persistentvolumeclaims/a").reply(500);
  CHECK(scene.step() == provisioner::Action::retry());
  CHECK(scene.executor.started.empty());
  scene.put(node(long_name).label("kubernetes.io/hostname", "short"));
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
  CHECK(scene.executor.started.size() == 1);
}

TEST_CASE("requests that a shared filesystem can serve are not refused there") {
  for (const auto& row : std::initializer_list<std::pair<const char*, ClaimBuilder>>{
           {"ReadWriteMany", claim("a").access_modes({"ReadWriteMany"})},
           {"ReadOnlyMany", claim("a").access_modes({"ReadOnlyMany"})},
           {"selector", claim("a").set("/spec/selector/matchLabels/a", "b")},
           {"with a node", claim("a").node("n2")}}) {
    CAPTURE(row.first);
    RefusalScene scene;
    scene.use(shared());
    scene.put(storage_class().binding_mode("Immediate"));
    scene.put(row.second);
    (void)scene.step();
    REQUIRE(scene.executor.started.size() == 1);
    CHECK(scene.executor.started[0].path == "/mnt/nfs/pvc-uid-a_default_a");
    CHECK(scene.executor.started[0].shared);
  }
}

TEST_CASE("ReadWriteOncePod and both modes of one node's own paths are served") {
  for (const auto& modes : std::vector<std::vector<std::string>>{
           {"ReadWriteOnce"}, {"ReadWriteOncePod"}, {"ReadWriteOnce", "ReadWriteOncePod"}}) {
    RefusalScene scene;
    scene.put(good_claim().access_modes(modes));
    (void)scene.step();
    CHECK(scene.executor.started.size() == 1);
  }
}

}  // namespace lpp::provisioner::refused_requests
