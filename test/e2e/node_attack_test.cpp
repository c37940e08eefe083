// SPDX-License-Identifier: Apache-2.0
// A tenant whose process outlives its pod and changes the volume while it is removed, on a real
// node.

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "disk.h"
#include "fakes/setting.h"
#include "harness/applied_objects.h"
#include "harness/name_exchanger.h"
#include "real_agents.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;

/// A volume full of folders and of links to another volume that stand ready for an exchange.
struct Attacker {
  k8s::ObjectKey claim{};
  VolumeFacts volume{};
  std::vector<std::unique_ptr<NameExchanger>> exchangers{};

  void begin(const std::string& victim) {
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i);
      for (int f = 0; f < 20; ++f) {
        write_text(volume.disk + "/d" + n + "/f" + std::to_string(f), "mine");
      }
      write_text(volume.disk + "/d" + n + "/in/f", "mine");
      fs::create_directory_symlink("../" + fs::path(victim).filename().string(),
                                   volume.disk + "/link" + n);
    }
    exchangers.push_back(std::make_unique<NameExchanger>(
        volume.disk, NameExchanger::Pairs{{"d0", "link0"}, {"d1", "link1"}}));
    exchangers.push_back(std::make_unique<NameExchanger>(
        volume.disk, NameExchanger::Pairs{{"d2", "link2"}, {"d3", "link3"}}));
  }
};

LPP_PODS_AND_AGENTS_TEST_CASE(
    "real node: a volume whose folders become links while it is removed takes nothing else with "
    "it") {
  const int removals = setting("LPP_ATTACKED_REMOVALS", 6);
  constexpr int kAtOnce = 6;
  StoryBy played("attack", by);
  RealStory& story = *played;
  played.start();
  AppliedObjects applied = LPP_MUST(AppliedObjects::in_namespace(*story.bed, "attack"));
  const std::string node = story.bed->nodes().front();
  const auto add_claim = [&](const std::string& name) {
    LPP_MUST(applied.apply(claim_object({.key = applied.key(name), .selected_node = node})));
  };
  add_claim("victim");
  const auto victim = LPP_MUST(story.audit.wait_bound(applied.key("victim")));
  for (int i = 0; i < 20; ++i) {
    write_text(victim.disk + "/f" + std::to_string(i), "somebody else's");
    write_text(victim.disk + "/in/f" + std::to_string(i), "somebody else's");
  }
  const std::string before = tree_of(victim.disk);

  for (int done = 0; done < removals; done += kAtOnce) {
    std::vector<Attacker> attackers(kAtOnce);
    for (int i = 0; i < kAtOnce; ++i) add_claim("a" + std::to_string(done + i));
    for (int i = 0; i < kAtOnce; ++i) {
      attackers[i].claim = applied.key("a" + std::to_string(done + i));
      attackers[i].volume = LPP_MUST(story.audit.wait_bound(attackers[i].claim));
      attackers[i].begin(victim.disk);
    }
    for (const Attacker& attacker : attackers) {
      LPP_MUST(story.admin().remove(k8s::kPersistentVolumeClaims, attacker.claim));
    }
    for (Attacker& attacker : attackers) {
      // One that never ends may win for a while; then it is over, and so is the volume.
      static_cast<void>(wait_until(
          "it goes under attack",
          [&]() -> std::string { return fs::exists(attacker.volume.disk) ? "it is there" : ""; },
          {.limit = std::chrono::seconds(10)}));
      attacker.exchangers.clear();
      LPP_MUST(story.audit.wait_deleted(attacker.claim, attacker.volume));
    }
    REQUIRE(tree_of(victim.disk) == before);
  }
  LPP_MUST(applied.remove_claims());
  LPP_MUST(story.audit.wait_deleted(applied.key("victim"), victim));
  LPP_MUST(story.audit.wait_clean());
  LPP_MUST(story.installation->stop_daemon());
}

}  // namespace
}  // namespace lpp::testing
