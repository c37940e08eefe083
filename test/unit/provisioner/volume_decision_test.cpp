// SPDX-License-Identifier: Apache-2.0
// The table of what is done for a volume, row by row and in the order of the code.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>

#include "provisioner/volume_removal.h"
#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::volume_rows {
namespace {

using operation::Kind;
using operation::Operation;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::bound_volume;
using testing::change;
using testing::is_plain_wait;
using testing::kAllStates;
using testing::kOver;
using testing::kUnderWay;
using testing::kVolumePath;
using testing::released_volume;
using testing::State;
using testing::volume_operation;
using testing::VolumeBuilder;
using Row = testing::VolumeRow;

TEST_CASE("what lets a volume grow ends before anything else is done to it") {
  for (const bool is_gone : {false, true}) {
    Row row;
    if (is_gone) row.is_gone();
    row.resizes.push_back({.operation = volume_operation(Kind::kResize, 1), .progress = {}});
    auto& resize = row.resizes[0];
    for (const State state : {State::kWaiting, State::kRunning, State::kLate}) {
      resize.progress = {.state = state};
      CHECK(row.next_is<for_volume::Cancel>().removal.operation == resize.operation);
    }
    for (const State state : kOver) {
      resize.progress = {.state = state};
      CHECK(row.next_is<for_volume::Forget>().operation == resize.operation);
    }
    resize.progress = {.state = State::kEnding};
    CHECK(is_plain_wait(row.next()));
    resize.progress.acts_no_more = true;
    CHECK(std::holds_alternative<for_volume::Remove>(row.next()) == !is_gone);
  }
}

// What is on record for a volume that is not to be removed.

struct Unwanted {
  const char* why;
  void (*become)(Row&);
};

constexpr std::array kUnwanted{
    Unwanted{"it is gone", [](Row& row) { row.is_gone(); }},
    Unwanted{"it is bound", [](Row& row) { row.is_kept(bound_volume()); }},
    Unwanted{"its policy is Retain by now",
             [](Row& row) { row.is_kept(released_volume().reclaim_policy("Retain")); }},
    Unwanted{"it is not ours",
             [](Row& row) {
               row.is_kept(
                   released_volume().annotation(std::string(kProvisionedBy), "example.com/other"));
             }},
};

TEST_CASE("a removal that nobody wants is cancelled while it may act") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    for (const State state : {State::kWaiting, State::kRunning, State::kLate}) {
      Row row;
      unwanted.become(row);
      row.removal(state);
      CHECK(row.next_is<for_volume::Cancel>().removal.operation == row.removals[0].operation);
    }
  }
}

TEST_CASE("a removal that nobody wants is forgotten once it is over") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    for (const State state : kOver) {
      Row row;
      unwanted.become(row);
      row.removal(state);
      const auto forget = row.next_is<for_volume::Forget>();
      CHECK(forget.operation == row.removals[0].operation);
      CHECK(forget.when_quiet == (row.volume == nullptr));  // nobody waits for what is gone
    }
  }
}

TEST_CASE("nothing else is done while a removal that nobody wants is ending") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    Row row;
    unwanted.become(row);
    row.removal(State::kEnding);
    CHECK(is_plain_wait(row.next()));
  }
}

TEST_CASE(
    "a removal that nobody wants is told if its end does not come, if there is whom to tell") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    Row row;
    unwanted.become(row);
    row.removal(State::kEnding).progress.message = "the node does not answer";
    if (row.volume == nullptr) {
      CHECK(is_plain_wait(row.next()));
    } else {
      CHECK(row.next_is<for_volume::Follow>().removal.operation == row.removals[0].operation);
    }
  }
}

TEST_CASE("a wait ends when a removal changes by itself") {
  Row row;
  row.is_gone();
  row.removal(State::kEnding).progress.changes_at = row.now + seconds(3);
  CHECK(row.next_is<for_volume::Wait>().at_most == seconds(3));
}

TEST_CASE("of several removals that nobody wants each has its turn") {
  Row row;
  row.is_kept(bound_volume());
  row.removal(State::kEnding, 1);
  row.removal(State::kRunning, 2);
  row.removal(State::kFailed, 3);
  CHECK(row.next_is<for_volume::Cancel>().removal.operation->attempt == 2);
  row.removals[1].progress.state = State::kEnding;
  CHECK(row.next_is<for_volume::Forget>().operation->attempt == 3);
}

// A volume that is to be kept.

TEST_CASE("a volume that is gone is forgotten") {
  Row row;
  row.is_gone();
  CHECK(row.next_is<for_volume::Wait>().forget);
}

TEST_CASE("a volume of somebody else is left alone, whatever it looks like") {
  for (const bool has_finalizer : {true, false}) {
    Row row;
    auto other = bound_volume().annotation(std::string(kProvisionedBy), "example.com/other");
    if (!has_finalizer) other.unset("/metadata", "finalizers");
    row.is_kept(other.reclaim_policy("Retain"));
    CHECK(row.next_is<for_volume::Wait>().forget);
  }
}

