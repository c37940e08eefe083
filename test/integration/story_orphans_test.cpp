// SPDX-License-Identifier: Apache-2.0
// Directories that the cluster knows nothing of: after a restored backup, on disks of another
// cluster, and what was interrupted. With agents, all of them real processes.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "agent/protocol.h"
#include "support/agent_story.h"
#include "support/command_desk.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr k8s::Resource kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles",
                                      "ClusterRole", false};

struct OrphanStory : AgentStory {
  /// What the daemon lists, by path.
  std::map<std::string, json> orphans() const {
    std::map<std::string, json> all;
    const json listed = json::parse(page("/orphans"));
    for (const json& one : listed["orphans"]) all[one["path"]] = one;
    return all;
  }
  void wait_listed(std::size_t count) {
    wait_for(*this, std::to_string(count) + " are listed", [&]() -> std::string {
      const auto all = orphans();
      REQUIRE(all.size() <= count);
      return all.size() == count ? "" : json(all).dump();
    });
  }
  void wait_listed(const std::string& path, const std::string& why) {
    wait_for(*this, path + " is listed as " + why, [&]() -> std::string {
      const auto all = orphans();
      if (const auto it = all.find(path); it != all.end() && it->second["why"] == why) return "";
      return json(all).dump();
    });
  }
  /// Of the base path that the volume is in, on its node's disk.
  static std::string records(const VolumeFacts& volume) {
    return fs::path(volume.disk).parent_path().string() + "/.local-path-provisioner";
  }
  static std::string base_path(const VolumeFacts& volume) {
    return fs::path(volume.path).parent_path();
  }
  std::string cluster() {
    return LPP_MUST(admin().get(kNamespaces, {"", "kube-system"}))["metadata"]["uid"];
  }
  static json identity(const VolumeFacts& volume) {
    return json::parse(text_of(records(volume) + "/identity.json"));
  }

  void kill_all() {
    installation->kill_daemon();
    for (const auto& node : bed->nodes()) agents->of(node).kill();
  }
  /// Volumes and claims are not there, and nobody has removed them: as after the backup of a time
  /// before them.
  void forget_objects(const std::vector<k8s::ObjectKey>& claims,
                      const std::vector<VolumeFacts>& volumes) {
    const json none{{"metadata", {{"finalizers", nullptr}}}};
    for (const auto& claim : claims) {
      LPP_MUST(admin().merge(k8s::kPersistentVolumeClaims, claim, none));
      LPP_MUST(admin().remove_and_wait(k8s::kPersistentVolumeClaims, claim));
    }
    for (const auto& volume : volumes) {
      // The cluster's controllers put theirs back.
      wait_for(*this, volume.pv + " is gone", [&]() -> std::string {
        (void)admin().merge(k8s::kPersistentVolumes, {"", volume.pv}, none);
        (void)admin().remove(k8s::kPersistentVolumes, {"", volume.pv});
        return admin().get(k8s::kPersistentVolumes, {"", volume.pv}).ok() ? "it is there" : "";
      });
    }
  }
  void start_again(const std::vector<std::string>& agent_args = {}) {
    LPP_MUST(installation->start_daemon());
    LPP_MUST(installation->wait_ready());
    for (const auto& node : bed->nodes()) agents->start(node, agent_args);
    for (const auto& node : bed->nodes()) agents->wait_connected(node);
  }
};

/// Returns when sweeps have passed by what is there now: twice something that is nobody's was made
/// later, and went. Sweeps go on in order.
void let_sweeps_pass(OrphanStory& story, const VolumeFacts& beside) {
  for (const std::string later : {"/new.later", "/new.last"}) {
    const std::string listed = OrphanStory::base_path(beside) + "/.local-path-provisioner" + later;
    const fs::path made = OrphanStory::records(beside) + later;
    fs::create_directory(made);
    wait_for(story, "a sweep", [&]() -> std::string {
      return fs::exists(made) || story.orphans().contains(listed) ? "none" : "";
    });
  }
}

/// The same where nothing may be swept: five times something that was made later is listed, and the
/// agent looks once a second. It tells, asks and sweeps what is a second old after each look.
void let_looks_pass(OrphanStory& story, const VolumeFacts& beside) {
  for (int i = 0; i < 5; ++i) {
    const std::string later = "/new.later-" + std::to_string(i);
    fs::create_directory(OrphanStory::records(beside) + later);
    story.wait_listed(OrphanStory::base_path(beside) + "/.local-path-provisioner" + later,
                      "Unfinished");
  }
}

std::vector<std::string> sweep_soon() { return {"--sweep-after", "1s", "--usage-interval", "1s"}; }

