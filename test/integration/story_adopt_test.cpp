// SPDX-License-Identifier: Apache-2.0
// Directories that are on nodes without a volume: a person gives them to claims, or has them
// removed.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "support/command_desk.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct DirectoryStory : StoryBed {
  std::optional<CommandDesk> desk{};

  explicit DirectoryStory(By executor = By::kHelperPods) : StoryBed(executor) {
    start();
    LPP_MUST(admin().apply(namespace_object("app")));
    desk.emplace(*this);
  }

  /// What the daemon says of the nodes' records.
  void list_orphans(json orphans) {
    const std::string page = json{{"orphans", std::move(orphans)}}.dump();
    desk->show([page](const std::string& path) {
      return path == "orphans" ? std::optional(page) : std::nullopt;
    });
  }
  static json orphan(const VolumeFacts& volume, const k8s::ObjectKey& claim,
                     const std::string& why = "NoVolume") {
    return {{"node", volume.node},
            {"path", volume.path},
            {"volume", volume.pv},
            {"uid", "gone"},
            {"claim", claim.to_string()},
            {"size", 1 << 20},
            {"since", 1},
            {"why", why},
            {"message", ""}};
  }

  CommandOutput run(std::vector<std::string> args) { return desk->run(std::move(args)); }

  /// A volume with data of a claim on that node.
  VolumeFacts made(const k8s::ObjectKey& claim, const std::string& node = "node-1",
                   const std::string& storage_class = "local-path") {
    LPP_MUST(admin().create(
        claim_object({.key = claim, .storage_class = storage_class, .selected_node = node})));
    const auto volume = LPP_MUST(audit.wait_bound(claim));
    std::ofstream(volume.disk + "/file") << "of " << claim.name << "\n";
    return volume;
  }
  void wait_no_helper_pods() {
    wait_for(*this, "no helper pod is left", [&]() -> std::string {
      for (const auto& pod : LPP_MUST(admin().list(k8s::kPods, kDaemonNamespace))) {
        const std::string name = pod["metadata"]["name"];
        if (name.starts_with("helper-pod-")) return name;
      }
      return "";
    });
  }
  /// Claim and volume are gone, and the directory stays: as after a restored backup.
  void forget(const k8s::ObjectKey& claim, const VolumeFacts& volume) {
    LPP_MUST(admin().merge(k8s::kPersistentVolumes, {"", volume.pv},
                           {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}}));
    LPP_MUST(admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    LPP_MUST(admin().remove_and_wait(k8s::kPersistentVolumes, {"", volume.pv}));
    wait_no_helper_pods();
    REQUIRE(fs::exists(volume.disk + "/file"));
  }
  /// A pod that uses the claim reads what its directory held.
  void check_read(const k8s::ObjectKey& claim, const std::string& text) {
    const k8s::ObjectKey pod{claim.ns, "reader-" + claim.name};
    LPP_MUST(admin().create(pod_object({.key = pod,
                                        .claim = claim.name,
                                        .script = "test \"$(cat /data/file)\" = '" + text + "'"})));
    wait_for_phase(*this, pod, "Succeeded");
  }
};