TEST_CASE("a bound volume with policy Delete gets our finalizer") {
  Row row;
  row.is_kept(bound_volume().unset("/metadata", "finalizers"));
  row.next_is<for_volume::AddFinalizer>();
}

TEST_CASE("no finalizer is put on what is not bound, on its way out, or to be retained") {
  for (const VolumeBuilder& kept :
       {bound_volume().phase("Available"), bound_volume().reclaim_policy("Retain")}) {
    Row row;
    row.is_kept(VolumeBuilder(kept).unset("/metadata", "finalizers"));
    CHECK(row.next_is<for_volume::Wait>().forget);
  }
  // Nobody will remove its directory: that is told.
  Row row;
  row.is_kept(bound_volume().deleting().unset("/metadata", "finalizers"));
  row.next_is<for_volume::Refuse>();
  row.memory.retry = {.hold_until = row.now + seconds(3), .seen = row.seen()};
  CHECK_FALSE(row.next_is<for_volume::Wait>().forget);
}

TEST_CASE("a volume that is not to be deleted with its claim loses our finalizer") {
  for (const VolumeBuilder& kept :
       {bound_volume().reclaim_policy("Retain"), released_volume().reclaim_policy("Retain"),
        bound_volume().reclaim_policy("Retain").deleting()}) {
    Row row;
    row.is_kept(kept);
    row.next_is<for_volume::RemoveFinalizer>();
  }
}

TEST_CASE("a bound volume with our finalizer has all it needs") {
  Row row;
  row.is_kept(bound_volume());
  CHECK(row.next_is<for_volume::Wait>().forget);
}

// Removals that are in the way.

/// What is on record under the volume's name and is not its own removal comes first, to its end.
void check_comes_first(const std::shared_ptr<const Operation>& other) {
  for (const State state : kAllStates) {
    CAPTURE(static_cast<int>(state));
    Row row;
    row.removal(state).operation = other;
    const auto decision = row.next();
    if (row.removals[0].progress.over()) {
      CHECK_FALSE(testing::the<for_volume::Forget>(decision).when_quiet);
    } else if (state == State::kEnding) {
      CHECK(is_plain_wait(decision));
      row.removals[0].progress.message = "the node does not answer";
      CHECK(row.next_is<for_volume::Follow>().removal.operation == other);
    } else {
      CHECK(testing::the<for_volume::Cancel>(decision).removal.operation == other);
    }
  }
}

TEST_CASE("a removal of an earlier volume of this name comes first, to its end") {
  check_comes_first(volume_operation(Kind::kRemove, 1, "uid-of-another"));
}

TEST_CASE("a removal of another path or node than the volume's comes first, to its end") {
  check_comes_first(volume_operation(Kind::kRemove, 1, "uid-v", "/data/other"));
  check_comes_first(volume_operation(Kind::kRemove, 1, "uid-v", kVolumePath, "n2"));
}

TEST_CASE("the success of another volume's removal releases nothing") {
  Row row;
  row.removal_of_another(State::kSucceeded);
  row.removal(State::kRunning, 2);
  CHECK(row.next_is<for_volume::Forget>().operation->owner_uid == "uid-of-another");
}

TEST_CASE("earlier attempts are stopped when a later one is on record") {
  Row row;
  row.removal(State::kFailed, 1);
  row.removal(State::kRunning, 2);
  CHECK(row.next_is<for_volume::Forget>().operation->attempt == 1);
  row.removals[0].progress.state = State::kLate;
  CHECK(row.next_is<for_volume::Cancel>().removal.operation->attempt == 1);
  row.removals[0].progress.state = State::kEnding;
  CHECK(row.next_is<for_volume::Follow>().removal.operation->attempt == 2);
}

// The removal that is on record.

TEST_CASE("a removal is followed to its end") {
  for (const State state : kUnderWay) {
    Row row;
    row.removal(state);
    CHECK(row.next_is<for_volume::Follow>().removal.operation->attempt == 1);
  }
}

TEST_CASE("a removal that has waited too long is called off, and begins anew when it has ended") {
  for (const State state : {State::kWaiting, State::kRunning}) {
    Row row;
    row.removal(state);
    row.removals[0].progress.outdated = true;
    CHECK(row.next_is<for_volume::Cancel>().removal.operation->attempt == 1);
    row.removals[0].progress = {.state = State::kEnding};
    row.next_is<for_volume::Follow>();
    row.removals.clear();
    row.next_is<for_volume::Remove>();
  }
}

TEST_CASE("the volume is released when its directory is gone") {
  Row row;
  row.removal(State::kSucceeded);
  row.next_is<for_volume::Release>();
}

