// SPDX-License-Identifier: Apache-2.0
// What classes and annotations ask for, on a real node's disk: one installation with several
// classes, and all claims at once.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "disk.h"
#include "harness/applied_objects.h"
#include "real_agents.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr const char* kNamespace = "classes";

struct Classes {
  explicit Classes(By by)
      : played("classes", by, {.base_paths = base_paths()}),
        story(*played),
        base(story.bed->base_paths().front()),
        volumes(required_setting("LPP_E2E_VOLUMES")),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, kNamespace))) {
    const auto paths = [](const json& list) {
      const json entry = {{"node", "DEFAULT_PATH_FOR_NON_LISTED_NODES"}, {"paths", list}};
      return json{{"nodePathMap", json::array({entry})}};
    };
    json config = paths({base});
    config["storageClassConfigs"] = {{"own-path", paths({volumes + "/a", volumes + "/b"})},
                                     {"one-of-them", paths({volumes + "/a", volumes + "/b"})},
                                     {"shared", {{"sharedFileSystemPath", volumes + "/shared"}}}};
    LPP_MUST(story.installation->write_config(config));
    played.start();
  }

  static std::vector<std::string> base_paths() {
    std::vector<std::string> paths;
    for (const char* name : {"/first", "/a", "/b", "/shared"}) {
      paths.push_back(required_setting("LPP_E2E_VOLUMES") + name);
    }
    return paths;
  }

  void add_class(ClassSpec spec) { LPP_MUST(applied.apply(class_object(spec))); }
  /// A claim for the node, as if a pod had been scheduled there.
  void add_claim(const std::string& name, const std::string& storage_class,
                 const json& labels = json::object(), const std::string& type = "") {
    ClaimSpec spec{.key = applied.key(name),
                   .storage_class = storage_class,
                   .selected_node = story.bed->nodes().front()};
    if (!type.empty()) spec.annotations["volumeType"] = type;
    json claim = claim_object(spec);
    claim["metadata"]["labels"] = labels;
    LPP_MUST(applied.apply(claim));
  }
  /// A pod that is not root and writes into its volume.
  void add_pod(const std::string& claim, const json& security) {
    json pod = pod_object({.key = applied.key(claim),
                           .claim = claim,
                           .script = "id >/data/who && stat -c '%u:%g' /data/who >/data/owner"});
    pod["spec"]["securityContext"] = security;
    LPP_MUST(applied.apply(pod));
  }
  VolumeFacts bound(const std::string& claim) {
    return LPP_MUST(story.audit.wait_bound(applied.key(claim)));
  }
  json source(const std::string& claim) {
    const json pv = LPP_MUST(story.admin().get(k8s::kPersistentVolumes, {"", bound(claim).pv}));
    return pv["spec"].contains("local") ? "local" : "hostPath";
  }
  std::string below(const std::string& folder, const std::string& claim) {
    return folder + "/" + bound(claim).pv + "_" + kNamespace + "_" + claim;
  }

  StoryBy played;
  RealStory& story;
  const std::string base;
  const std::string volumes;
  AppliedObjects applied;
};

void check_paths_of_classes(Classes& on) {
  const auto own = on.bound("own-path");
  const bool in_one = own.path == on.below(on.volumes + "/a", "own-path") ||
                      own.path == on.below(on.volumes + "/b", "own-path");
  CHECK_MESSAGE(in_one, own.path);
  CHECK(on.bound("one-of-them").path == on.below(on.volumes + "/b", "one-of-them"));
  // A class that is not listed uses the common paths.
  CHECK(on.bound("not-listed").path == on.below(on.base, "not-listed"));
  // Made before any pod, without a node, in the class's shared filesystem.
  CHECK(on.bound("shared").path == on.below(on.volumes + "/shared", "shared"));
  CHECK(on.bound("shared").node == "");
  // Volumes are open to every pod; their base folder is closed to other users of the node.
  CHECK(mode_and_owner(on.bound("one-of-them").disk) == "0777 0:0");
  CHECK(mode_and_owner(on.volumes + "/b") == "0700 0:0");
}

void check_owner_and_mode(Classes& on) {
  const auto owned = on.bound("owned");
  CHECK(owned.path == on.base + "/" + kNamespace + "/owned/of-1234");
  CHECK(mode_and_owner(owned.disk) == "0750 1234:2000");
  const auto found = on.bound("found");
  CHECK(found.path == on.base + "/" + kNamespace + "/found/of-4321");
  CHECK(mode_and_owner(found.disk) == "0750 4321:2000");
  CHECK(text_of(found.disk + "/data") == "from before");
  CHECK(mode_and_owner(on.bound("by-annotation").disk) == "0711 0:0");
}