/// Agents, and nobody else here, keep records beside the directories.
bool is_on_record(const VolumeFacts& volume) {
  const fs::path records = fs::path(volume.disk).parent_path() / ".local-path-provisioner";
  std::error_code none;
  for (const auto& file : fs::directory_iterator(records, none)) {
    if (file.path().filename().string().find(volume.pv) != std::string::npos) return true;
  }
  return false;
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "the data of a volume that is gone comes back with adopt, and a pod reads it") {
  DirectoryStory story(by);
  LPP_MUST(story.admin().create(class_object({.name = "keep", .reclaim_policy = "Retain"})));
  const k8s::ObjectKey claim{"app", "data"};
  const auto volume = story.made(claim, "node-1", "keep");
  story.forget(claim, volume);
  // When an agent's record comes to be listed and goes again is open: the volume's name is of it.
  if (by == By::kAgents) story.list_orphans({DirectoryStory::orphan(volume, claim)});

  const std::vector<std::string> adopt{"adopt",     "--node",  "node-1",   "--path",
                                       volume.path, "--claim", "app/data", "--class",
                                       "keep",      "--size",  "1Mi"};
  const auto output = story.run(adopt);
  CAPTURE(output.text);
  REQUIRE(output.code == 0);
  // A second one is refused: the directory has a volume now.
  const auto again = story.run(adopt);
  CAPTURE(again.text);
  CHECK(again.code == 1);
  CHECK(again.text.find("is there already") != std::string::npos);
  CHECK(LPP_MUST(story.admin().list(k8s::kPersistentVolumes)).size() == 1);

  LPP_MUST(story.admin().create(claim_object({.key = claim, .storage_class = "keep"})));
  const std::string name =
      LPP_MUST(story.admin().list(k8s::kPersistentVolumes)).at(0)["metadata"]["name"];
  wait_bound_to(story, claim, name);
  story.check_read(claim, "of data");
  // It is kept again when its claim goes.
  LPP_MUST(story.admin().remove_and_wait(k8s::kPods, {"app", "reader-data"}, 0));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
  wait_for(story, "the volume is released", [&]() -> std::string {
    const auto found = story.admin().get(k8s::kPersistentVolumes, {"", name});
    if (!found.ok()) return found.error().message;
    return (*found)["status"].value("phase", "") == "Released" ? "" : found->dump();
  });
  CHECK(text_of(volume.disk + "/file") == "of data\n");
}

LPP_ALL_EXECUTORS_TEST_CASE("adopt --all --from-records brings each directory to its claim") {
  DirectoryStory story(by);
  const k8s::ObjectKey data{"app", "data"};
  const k8s::ObjectKey logs{"app", "logs"};
  const k8s::ObjectKey there{"app", "there"};
  const auto data_volume = story.made(data);
  const auto logs_volume = story.made(logs);
  const auto there_volume = story.made(there);
  story.forget(data, data_volume);
  story.forget(logs, logs_volume);
  story.list_orphans({DirectoryStory::orphan(data_volume, data),
                      DirectoryStory::orphan(logs_volume, logs, "OtherCluster"),
                      DirectoryStory::orphan(there_volume, there)});  // by mistake
  LPP_MUST(story.admin().create(claim_object({.key = data})));        // waits for its pod

  const auto output =
      story.run({"adopt", "--node", "node-1", "--all", "--from-records", "-o", "json"});
  CAPTURE(output.text);
  CHECK(output.code == 1);
  const json out = json::parse(output.text);
  std::map<std::string, std::string> actions;
  for (const auto& item : out["items"]) actions[item["claim"]] = item["action"];
  CHECK(actions["data"] == "adopted");
  CHECK(actions["logs"] == "adopted");
  CHECK(actions["there"] == "refused");
  wait_bound_to(story, data, data_volume.pv);
  LPP_MUST(story.admin().create(claim_object({.key = logs})));
  wait_bound_to(story, logs, logs_volume.pv);
  story.check_read(data, "of data");
  story.check_read(logs, "of logs");
  LPP_MUST(story.audit.wait_clean());
}

