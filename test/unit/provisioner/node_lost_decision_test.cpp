// SPDX-License-Identifier: Apache-2.0
// The rows about volumes whose node was deleted from the cluster.

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <vector>

#include "provisioner/node_lost.h"
#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::node_lost_rows {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::bound_volume;
using testing::claim;
using testing::released_volume;
using testing::State;
using Where = VolumeNode::Kind;

testing::VolumeBuilder bound() { return bound_volume().phase("Bound"); }
testing::VolumeBuilder marked(testing::VolumeBuilder seen, const std::string& uid = "uid-a") {
  return seen.annotation(std::string(kVolumeNodeLost), uid);
}

/// A bound volume of a class that lets claims go, on a node that the cache does not show.
struct Row : testing::VolumeRow {
  Row() {
    is_kept(bound());
    claim = testing::claim("a").volume("v").shared();
    lets_go_after = minutes(5);
    lose("n1");
  }
  void lose(const std::string& which) {
    node = {.kind = Where::kGone, .name = which, .description = which};
  }
  void come_back() { node = {.kind = Where::kNode, .name = "n1", .description = {}}; }
  void lost_for(Duration time) { memory.node_lost = now - time; }
  bool is_left_alone() const {
    const auto decision = next();
    const auto* const wait = std::get_if<for_volume::Wait>(&decision);
    return wait != nullptr && wait->forget;
  }
};

TEST_CASE(
    "a node that seems to be gone is asked for, and the grace period begins with the answer") {
  Row row;
  CHECK(row.next_is<for_volume::NodeLost>().node == "n1");
}

TEST_CASE("until the grace period is over nothing is done") {
  Row row;
  row.lost_for(minutes(2));
  const auto wait = row.next_is<for_volume::Wait>();
  CHECK(wait.at_most == minutes(3));
  CHECK_FALSE(wait.forget);
}

TEST_CASE("then the claim is let go") {
  Row row;
  row.lost_for(minutes(5));
  CHECK(row.next_is<for_volume::LetClaimGo>().node == "n1");
  SUBCASE("also when that has been begun before") {
    row.is_kept(marked(bound()));
    CHECK(row.next_is<for_volume::LetClaimGo>().node == "n1");
  }
  SUBCASE("also of a volume that is kept") {
    row.is_kept(testing::volume("v")
                    .host_path(testing::kVolumePath)
                    .claim("default", "a")
                    .phase("Bound")
                    .reclaim_policy("Retain"));
    CHECK(row.next_is<for_volume::LetClaimGo>().node == "n1");
  }
}

TEST_CASE("a node that is back in time stops it, and the next time the period begins anew") {
  Row row;
  row.lost_for(minutes(4));
  row.come_back();
  CHECK(row.is_left_alone());
}

TEST_CASE("a claim is not let go") {
  struct Case {
    const char* why;
    std::function<void(Row&)> become;
  };
  const std::vector<Case> cases{
      {"unless its class says so", [](Row& row) { row.lets_go_after.reset(); }},
      {"that the cache does not show", [](Row& row) { row.claim = nullptr; }},
      {"that is being deleted already",
       [](Row& row) { row.claim = claim("a").volume("v").deleting().shared(); }},
      {"whose volume is not bound", [](Row& row) { row.is_kept(bound().phase("Available")); }},
      {"whose volume is being deleted", [](Row& row) { row.is_kept(bound().deleting()); }},
      {"whose volume is not ours",
       [](Row& row) {
         row.is_kept(bound().annotation(std::string(kProvisionedBy), "example.com/other"));
       }},
      {"whose volume has no path",
       [](Row& row) { row.is_kept(bound().unset("/spec", "hostPath")); }},
      {"whose volume is on a shared filesystem",
       [](Row& row) {
         config::Config shared = *row.config;
         shared.classes["nfs"].shared_file_system_path = "/data";
         row.config = std::make_shared<const config::Config>(std::move(shared));
       }},
      {"whose node is there", [](Row& row) { row.come_back(); }},
      {"whose volume is on any node", [](Row& row) { row.node = {.kind = Where::kAny}; }},
      {"whose node is not clear", [](Row& row) { row.node.kind = Where::kUnclear; }},
      {"whose node has no name: its label may have been edited", [](Row& row) { row.lose(""); }},
  };
  for (const Case& one : cases) {
    CAPTURE(one.why);
    for (const bool is_due : {false, true}) {
      Row row;
      if (is_due) row.lost_for(minutes(10));
      one.become(row);
      const auto decision = row.next();
      CHECK_FALSE(std::holds_alternative<for_volume::NodeLost>(decision));
      CHECK_FALSE(std::holds_alternative<for_volume::LetClaimGo>(decision));
    }
  }
}