TEST_CASE("of volumes that a restored backup does not know every byte stays, and all are listed") {
  OrphanStory story;
  story.start_with_all();
  const std::vector<k8s::ObjectKey> claims{story.want("a", "node-1"), story.want("b", "node-2"),
                                           story.want("c", "node-1")};
  std::vector<VolumeFacts> volumes;
  for (const auto& claim : claims) volumes.push_back(story.wait_bound_and_write(claim));
  const auto kept = story.want("kept", "node-1");
  const auto kept_volume = story.wait_bound_and_write(kept);
  CHECK(story.orphans().empty());
  story.kill_all();
  story.forget_objects(claims, volumes);
  story.start_again(sweep_soon());
  for (const auto& volume : volumes) story.wait_listed(volume.path, "NoVolume");
  const json one = story.orphans().at(volumes[1].path);
  CHECK(one["node"] == "node-2");
  CHECK(one["claim"] == "app/b");
  CHECK(one["volume"] == volumes[1].pv);
  CHECK(one["volume"] == "pvc-" + one["uid"].get<std::string>());
  CHECK(one["since"].get<std::int64_t>() > 1'700'000'000);
  story.wait_for_metric(
      R"(local_path_provisioner_orphaned_directories{node="node-1",why="NoVolume"} 2)");
  for (const auto& volume : volumes) let_sweeps_pass(story, volume);
  for (const auto& volume : volumes) CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  story.wait_listed(3);

  // The claim of a volume that is there goes as ever.
  story.remove_and_wait(kept, kept_volume);
  CHECK_FALSE(fs::exists(kept_volume.disk));
  story.wait_listed(3);

  // A person says what becomes of them: those of one node get their volumes back, the other goes.
  CommandDesk desk(story);
  const auto adopted = desk.run({"adopt", "--node", "node-1", "--all", "--from-records"});
  CAPTURE(adopted.text);
  CHECK(adopted.code == 0);
  for (const int i : {0, 2}) {
    LPP_MUST(story.admin().create(claim_object({.key = claims[i], .selected_node = "node-1"})));
    wait_bound_to(story, claims[i], volumes[i].pv);
    CHECK(text_of(volumes[i].disk + "/below/data") == kTenantsData);
  }
  const auto swept = desk.run({"sweep", "--node", "node-2", "--path", volumes[1].path});
  CAPTURE(swept.text);
  CHECK(swept.code == 0);
  CHECK_FALSE(fs::exists(volumes[1].disk));
  wait_for(story, "nothing is listed", [&]() -> std::string {
    return story.orphans().empty() ? "" : json(story.orphans()).dump();
  });
}

TEST_CASE("a new cluster on the disks of another one removes nothing there, and lists all of it") {
  OrphanStory story;
  story.start_with_all();
  const auto claim = story.want("data", "node-1");
  const auto volume = story.wait_bound_and_write(claim);
  const auto going = story.want("going", "node-1");
  const auto going_volume = story.wait_bound_and_write(going);
  const std::string records = OrphanStory::records(going_volume);
  const std::string base = OrphanStory::base_path(going_volume);
  CHECK(OrphanStory::identity(volume)["cluster"] == story.cluster());
  CHECK(OrphanStory::identity(going_volume)["cluster"] == story.cluster());
  story.wait_for_metric("local_path_provisioner_agent_operations 0");
  story.kill_all();
  story.forget_objects({claim, going}, {volume, going_volume});
  // As the agents of another cluster have left it, one of them in the middle of a removal.
  for (const auto& one : {volume, going_volume}) {
    json identity = OrphanStory::identity(one);
    identity["cluster"] = "5d7c3c0e-0000-4000-8000-000000000001";
    std::ofstream(OrphanStory::records(one) + "/identity.json") << identity.dump();
  }
  const json identity = OrphanStory::identity(volume);
  const std::string id = fs::path(going_volume.disk).filename();
  fs::create_directory(records + "/gone." + id);
  fs::create_directory(records + "/new.pvc-of-theirs");
  operation::Operation removal;
  removal.kind = operation::Kind::kRemove;
  removal.volume_name = going_volume.pv;
  removal.claim = going;
  removal.node = "node-1";
  removal.base_path = base;
  removal.path = going_volume.path;
  const std::string work = records + "/work." + id + ".theirs.json";
  std::ofstream(work) << encode(
      agent::Work{removal, {.state = operation::Progress::State::kRunning}, {}});
  const std::string told = text_of(work);

  story.start_again(sweep_soon());
  story.wait_listed(volume.path, "OtherCluster");
  story.wait_listed(going_volume.path, "Unfinished");
  story.wait_listed(base + "/.local-path-provisioner/new.pvc-of-theirs", "Unfinished");
  // New volumes are made beside them, and go again.
  const auto ours = story.want("ours", "node-1");
  const auto our_volume = story.wait_bound_and_write(ours);
  let_looks_pass(story, volume);
  story.remove_and_wait(ours, our_volume);
  for (const auto& one : {volume, going_volume}) {
    CHECK(text_of(one.disk + "/below/data") == kTenantsData);
  }
  CommandDesk desk(story);
  // Only what is named goes, and all is adopted when told.
  const auto all = desk.run({"sweep", "--node", "node-1", "--all", "--yes"});
  CAPTURE(all.text);
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  const auto adopted =
      desk.run({"adopt", "--node", "node-1", "--path", volume.path, "--claim", claim.to_string()});
  CAPTURE(adopted.text);
  CHECK(adopted.code == 0);
  LPP_MUST(story.admin().create(claim_object({.key = claim, .selected_node = "node-1"})));
  wait_bound_to(story, claim, volume.pv);
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  CHECK(text_of(going_volume.disk + "/below/data") == kTenantsData);
  CHECK(text_of(work) == told);
  CHECK(fs::exists(records + "/gone." + id));
  CHECK(fs::exists(records + "/new.pvc-of-theirs"));
  CHECK(OrphanStory::identity(volume) == identity);
  CHECK(text_of(story.agents->log_file("node-1")).find("is left as it is") != std::string::npos);
  CHECK(story.helper_pods_made() == 0);
}

TEST_CASE("what was interrupted and nobody needs goes after a while, and what is by hand stays") {
  OrphanStory story;
  story.start_with({"node-1"});
  const auto claim = story.want("data", "node-1");
  const auto volume = story.wait_bound_and_write(claim);
  const std::string base = OrphanStory::base_path(volume);
  const std::string records = OrphanStory::records(volume);
  const std::string by_hand = fs::path(records).parent_path().string() + "/by hand";
  const std::string id = fs::path(volume.disk).filename();
  fs::create_directories(by_hand);
  std::ofstream(by_hand + "/data") << kTenantsData;
  fs::create_directories(records + "/new.nobodys");
  fs::create_directories(records + "/gone.nobodys");
  // Of a removal that a helper pod has left, and perhaps was to leave.
  fs::create_directories(records + "/gone.left/volume/below");
  std::ofstream(records + "/gone.left/volume/below/data") << kTenantsData;
  // Of a volume that is there: a helper pod's removal that was called off, say.
  fs::create_directories(records + "/gone." + id);
  std::ofstream(records + "/gone." + id + "/piece") << kTenantsData;
  story.agents->start("node-1", sweep_soon());
  story.agents->wait_connected("node-1");
  story.wait_listed(base + "/by hand", "NoRecord");
  wait_for(story, "what is nobody's is gone", [&]() -> std::string {
    for (const char* const name : {"/new.nobodys", "/gone.nobodys"}) {
      if (fs::exists(records + name)) return name;
    }
    return "";
  });
  let_sweeps_pass(story, volume);
  CHECK(text_of(by_hand + "/data") == kTenantsData);
  CHECK(text_of(records + "/gone." + id + "/piece") == kTenantsData);
  CHECK(text_of(records + "/gone.left/volume/below/data") == kTenantsData);
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  story.wait_listed(base + "/.local-path-provisioner/gone.left", "Unfinished");
  story.wait_listed(2);
}

TEST_CASE("agents work without the permission to know their cluster, and sweep nothing") {
  OrphanStory story;
  LPP_MUST(story.admin().merge(kClusterRoles, {"", "local-path-provisioner-agents"},
                               {{"rules",
                                 {{{"apiGroups", {"authentication.k8s.io"}},
                                   {"resources", {"tokenreviews"}},
                                   {"verbs", {"create"}}}}}}));
  story.start_with({"node-1"});
  const auto claim = story.want("data", "node-1");
  const auto volume = story.wait_bound_and_write(claim);
  wait_for(story, "the make is over", [&]() -> std::string {
    return fs::exists(OrphanStory::records(volume) + "/identity.json") ? "" : "not yet";
  });
  const std::string base = OrphanStory::base_path(volume);
  const std::string records = OrphanStory::records(volume);
  CHECK_FALSE(OrphanStory::identity(volume).contains("cluster"));
  wait_for_log(story, "agents cannot tell this cluster's disks from another one's");
  fs::create_directories(records + "/new.nobodys");
  story.agents->start("node-1", sweep_soon());
  story.agents->wait_connected("node-1");
  story.wait_listed(base + "/.local-path-provisioner/new.nobodys", "Unfinished");
  let_looks_pass(story, volume);
  CHECK(fs::exists(records + "/new.nobodys"));
  story.remove_and_wait(claim, volume);
}

}  // namespace
}  // namespace lpp::testing