LPP_ALL_EXECUTORS_TEST_CASE("sweep removes the directory that is named, and nothing else") {
  DirectoryStory story(by);
  const k8s::ObjectKey old{"app", "old"};
  const k8s::ObjectKey kept{"app", "kept"};
  const k8s::ObjectKey used{"app", "used"};
  const auto old_volume = story.made(old);
  const auto kept_volume = story.made(kept);
  const auto used_volume = story.made(used);
  story.forget(old, old_volume);
  story.forget(kept, kept_volume);
  // The same path on the other node.
  const std::string twin =
      story.bed->on_disk("node-2", fs::path(old_volume.path).parent_path().string()) + "/" +
      fs::path(old_volume.path).filename().string();
  fs::create_directories(twin);
  std::ofstream(twin + "/file") << "of node-2\n";
  story.list_orphans({DirectoryStory::orphan(old_volume, old),
                      DirectoryStory::orphan(kept_volume, kept),
                      DirectoryStory::orphan(used_volume, used)});  // by mistake

  const auto look =
      story.run({"sweep", "--node", "node-1", "--path", old_volume.path, "--dry-run"});
  CHECK(look.code == 0);
  CHECK(fs::exists(old_volume.disk + "/file"));

  const auto swept = story.run({"sweep", "--node", "node-1", "--path", old_volume.path});
  CAPTURE(swept.text);
  CHECK(swept.code == 0);
  CHECK(swept.text.find("removed") != std::string::npos);
  CHECK_FALSE(fs::exists(old_volume.disk));
  // The record of the removal itself goes when the volume is seen to be gone.
  wait_for(story, "nothing is on record of it",
           [&]() -> std::string { return is_on_record(old_volume) ? "something is" : ""; });
  CHECK(is_on_record(kept_volume) == (by == By::kAgents));
  CHECK(text_of(kept_volume.disk + "/file") == "of kept\n");
  CHECK(text_of(used_volume.disk + "/file") == "of used\n");
  CHECK(text_of(twin + "/file") == "of node-2\n");
  CHECK_FALSE(LPP_MUST(story.admin().find(k8s::kPersistentVolumes, {"", old_volume.pv})));

  // One that has a volume is refused, whatever is listed.
  const auto refused = story.run({"sweep", "--node", "node-1", "--path", used_volume.path});
  CHECK(refused.code == 1);
  CHECK(refused.text.find("is there already") != std::string::npos);
  CHECK(text_of(used_volume.disk + "/file") == "of used\n");
}

LPP_PODS_AND_AGENTS_TEST_CASE(
    "sweep leaves alone what a pod shows, what overlaps, and what is not on record") {
  DirectoryStory story(by);
  const k8s::ObjectKey claim{"app", "data"};
  const auto volume = story.made(claim);
  story.forget(claim, volume);
  const std::vector<std::string> sweep{"sweep", "--node", "node-1", "--path", volume.path};
  std::string why = "may be using it: delete the pod";
  std::string listed = "NoVolume";
  SUBCASE("a pod with a hostPath") {
    json pod = pod_object({.key = {"app", "user"}, .script = "sleep 1000", .node = "node-1"});
    pod["spec"]["volumes"] =
        json::array({{{"name", "host"}, {"hostPath", {{"path", volume.path + "/"}}}}});
    LPP_MUST(story.admin().create(pod));
  }
  SUBCASE("a volume made by hand in it") {
    why = "overlaps the directory " + volume.path + "/inside of volume by-hand";
    LPP_MUST(story.admin().create({{"apiVersion", "v1"},
                                   {"kind", "PersistentVolume"},
                                   {"metadata", {{"name", "by-hand"}}},
                                   {"spec",
                                    {{"accessModes", {"ReadWriteOnce"}},
                                     {"capacity", {{"storage", "1Mi"}}},
                                     {"persistentVolumeReclaimPolicy", "Retain"},
                                     {"hostPath", {{"path", volume.path + "/inside"}}}}}}));
  }
  SUBCASE("no record") {
    listed = "NoRecord";
    why = "adopt it first, or remove it on the node";
  }
  SUBCASE("the claim is there again, and has lost its volume") {
    why = "belongs to volume " + volume.pv;
    json lost = claim_object({.key = claim});
    lost["spec"]["volumeName"] = volume.pv;
    LPP_MUST(story.admin().create(lost));
  }
  story.list_orphans({DirectoryStory::orphan(volume, claim, listed)});
  const auto output = story.run(sweep);
  CAPTURE(output.text);
  CHECK(output.code == 1);
  CHECK(output.text.find(why) != std::string::npos);
  CHECK(text_of(volume.disk + "/file") == "of data\n");
  CHECK_FALSE(LPP_MUST(story.admin().find(k8s::kPersistentVolumes, {"", volume.pv})));
}

}  // namespace
}  // namespace lpp::testing