TEST_CASE("a volume that has just been released is not released again at once") {
  Row row;
  row.removal(State::kSucceeded);
  row.memory.released = row.now + seconds(1);
  CHECK(is_plain_wait(row.next()));
  row.memory.released = row.now;
  row.next_is<for_volume::Release>();
}

TEST_CASE("a removal that failed or is late is counted and told once") {
  for (const State state : {State::kFailed, State::kLate}) {
    Row row;
    row.removal(state, 3);
    row.has_failed(2, -seconds(1));
    CHECK(row.next_is<for_volume::Failed>().removal.operation->attempt == 3);
  }
}

TEST_CASE("a late removal is cancelled once it is counted") {
  Row row;
  row.removal(State::kLate);
  row.has_failed(1, seconds(1));
  CHECK(row.next_is<for_volume::Cancel>().removal.operation->attempt == 1);
}

TEST_CASE("the next attempt waits its time, then goes by the base path of the one before") {
  Row row;
  Operation first = *volume_operation(Kind::kRemove, 2);
  first.base_path = "/data-as-it-was";
  row.removal(State::kFailed).operation = std::make_shared<const Operation>(first);
  row.has_failed(2, seconds(3));
  CHECK(row.next_is<for_volume::Wait>().at_most == seconds(3));
  row.has_failed(2, Duration::zero());
  const auto next = row.next_is<for_volume::Remove>().operation;
  CHECK(next.attempt == 3);
  CHECK(next.base_path == "/data-as-it-was");
}

TEST_CASE("the next attempt does not wait when what can be changed has changed") {
  Row row;
  row.removal(State::kFailed);
  row.has_failed(1, minutes(5));
  row.volume = released_volume().resource_version("2").shared();
  row.next_is<for_volume::Remove>();
}

// Whether a removal may begin.

TEST_CASE("nothing is removed again of a volume that has just been let go") {
  Row row;
  row.memory.released = row.now + seconds(1);
  CHECK(is_plain_wait(row.next()));
}

TEST_CASE("a volume without a path is refused") {
  Row row;
  row.volume = released_volume().unset("/spec", "hostPath").shared();
  row.next_is<for_volume::Refuse>();
}

TEST_CASE("a volume of which it is not clear where its directory is is refused") {
  Row row;
  row.node = {.kind = VolumeNode::Kind::kUnclear, .name = {}, .description = "two nodes match"};
  const auto refusal = row.next_is<for_volume::Refuse>().message;
  CHECK(refusal.find("two nodes match") != std::string::npos);
}

TEST_CASE("a volume is refused whose label no node has, for somebody may have edited the label") {
  Row row;
  row.node = {.kind = VolumeNode::Kind::kGone, .name = {}, .description = "labelled zone=a"};
  const auto refusal = row.next_is<for_volume::Refuse>().message;
  CHECK(refusal.find("labelled zone=a") != std::string::npos);
}

TEST_CASE("a volume of a node that is gone is let go, if the API server says so too") {
  Row row;
  row.node = {.kind = VolumeNode::Kind::kGone, .name = "n1", .description = "n1"};
  CHECK(row.next_is<for_volume::LetGo>().node == "n1");
}

TEST_CASE("a directory that is no volume's is refused: a base path, the system's, anybody's") {
  for (const std::string path : {"/data", "/", "/data/../etc", "/etc/v", "/home/somebody"}) {
    CAPTURE(path);
    Row row;
    row.volume = released_volume().host_path(path).shared();
    row.next_is<for_volume::Refuse>();
  }
}

TEST_CASE("a base path, or what lies around one, is refused though the volume is called like it") {
  config::Config config;
  config.paths.node_path_map = {{"n1", {"/srv/volumes/data"}}};
  for (const std::string path : {"/srv/volumes/data", "/srv/volumes"}) {
    CAPTURE(path);
    for (const char* name : {"volumes", "data"}) {
      const auto removable = check_removable(testing::volume(name).host_path(path).build(), config);
      REQUIRE_FALSE(removable.ok());
      CHECK(removable.error().message.find("/srv/volumes/data") != std::string::npos);
    }
  }
}

TEST_CASE("a directory that another volume is to keep is not removed") {
  Row row;
  row.overlapping = testing::volume("other").host_path("/data").shared();
  row.next_is<for_volume::PathTaken>();
}

TEST_CASE("a removal on record is cancelled when another volume has come to keep its directory") {
  for (const State state : {State::kWaiting, State::kRunning, State::kLate}) {
    Row row;
    row.removal(state);
    row.overlapping = testing::volume("other").host_path(kVolumePath).shared();
    row.next_is<for_volume::Cancel>();
    row.overlapping_goes_too = true;
    CHECK_FALSE(std::holds_alternative<for_volume::Cancel>(row.next()));
  }
  Row row;
  row.removal(State::kEnding);
  row.overlapping = testing::volume("other").host_path(kVolumePath).shared();
  row.next_is<for_volume::Follow>();
}

