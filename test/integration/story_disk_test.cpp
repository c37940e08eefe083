// SPDX-License-Identifier: Apache-2.0
// Agents that are started while another disk than before is at a base path, or none.

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/agent_story.h"
#include "support/story_steps.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A volume on a disk that is not mounted when the node is started: what is left is the mount
/// point.
struct WithoutDisk : AgentStory {
  WithoutDisk() {
    start_with({"node-1"});
    claim = want("data");
    volume = wait_bound_and_write(claim);
    mounted = fs::path(volume.disk).parent_path();
    agents->of("node-1").kill();
    fs::rename(mounted, away());
    agents->start("node-1");
    agents->wait_connected("node-1");
  }
  std::string away() const { return mounted + ".away"; }
  void mount() const {
    fs::remove(mounted);
    fs::rename(away(), mounted);
    CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  }
  /// A claim for a directory at that mount point.
  k8s::ObjectKey want_there(const std::string& name) {
    const std::string base = fs::path(volume.path).parent_path();
    LPP_MUST(admin().apply(class_object({.name = "there", .parameters = {{"nodePath", base}}})));
    return want(name, "node-1", "there");
  }

  /// The scheduler has no other node.
  VolumeFacts schedule_until_bound(const k8s::ObjectKey& wanted) {
    wait_for(*this, "the claim is bound", [&]() -> std::string {
      const json now = LPP_MUST(admin().get(k8s::kPersistentVolumeClaims, wanted));
      if (!now["spec"].value("volumeName", "").empty()) return "";
      if (!now["metadata"]["annotations"].contains(kSelected)) {
        LPP_MUST(admin().merge(k8s::kPersistentVolumeClaims, wanted,
                               {{"metadata", {{"annotations", {{kSelected, "node-1"}}}}}}));
      }
      return "it is not";
    });
    return wait_bound_and_write(wanted);
  }
  void wait_sent_back(const k8s::ObjectKey& wanted) {
    wait_for(*this, "the scheduler is to choose again", [&]() -> std::string {
      const json now = LPP_MUST(admin().get(k8s::kPersistentVolumeClaims, wanted));
      return now["metadata"]["annotations"].contains(kSelected) ? "a node is selected" : "";
    });
  }
  static constexpr const char* kSelected = "volume.kubernetes.io/selected-node";

  k8s::ObjectKey claim;
  VolumeFacts volume;
  std::string mounted;
};

}  // namespace

TEST_CASE("a volume whose disk is missing is not taken for removed, and goes when that is back") {
  WithoutDisk story;
  LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, story.claim));
  wait_for(story, "the volume says that its disk is not there", [&]() -> std::string {
    std::string all;
    for (const auto& event :
         story.admin().events_about("PersistentVolume", {"", story.volume.pv})) {
      if (event.find("is not on its disk") != std::string::npos) return "";
      all += "\n  " + event;
    }
    return "its events:" + all;
  });
  CHECK(fs::is_empty(story.mounted));
  CHECK(LPP_MUST(story.admin().list(k8s::kPersistentVolumes)).size() == 1);
  story.mount();
  LPP_MUST(story.audit.wait_deleted(story.claim, story.volume));
  LPP_MUST(story.audit.wait_clean());
  CHECK_FALSE(fs::exists(story.volume.disk));
  CHECK(story.helper_pods_made() == 0);
}

TEST_CASE("nothing is made in place of a disk that volumes are on, and on it when it is back") {
  WithoutDisk story;
  const auto claim = story.want_there("more");
  const auto event = wait_for_event(story, claim, "ProvisioningFailed", "is not on its disk");
  CHECK(event.find("local.path.provisioner/disk off all volumes that name it") !=
        std::string::npos);
  story.wait_sent_back(claim);
  CHECK(fs::is_empty(story.mounted));
  story.mount();
  const auto made = story.schedule_until_bound(claim);
  CHECK(fs::path(made.disk).parent_path() == story.mounted);
  story.remove_all({story.claim, claim});
  CHECK(story.helper_pods_made() == 0);
}

TEST_CASE("on a disk in place of one that is given up volumes are made when no volume names that") {
  WithoutDisk story;
  const auto claim = story.want_there("more");
  wait_for_event(story, claim, "ProvisioningFailed", "is not on its disk");
  LPP_MUST(story.admin().merge(
      k8s::kPersistentVolumes, {"", story.volume.pv},
      {{"metadata", {{"annotations", {{"local.path.provisioner/disk", nullptr}}}}}}));
  const auto made = story.schedule_until_bound(claim);
  CHECK(fs::path(made.disk).parent_path() == story.mounted);
  CHECK(text_of(story.away() + "/" + fs::path(story.volume.disk).filename().string() +
                "/below/data") == kTenantsData);
  story.remove_all({story.claim, claim});
}

}  // namespace lpp::testing
