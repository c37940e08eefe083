// SPDX-License-Identifier: Apache-2.0
// From agents back to helper pods, as docs/agents.md says: first the agents, then the daemon.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "fakes/eventually.h"
#include "support/agent_story.h"

namespace lpp::testing {
namespace {

TEST_CASE("helper pods finish what agents have begun, and keep and remove what they have made") {
  AgentStory story;
  story.start_with_all();
  const auto kept = story.want("kept");
  const auto going = story.want("going", "node-2");
  const auto volume = story.wait_bound_and_write(kept);
  const auto removed = story.wait_bound_and_write(going);
  const auto begun = story.want_many(30);
  story.wait_directories(6);
  for (const auto& node : story.bed->nodes()) {
    story.agents->of(node).kill();
    LPP_MUST(story.admin().remove_and_wait(k8s::kPods, {kDaemonNamespace, "agent-" + node}, 0));
  }
  SUBCASE("the daemon still looks out for agents for a while") {
    LPP_MUST(story.audit.wait_bound(begun.front()));
  }
  SUBCASE("the plain daemon comes at once") {}
  LPP_MUST(story.installation->stop_daemon());

  const TempDir folder;
  const auto plain = LPP_MUST(
      Installation::create(*story.bed, {.daemon = daemon_program(), .folder = folder.path()}));
  LPP_MUST(plain->start_daemon());
  LPP_MUST(plain->wait_ready());
  std::vector<VolumeFacts> all;
  for (const auto& claim : begun) all.push_back(story.wait_bound_and_write(claim));
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.audit.directories().size() == begun.size() + 2);
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  story.remove_and_wait(going, removed);
  for (std::size_t i = 0; i < begun.size(); ++i) {
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, begun[i]));
  }
  for (std::size_t i = 0; i < begun.size(); ++i)
    LPP_MUST(story.audit.wait_deleted(begun[i], all[i]));
  LPP_MUST(story.audit.wait_clean());
  CHECK(story.audit.directories() == std::vector<std::string>{volume.disk});
  CHECK(text_of(volume.disk + "/below/data") == kTenantsData);
  CHECK(sanitizer_report(plain->log_text()) == "");
  LPP_MUST(plain->stop_daemon());
}

TEST_CASE("helper pods end a removal that an agent has begun") {
  AgentStory story;
  story.start_with({"node-1"});
  constexpr int kEnough = 150;  // what takes an agent longer than we take to kill it
  k8s::ObjectKey claim;
  VolumeFacts volume;
  std::filesystem::path place;
  std::filesystem::path gone;
  bool in_the_middle = false;
  for (int i = 0; i < 3 && !in_the_middle; ++i) {  // unless the machine is busy
    if (i > 0) {
      story.agents->start("node-1");
      LPP_MUST(story.audit.wait_deleted(claim, volume));
    }
    claim = story.want("going-" + std::to_string(i));
    volume = story.wait_bound_and_write(claim);
    for (int folder = 0; folder < kEnough; ++folder) {
      const std::string inside = volume.disk + "/" + std::to_string(folder);
      std::filesystem::create_directory(inside);
      for (int file = 0; file < kEnough; ++file) std::ofstream(inside + "/" + std::to_string(file));
    }
    place = volume.disk;
    gone = place.parent_path() / ".local-path-provisioner" / ("gone." + place.filename().string());
    LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, claim));
    REQUIRE(eventually([&] { return !std::filesystem::exists(place); }));
    story.agents->of("node-1").kill();
    in_the_middle = std::filesystem::exists(gone / "volume");
  }
  REQUIRE(in_the_middle);
  REQUIRE_FALSE(std::filesystem::exists(place));
  LPP_MUST(story.admin().remove_and_wait(k8s::kPods, {kDaemonNamespace, "agent-node-1"}, 0));
  SUBCASE("the daemon looks out for agents") {
    LPP_MUST(story.audit.wait_deleted(claim, volume));
    CHECK_FALSE(std::filesystem::exists(gone));
    LPP_MUST(story.installation->stop_daemon());
  }
  SUBCASE("the plain daemon comes") {
    LPP_MUST(story.installation->stop_daemon());
    const TempDir folder;
    const auto plain = LPP_MUST(
        Installation::create(*story.bed, {.daemon = daemon_program(), .folder = folder.path()}));
    LPP_MUST(plain->start_daemon());
    LPP_MUST(story.audit.wait_deleted(claim, volume));
    CHECK_FALSE(std::filesystem::exists(gone));
    LPP_MUST(plain->stop_daemon());
  }
}

}  // namespace
}  // namespace lpp::testing