TEST_CASE("what is on record for a volume is stopped before its claim is let go") {
  Row row;
  row.lost_for(minutes(10));
  row.removal(State::kRunning);
  (void)row.next_is<for_volume::Cancel>();
}

// The mark on the volume.

TEST_CASE("a node that is back before its claim was deleted takes the mark off") {
  Row row;
  row.is_kept(marked(bound()));
  row.come_back();
  (void)row.next_is<for_volume::KeepClaim>();
  SUBCASE("whatever its class says by now") {
    row.lets_go_after.reset();
    (void)row.next_is<for_volume::KeepClaim>();
  }
}

TEST_CASE("the mark stays once the claim is going, or while its node is not clear") {
  const std::vector<std::function<void(Row&)>> cases{
      [](Row& row) { row.claim = claim("a").volume("v").deleting().shared(); },
      [](Row& row) { row.claim = nullptr; },
      [](Row& row) { row.node.kind = Where::kUnclear; },
      [](Row& row) {
        row.is_kept(
            marked(released_volume().reclaim_policy("Retain").unset("/metadata", "finalizers")));
      },
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    Row row;
    row.is_kept(marked(bound()));
    row.come_back();
    cases[i](row);
    CHECK_FALSE(std::holds_alternative<for_volume::KeepClaim>(row.next()));
  }
}

TEST_CASE("the mark of an earlier claim comes off a volume that has another one, or none") {
  Row row;
  row.is_kept(marked(bound(), "uid-of-an-earlier-claim"));
  (void)row.next_is<for_volume::KeepClaim>();
  row.is_kept(marked(bound().phase("Available").claim("default", "a", ""), "uid-a"));
  (void)row.next_is<for_volume::KeepClaim>();
}

// A released volume whose claim was let go.

struct LetGo : testing::VolumeRow {
  LetGo() { volume = marked(released_volume()).shared(); }
};

TEST_CASE("nothing removes the directory of a claim that was let go, wherever its node is now") {
  for (const Where where : {Where::kNode, Where::kGone, Where::kUnclear, Where::kAny}) {
    LetGo row;
    row.node.kind = where;
    const auto let_go = row.next_is<for_volume::LetGo>();
    CHECK(let_go.stays);
    CHECK(let_go.node.empty());
    CHECK(let_go.why.find(testing::kVolumePath) != std::string::npos);
  }
}

TEST_CASE("a removal that is on record is stopped, and that of its making forgotten, before that") {
  LetGo row;
  row.removal(State::kRunning);
  (void)row.next_is<for_volume::Cancel>();
  row.removals[0].progress.state = State::kSucceeded;
  (void)row.next_is<for_volume::Forget>();
  row.removals.clear();
  row.make(State::kSucceeded);
  (void)row.next_is<for_volume::Forget>();
}

TEST_CASE("a volume that was let go a moment ago is not let go again") {
  LetGo row;
  row.memory.released = row.now + seconds(5);
  CHECK(testing::is_plain_wait(row.next()));
}

TEST_CASE("the mark of an earlier claim keeps no directory") {
  LetGo row;
  row.volume = marked(released_volume(), "uid-of-an-earlier-claim").shared();
  (void)row.next_is<for_volume::Remove>();
}

}  // namespace
}  // namespace lpp::provisioner::node_lost_rows
