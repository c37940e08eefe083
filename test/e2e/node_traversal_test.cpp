// SPDX-License-Identifier: Apache-2.0
// Attempts to reach what is not the volume's, on a real node: by patterns, by what claims put into
// them, by volumes made by hand, and by links on the disk.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "disk.h"
#include "harness/applied_objects.h"
#include "real_agents.h"

namespace lpp::testing::node_traversal {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kNamespace = "traversal";

/// A claim whose annotation "folder" goes into the pattern of its class.
struct Attempt {
  std::string name;
  const char* storage_class;
  std::string folder;
  std::vector<std::string> why;  // parts of the event; none: it is no attempt, only a strange name
};

/// A volume made by hand, released, as if it were ours.
struct Forgery {
  std::string name;
  std::string path;
  std::vector<std::string> why;
};

struct Traversal {
  explicit Traversal(By by)
      : played("traversal", by),
        story(*played),
        node(story.bed->nodes().front()),
        base(story.bed->base_paths().front()),
        canary(required_setting("LPP_E2E_VOLUMES") + "/canary"),
        applied(LPP_MUST(AppliedObjects::in_namespace(*story.bed, kNamespace))) {
    fs::remove_all(canary);
    write_text(canary + "/data/file", "precious");
    write_text(canary + "/data/below/file", "precious too");
    fs::create_symlink("../data", canary + "/link");
    LPP_MUST(story.installation->write_config(
        {{"nodePathMap", json::array({{{"node", node}, {"paths", {base}}}})}}));
    played.start();
  }

  void add_class(const std::string& name, const std::string& pattern, bool any_folder) {
    LPP_MUST(applied.apply(
        class_object({.name = name,
                      .parameters = {{"pathPattern", pattern},
                                     {"allowUnsafePathPattern", any_folder ? "true" : "false"}}})));
  }
  void add_claim(const std::string& name, const std::string& storage_class,
                 const std::string& folder) {
    LPP_MUST(applied.apply(claim_object({.key = applied.key(name),
                                         .storage_class = storage_class,
                                         .selected_node = node,
                                         .annotations = {{"folder", folder}}})));
  }
  void add_released_volume(const std::string& name, const std::string& path) {
    json volume =
        volume_object({.name = name,
                       .node = node,
                       .path = path,
                       .annotations = {{"pv.kubernetes.io/provisioned-by", "rancher.io/local-path"},
                                       {"local.path.provisioner/selected-node", node}}});
    volume["spec"]["claimRef"] = {{"kind", "PersistentVolumeClaim"},
                                  {"namespace", kNamespace},
                                  {"name", name + "-claim"},
                                  {"uid", "6b6b0b9e-1111-4222-8333-" + std::string(12, '0')}};
    LPP_MUST(applied.apply(volume));
  }
  VolumeFacts bound(const std::string& claim) {
    return LPP_MUST(story.audit.wait_bound(applied.key(claim)));
  }
  /// All of them are tried at once; each is refused for its reason.
  void refused(const std::vector<Forgery>& forgeries) {
    for (const auto& forgery : forgeries) add_released_volume(forgery.name, forgery.path);
    for (const auto& forgery : forgeries) {
      CAPTURE(forgery.path);
      LPP_MUST(wait_event(*story.bed, "PersistentVolume", {"", forgery.name}, forgery.why));
    }
    // What has been tried is held by our finalizer until its directory is gone, and that stays.
    for (const auto& forgery : forgeries) {
      LPP_MUST(story.admin().merge(k8s::kPersistentVolumes, {"", forgery.name},
                                   {{"metadata", {{"finalizers", nullptr}}}}));
      LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", forgery.name}));
    }
  }
  /// The names in the base folder, but agents' records.
  std::vector<std::string> in_base() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(base)) {
      const std::string name = entry.path().filename();
      if (name != ".local-path-provisioner") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Of all that nobody may touch; agents write their records.
  std::string tree() {
    std::string all = tree_of(canary);
    std::istringstream lines(tree_of(base));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(".local-path-provisioner") == std::string::npos) all += line + "\n";
    }
    return all;
  }

  StoryBy played;
  RealStory& story;
  const std::string node;
  const std::string base;
  const std::string canary;
  AppliedObjects applied;
};