TEST_CASE("a volume is let go whose directory goes with another's, which is asked for first") {
  Row row;
  row.overlapping = testing::volume("w").host_path(kVolumePath).shared();
  row.overlapping_goes_too = true;
  row.overlapping_takes_it_along = true;
  const auto let_go = row.next_is<for_volume::LetGo>();
  CHECK(let_go.node.empty());
  CHECK(let_go.why.find("volume w") != std::string::npos);
}

TEST_CASE("the record of its making goes before the directory does") {
  for (const State state : {State::kWaiting, State::kRunning, State::kLate}) {
    Row row;
    row.make(state);
    CHECK(row.next_is<for_volume::Cancel>().removal.operation == row.makes[0].operation);
  }
  for (const State state : kOver) {
    Row row;
    row.make(state);
    const auto forget = row.next_is<for_volume::Forget>();
    CHECK(forget.operation == row.makes[0].operation);
    CHECK_FALSE(forget.when_quiet);
  }
}

TEST_CASE("a make on its way out is waited for, unless only its record is left") {
  Row row;
  row.make(State::kEnding);
  CHECK(is_plain_wait(row.next()));
  row.makes[0].progress.acts_no_more = true;
  row.next_is<for_volume::Remove>();
}

TEST_CASE("the directory of a released volume is removed") {
  Row row;
  const auto removal = row.next_is<for_volume::Remove>().operation;
  CHECK(removal.kind == Kind::kRemove);
  CHECK(removal.volume_name == "v");
  CHECK(removal.owner_uid == "uid-v");
  CHECK(removal.attempt == 1);
  CHECK(removal.node == "n1");
  CHECK(removal.path == kVolumePath);
  CHECK(removal.base_path == "/data");
  CHECK_FALSE(removal.require_mount);
}

TEST_CASE("nothing is taken for removed on a path whose disk may be missing") {
  Row row;
  config::Config paths = *row.config;
  paths.paths.mount_nodes.insert("n1");
  row.config = std::make_shared<const config::Config>(std::move(paths));
  CHECK(row.next_is<for_volume::Remove>().operation.require_mount);
}

TEST_CASE("the base path of a volume is its own node's, whatever others have inside it") {
  config::Config config;
  config.paths.node_path_map = {{"big", {"/data/prod", "/data"}},
                                {std::string(config::kDefaultNode), {"/data"}}};
  config.paths.mount_nodes.insert(std::string(config::kDefaultNode));
  config.classes["fast"].node_path_map = {{"n1", {"/data/fast"}}};
  config.classes["shared"].shared_file_system_path = "/data/shared";
  CHECK(base_path_of("n1", "/data/prod/db", config) == "/data");
  CHECK(base_path_of("big", "/data/prod/db", config) == "/data/prod");
  CHECK(base_path_of("n1", "/data/fast/db", config) == "/data/fast");
  CHECK(base_path_of("n2", "/data/fast/db", config) == "/data");
  CHECK(base_path_of("n1", "/data/shared/db", config) == "/data/shared");
  // Of which node is not known, and what the node has no more may be another's.
  CHECK(base_path_of("", "/data/prod/db", config) == "/data/prod");
  config.paths.node_path_map["n1"] = {"/other"};
  CHECK(base_path_of("n1", "/data/prod/db", config) == "/data/prod");
  CHECK(base_path_of("n1", "/elsewhere/db", config).empty());
}

TEST_CASE("nothing is taken for removed below a base path that another node has inside") {
  Row row;
  config::Config config;
  config.paths.node_path_map = {{"big", {"/data/prod"}},
                                {std::string(config::kDefaultNode), {"/data"}}};
  config.paths.mount_nodes.insert(std::string(config::kDefaultNode));
  row.config = std::make_shared<const config::Config>(std::move(config));
  row.volume = released_volume().host_path("/data/prod/db").shared();
  const auto removal = row.next_is<for_volume::Remove>().operation;
  CHECK(removal.base_path == "/data");
  CHECK(removal.require_mount);
}

TEST_CASE("a directory that every node shares is removed by any of them") {
  Row row;
  row.node = {.kind = VolumeNode::Kind::kAny, .name = {}, .description = {}};
  CHECK(row.next_is<for_volume::Remove>().operation.node.empty());
}

TEST_CASE("the number of a removal is one that no other has had, nor what took it back") {
  Row row;
  row.has_failed(4, -seconds(1));
  CHECK(row.next_is<for_volume::Remove>().operation.attempt == 5);
  row.last_other = 6;
  CHECK(row.next_is<for_volume::Remove>().operation.attempt == 7);
}

}  // namespace
}  // namespace lpp::provisioner::volume_rows