void check_volume_types(Classes& on) {
  CHECK(on.source("type-of-class") == "local");
  CHECK(on.source("type-of-parameter") == "local");
  CHECK(on.source("type-of-claim") == "hostPath");
}

/// Kubernetes applies fsGroup to local volumes only; in a hostPath volume any user can write.
void check_security_contexts(Classes& on) {
  LPP_MUST(on.applied.wait_succeeded("open"));
  const auto open = on.bound("open");
  CHECK(mode_and_owner(open.disk) == "0777 0:0");
  CHECK(text_of(open.disk + "/who").find("uid=1000 gid=3000") == 0);
  CHECK(text_of(open.disk + "/owner") == "1000:3000\n");
  LPP_MUST(on.applied.wait_succeeded("grouped"));
  const auto grouped = on.bound("grouped");
  CHECK(mode_and_owner(grouped.disk) == "2777 0:2000");
  CHECK(text_of(grouped.disk + "/owner") == "1000:2000\n");
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: paths and owners and modes and types are what classes and claims ask for") {
  Classes on(by);
  on.add_class({.name = "own-path"});
  on.add_class({.name = "one-of-them", .parameters = {{"nodePath", on.volumes + "/b"}}});
  on.add_class({.name = "not-listed"});
  on.add_class({.name = "shared", .binding_mode = "Immediate"});
  on.add_class(
      {.name = "owned",
       .parameters = {
           {"pathPattern", "{{ .PVC.Namespace }}/{{ .PVC.Name }}/of-{{ .PVC.Labels.user }}"},
           {"userPattern", "{{ .PVC.Labels.user }}"},
           {"groupPattern", "{{ index .PVC.Labels \"example.com/group\" }}"},
           {"permPattern", "{{ if eq .PVC.Namespace \"classes\" }}0750{{ end }}"}}});
  on.add_class({.name = "by-annotation", .annotations = {{"permPattern", "711"}}});
  on.add_class({.name = "type-of-class", .annotations = {{"defaultVolumeType", "local"}}});
  on.add_class({.name = "type-of-parameter", .parameters = {{"volumeType", "Local"}}});
  // A directory from before that is open to everybody.
  const std::string before = on.base + "/" + kNamespace + "/found/of-4321";
  write_text(before + "/data", "from before");
  std::filesystem::permissions(before, std::filesystem::perms::all);

  for (const char* name : {"own-path", "one-of-them", "not-listed", "by-annotation",
                           "type-of-class", "type-of-parameter"}) {
    on.add_claim(name, name);
  }
  LPP_MUST(on.applied.apply(claim_object({.key = on.applied.key("shared"),
                                          .storage_class = "shared",
                                          .access_mode = "ReadWriteMany"})));
  on.add_claim("owned", "owned", {{"user", "1234"}, {"example.com/group", "2000"}});
  on.add_claim("found", "owned", {{"user", "4321"}, {"example.com/group", "2000"}});
  on.add_claim("type-of-claim", "type-of-class", json::object(), "hostPath");
  on.add_claim("open", "not-listed");
  on.add_claim("grouped", "not-listed", json::object(), "local");
  on.add_pod("open", {{"runAsUser", 1000}, {"runAsGroup", 3000}, {"fsGroup", 2000}});
  on.add_pod("grouped", {{"runAsUser", 1000}, {"runAsGroup", 3000}, {"fsGroup", 2000}});

  check_paths_of_classes(on);
  check_owner_and_mode(on);
  check_volume_types(on);
  check_security_contexts(on);

  LPP_MUST(on.applied.remove_pods());
  LPP_MUST(on.applied.remove_claims());
  LPP_MUST(wait_until(
      "no volume and no helper pod is left",
      [&]() -> std::string {
        const auto pvs = on.story.admin().list(k8s::kPersistentVolumes);
        if (!pvs.ok()) return pvs.error().message;
        return pvs->empty() ? on.story.audit.leftovers() : std::to_string(pvs->size());
      },
      on.story.bed->patience()));
  for (const std::string& folder : Classes::base_paths()) {
    CAPTURE(folder);
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      CHECK(entry.path().filename() == ".local-path-provisioner");  // agents' records
    }
  }
  LPP_MUST(on.story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