LPP_PODS_AND_AGENTS_TEST_CASE("real node: no claim gets a volume outside of its own directory") {
  Traversal on(by);
  const std::string failed = "Warning ProvisioningFailed: ";
  on.add_class("own", "{{ .PVC.Namespace }}/{{ .PVC.Name }}/{{ .PVC.Annotations.folder }}", false);
  on.add_class("own-cut", "{{ .PVC.Namespace }}/{{ .PVC.Annotations.folder }}", false);
  on.add_class("any", "{{ .PVC.Annotations.folder }}", true);
  on.add_class("text", "{{ .PVC.Namespace }}/{{ .PVC.Name }}/../../canary", false);
  LPP_MUST(
      on.applied.apply(class_object({.name = "node-path", .parameters = {{"nodePath", "/etc"}}})));

  // Somebody else's volume, with data.
  on.add_claim("victim", "own", "v");
  const auto victim = on.bound("victim");
  write_text(victim.disk + "/data", "somebody else's");
  const std::string before = tree_of(on.canary) + tree_of(victim.disk);
  const std::string beside = std::string("../") + fs::path(on.canary).filename().string();

  // A volume that somebody made by hand, for data that is there already.
  const std::string taken = on.base + "/" + kNamespace + "/taken/v";
  LPP_MUST(on.applied.apply({{"apiVersion", "v1"},
                             {"kind", "PersistentVolume"},
                             {"metadata", {{"name", "by-hand"}}},
                             {"spec",
                              {{"accessModes", {"ReadWriteOnce"}},
                               {"capacity", {{"storage", "1Mi"}}},
                               {"hostPath", {{"path", taken}}},
                               {"persistentVolumeReclaimPolicy", "Retain"},
                               {"storageClassName", "by-hand"}}}}));

  // A link that was left where the next claim of that name gets its folder.
  const std::string link = on.base + "/" + kNamespace + "/linked";
  fs::create_directory_symlink(on.canary + "/data", link);

  const std::vector<Attempt> attempts = {
      {"linked", "own", "below", {failed, "symbolic link"}},
      {"up", "own", "..", {failed, "component \"..\""}},
      {"up-to-the-base", "own", "../..", {failed, "component \"..\""}},
      {"up-to-the-canary", "own", "../../" + beside, {failed, "component \"..\""}},
      {"down-and-up", "own", "a/../../../" + beside, {failed, "component \"..\""}},
      {"here", "own", ".", {failed, "component \".\""}},
      {"absolute", "own", on.canary, {failed, "empty component"}},
      {"doubled", "own", "a//b", {failed, "empty component"}},
      {"newline", "own", "a\n..", {failed, "control character"}},
      {"escape", "own", "a\x1b[2J", {failed, "control character"}},
      {"long", "own", std::string(256, 'x'), {failed, "longer than 255"}},
      {"neighbour", "own-cut", "victim/v", {failed, "must begin with"}},
      {"name-prefix", "own-cut", "name-prefix-and-more", {failed, "must begin with"}},
      {"any-up", "any", beside, {failed, "to or above the base path"}},
      {"any-here", "any", ".", {failed, "to or above the base path"}},
      {"any-nothing", "any", "", {failed, "to or above the base path"}},
      {"any-root", "any", "/", {failed, "to or above the base path"}},
      {"any-climb", "any", "a/../../canary", {failed, "to or above the base path"}},
      {"any-victim", "any", "traversal/victim/v", {failed, "overlaps", victim.path}},
      {"any-in-victim", "any", "traversal/victim/v/data", {failed, "overlaps", victim.path}},
      {"any-around-victim", "any", "traversal", {failed, "overlaps"}},
      {"taken", "own", "v", {failed, "overlaps", taken}},
      {"text", "text", "", {failed, "component \"..\""}},
      {"node-path", "node-path", "", {failed, "doesn't contain path /etc"}},
      // Below the base as it is written, wherever it came from.
      {"any-absolute", "any", on.canary, {}},
      {"shell", "own", "$(touch x); rm -rf `pwd` '\" & *", {}},
      {"variable", "own", "$(VOL_DIR)-$$(VOL_DIR)", {}},
      {"dashes", "own", "-rf", {}},
  };
  for (const auto& attempt : attempts) {
    on.add_claim(attempt.name, attempt.storage_class, attempt.folder);
  }
  for (const auto& attempt : attempts) {
    CAPTURE(attempt.name);
    if (!attempt.why.empty()) {
      LPP_MUST(wait_event(*on.story.bed, "PersistentVolumeClaim", on.applied.key(attempt.name),
                          attempt.why));
      continue;
    }
    const std::string own = std::string(kNamespace) + "/" + attempt.name + "/";
    const bool any = attempt.folder == on.canary;
    const auto facts = on.bound(attempt.name);
    CHECK(facts.path == on.base + (any ? "" : "/" + own) + attempt.folder);
  }
  CHECK(tree_of(on.canary) + tree_of(victim.disk) == before);
  const std::string first_of_canary = on.canary.substr(1, on.canary.find('/', 1) - 1);
  CHECK(on.in_base() == std::vector<std::string>{first_of_canary, kNamespace});
  LPP_MUST(wait_until(
      "only helper pods that failed are left",
      [&]() -> std::string {
        const auto pods = on.story.admin().list(k8s::kPods, kDaemonNamespace);
        if (!pods.ok()) return pods.error().message;
        return pods->size() <= 4 ? "" : std::to_string(pods->size());
      },
      on.story.bed->patience()));

  fs::remove(link);
  LPP_MUST(on.applied.remove_claims());
  LPP_MUST(on.story.admin().remove_and_wait(k8s::kPersistentVolumes, {"", "by-hand"}));
  LPP_MUST(wait_until(
      "all volumes are gone",
      [&]() -> std::string {
        const auto pvs = on.story.admin().list(k8s::kPersistentVolumes);
        if (!pvs.ok()) return pvs.error().message;
        std::string left;
        for (const auto& pv : *pvs) left += pv["metadata"]["name"].get<std::string>() + " ";
        return left.empty() ? on.story.audit.leftovers() : left;
      },
      on.story.bed->patience()));
  CHECK(on.in_base().empty());
  LPP_MUST(on.story.installation->stop_daemon());
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: nothing but a volume's directory is removed, wherever a volume points") {
  Traversal on(by);
  const std::string failed = "Warning VolumeFailedDelete: ";
  LPP_MUST(
      on.applied.apply(claim_object({.key = on.applied.key("victim"), .selected_node = on.node})));
  const auto victim = on.bound("victim");
  write_text(victim.disk + "/inside/data", "somebody else's");
  fs::create_directory_symlink(on.canary + "/data", on.base + "/link");
  fs::create_directory_symlink(on.canary, on.base + "/way");
  write_text(on.base + "/a-file", "no directory");
  const std::string before = on.tree();

  // The script looks before it goes anywhere, the agent is told by the kernel.
  const bool by_script = by == By::kHelperPods;
  const std::string no_directory = by_script ? "not a directory" : "Not a directory";
  on.refused({
      {"elsewhere", on.canary + "/data", {failed, "below none of the configured base paths"}},
      {"system", "/etc/cron.d", {failed, "the system directory /etc"}},
      {"kubelet", "/var/lib/kubelet/pods", {failed, "the system directory /var/lib/kubelet"}},
      {"relative", "some/where", {failed, "not absolute"}},
      {"doubled", on.base + "//." + victim.path.substr(on.base.size()) + "/", {failed, "overlaps"}},
      {"victims", victim.path, {failed, "overlaps", victim.path}},
      {"in-victim", victim.path + "/inside", {failed, "overlaps", victim.path}},
      {"link", on.base + "/link", {failed, by_script ? "symbolic link" : no_directory}},
      {"through-link", on.base + "/way/data", {failed, "symbolic link"}},
      {"file", on.base + "/a-file", {failed, no_directory}},
  });
  on.refused({
      {"root", "/", {failed, "refusing"}},
      {"around-base", fs::path(on.base).parent_path(), {failed, "is or contains"}},
      {"base", on.base, {failed, "is or contains the configured base path"}},
  });
  CHECK(on.tree() == before);

  fs::remove(on.base + "/link");
  fs::remove(on.base + "/way");
  fs::remove(on.base + "/a-file");
  LPP_MUST(on.applied.remove_claims());
  LPP_MUST(on.story.audit.wait_deleted(on.applied.key("victim"), victim));
  LPP_MUST(on.story.audit.wait_clean());
  LPP_MUST(on.story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing::node_traversal
