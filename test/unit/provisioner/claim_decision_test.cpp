// SPDX-License-Identifier: Apache-2.0
// The table of what is done for a claim, row by row and in the order of the code, where nothing is
// left to be cleared away: the claim itself, what was begun for it, what is new.

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::claim_rows {
namespace {

using operation::Kind;
using operation::Operation;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::change;
using testing::claim_operation;
using testing::is_plain_wait;
using testing::kEnded;
using testing::kOver;
using testing::kUnderWay;
using testing::State;
using Row = testing::ClaimRow;

// Its volume is there, and an agent tells that it had begun to make it once.

TEST_CASE("a make that waits for word whose volume is there is never done again") {
  for (const State state : {State::kWaiting, State::kRunning, State::kLate}) {
    for (const bool is_done : {false, true}) {
      for (const bool claim_is_there : {true, false}) {
        Row row;
        row.volume_is_there();
        if (!claim_is_there) row.claim_is_gone();
        Make& make = row.make(state);
        make.shown = true;
        make.begun.done = is_done;
        make.progress->outdated = true;
        CHECK(row.next_is<for_claim::Cancel>().operation == row.makes[0].begun.operation);
        row.makes[0].progress = operation::Progress{.state = State::kEnding};
        CHECK(is_plain_wait(row.next()));
      }
    }
  }
}

// Nobody asks for anything.

TEST_CASE("a claim that is gone is forgotten once nothing of it is on record or in mind") {
  Row row;
  row.claim_is_gone();
  CHECK(row.next_is<for_claim::Wait>().forget);
  row.make(State::kRunning);
  CHECK(is_plain_wait(row.next()));
}

TEST_CASE("another's volume under the claim's volume name is told, never taken for success") {
  Row row;
  row.volume_is_anothers();
  CHECK_FALSE(row.next_is<for_claim::OtherVolume>().difference.empty());
}

TEST_CASE("a claim whose volume is there has all it needs") {
  Row row;
  row.volume_is_there();
  CHECK(row.next_is<for_claim::Wait>().forget);
}

TEST_CASE("a claim that does not ask is forgotten unless it will ask again") {
  Row row;
  row.claim_is(testing::claim("a").node("n1").volume("b"), "n1");
  CHECK(row.next_is<for_claim::Wait>().forget);
  row.memory.published = row.now;  // the volume may still come to sight
  CHECK_FALSE(row.next_is<for_claim::Wait>().forget);
  Row waits_for_a_node;
  waits_for_a_node.claim_is(testing::claim("a"), "");
  CHECK_FALSE(waits_for_a_node.next_is<for_claim::Wait>().forget);
}

TEST_CASE("a created volume is waited for, and after a while the API server is asked for it") {
  Row row;
  row.memory.published = row.now - seconds(29);
  CHECK(is_plain_wait(row.next()));
  row.memory.published = row.now - seconds(30);
  row.next_is<for_claim::CheckPublished>();
}

TEST_CASE("a selected node that the cache does not know is asked for, once for what is seen") {
  Row row;
  row.node = nullptr;
  row.next_is<for_claim::CheckNode>();
  row.memory.retry = {.hold_until = row.now + seconds(5), .seen = row.seen()};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(5));
}

TEST_CASE("a claim that has just been sent back to the scheduler asks for no other unknown node") {
  Row row;
  row.node = nullptr;
  row.memory.reschedule_at = row.now + seconds(3);
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(3));
  row.memory.reschedule_at = row.now;
  row.next_is<for_claim::CheckNode>();
}

// What was begun and is wanted.

TEST_CASE("a make that the claim waits for is followed to its end") {
  for (const State state : kUnderWay) {
    Row row;
    row.make(state);
    CHECK(row.next_is<for_claim::Follow>().make.operation().attempt == 1);
  }
}

TEST_CASE("nothing is published on the word of an agent that is away, or of another disk") {
  Row row;
  Make& make = row.make(State::kSucceeded);
  make.progress->directory = operation::Directory::kMade;
  make.progress->standing = operation::Progress::Standing::kAwaited;
  row.next_is<for_claim::Follow>();
  make.progress->standing = operation::Progress::Standing::kDoubtful;
  const auto again = row.next_is<for_claim::Start>().operation;
  CHECK(again.path == make.operation().path);
  CHECK(again.attempt == 2);
  make.progress->standing = operation::Progress::Standing::kCertain;
  row.next_is<for_claim::Publish>();
}

TEST_CASE("the volume is published when its directory is there") {
  Row row;
  row.make(State::kSucceeded);
  CHECK(row.next_is<for_claim::Publish>().make.operation().attempt == 1);
}

TEST_CASE("the latest attempt counts, wherever it stands in the list") {
  Row row;
  row.make(State::kWaiting, 2);
  row.make(State::kRunning, 3);
  row.make(State::kWaiting, 1);
  CHECK(row.next_is<for_claim::Follow>().make.operation().attempt == 3);
}

TEST_CASE("no volume is shown, and nothing made again, around or inside what is taken back") {
  for (const char* path : {"/data", "/data/pvc-uid-a_default_a/inner"}) {
    for (const State state : kOver) {
      Row row;
      row.make(state);
      row.make_has_failed(1, Duration::zero());
      row.take_back(State::kRunning).operation = claim_operation(Kind::kTakeBack, 1, "n1", path);
      change(row.taking_back[0].operation, [](Operation& one) { one.only_if_empty = true; });
      CHECK(is_plain_wait(row.next()));
    }
  }
}

TEST_CASE("no volume is shown, and nothing made again, where an earlier attempt may still act") {
  for (const State state : kOver) {
    Row row;
    row.make(state, 2);
    row.make_has_failed(2, Duration::zero());
    for (const State earlier : kUnderWay) {
      Row busy = row;
      busy.make(earlier, 1);
      CHECK(is_plain_wait(busy.next()));
    }
  }
}

TEST_CASE("no volume is shown, and nothing made, where a removal of the name may still act") {
  for (const State state : {State::kWaiting, State::kRunning, State::kLate, State::kEnding}) {
    Row row;
    auto& removal = row.removal(state);
    CHECK(is_plain_wait(row.next()));
    row.make(State::kSucceeded);
    CHECK(is_plain_wait(row.next()));
    removal.progress.message = "it does not go";
    (void)row.next_is<for_claim::TakeBackStuck>();
    removal.progress = {.state = State::kEnding, .acts_no_more = true};
    (void)row.next_is<for_claim::Publish>();
  }
  for (const bool elsewhere : {false, true}) {
    Row row;
    row.removal(elsewhere ? State::kRunning : State::kSucceeded, 1,
                elsewhere ? "/data/elsewhere" : testing::kClaimPath);
    (void)row.next_is<for_claim::Start>();
  }
}

TEST_CASE("a make that waits for word does not go on where something else may still act") {
  Row row;
  row.make(State::kRunning).progress->outdated = true;
  CHECK(row.next_is<for_claim::Follow>().make.progress->outdated);
  row.removal(State::kRunning);
  CHECK(is_plain_wait(row.next()));
}

TEST_CASE("an earlier attempt that is late is cancelled before a volume is shown in its place") {
  Row row;
  row.make(State::kSucceeded, 2);
  row.make(State::kLate, 1);
  CHECK(row.next_is<for_claim::Cancel>().operation == row.makes[1].begun.operation);
}

TEST_CASE("an earlier attempt that waits for word is cancelled where a later one has its place") {
  Row row;
  row.make(State::kSucceeded, 2);
  row.make(State::kRunning, 1).progress->outdated = true;
  CHECK(row.next_is<for_claim::Cancel>().operation == row.makes[1].begun.operation);
}

TEST_CASE("an earlier attempt of which only the record is on its way out keeps nothing waiting") {
  Row row;
  row.make(State::kSucceeded, 2);
  row.make(State::kEnding, 1).progress->acts_no_more = true;
  CHECK(row.next_is<for_claim::Publish>().make.operation().attempt == 2);
}

TEST_CASE("another node's make keeps nothing waiting on a shared filesystem") {
  const auto share = [](Operation& one) { one.shared = true; };
  Row row;
  row.claim_moved_to_n2();
  change(row.make(State::kRunning, 1, "n1").begun.operation, share);
  change(row.make(State::kSucceeded, 2, "n2").begun.operation, share);
  CHECK(row.next_is<for_claim::Publish>().make.operation().node == "n2");
}

TEST_CASE("an attempt that failed or is late is counted and told once") {
  for (const State state : {State::kFailed, State::kLate}) {
    Row row;
    row.make_has_failed(1, -seconds(1));
    Make& make = row.make(state, 2);
    make.progress->message = "exit code 3";
    make.progress->reason = "Error";
    const auto failed = row.next_is<for_claim::Failed>();
    CHECK(failed.operation == row.makes[0].begun.operation);
    CHECK(failed.message == "exit code 3");
    CHECK(failed.reason == "Error");
  }
}

TEST_CASE("a late attempt is cancelled once it is counted, though the claim waits for it") {
  Row row;
  row.make(State::kLate);
  row.make_has_failed(1, seconds(1));
  CHECK(row.next_is<for_claim::Cancel>().operation == row.makes[0].begun.operation);
}

TEST_CASE("the next attempt waits its time, then does the very same under the next number") {
  Row row;
  row.make(State::kFailed, 2);
  row.make_has_failed(2, seconds(3));
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(3));
  row.make_has_failed(2, Duration::zero());
  const auto start = row.next_is<for_claim::Start>().operation;
  CHECK(start.attempt == 3);
  CHECK(start.path == row.makes[0].operation().path);
}

TEST_CASE("the next attempt is for the label that the node has by then") {
  Row row;
  row.make(State::kFailed, 1);
  row.make_has_failed(1, Duration::zero());
  operation::Operation make = row.makes[0].operation();
  make.shape = operation::Shape{.affinity_key = "kubernetes.io/hostname", .affinity_value = "n1"};
  make.shape->has_affinity = true;
  row.makes[0].begun.operation = std::make_shared<const operation::Operation>(make);
  const auto value = [&] {
    return row.next_is<for_claim::Start>().operation.shape->affinity_value;
  };
  CHECK(value() == "n1");
  row.node = testing::node("n1").label("kubernetes.io/hostname", "other").shared();
  CHECK(value() == "other");
  row.node = testing::node("n1").shared();
  CHECK(value() == "n1");
}

TEST_CASE("the next attempt does not wait when what can be changed has changed") {
  Row row;
  row.make(State::kFailed);
  row.make_has_failed(1, minutes(5));
  row.storage_class = testing::storage_class().resource_version("2").shared();
  row.next_is<for_claim::Start>();
}

// What is new.

TEST_CASE("an attempt whose record somebody removed is counted as failed") {
  Row row;
  row.memory.in_flight = claim_operation(Kind::kMake, 2);
  row.lost = {.state = State::kFailed, .message = "it was removed", .reason = "Removed"};
  CHECK(row.next_is<for_claim::Failed>().reason == "Removed");
  row.make_has_failed(2, seconds(3));
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(3));
}

TEST_CASE("nothing is begun while it is held for what is seen") {
  Row row;
  row.memory.retry = {.hold_until = row.now + seconds(2), .seen = row.seen()};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.claim_is(testing::claim("a").node("n1").resource_version("2"), "n1");
  row.next_is<for_claim::Start>();
}

TEST_CASE("a failure holds nothing on another node") {
  Row row;
  row.claim_moved_to_n2();
  row.make_has_failed(1, minutes(1));
  CHECK(row.next_is<for_claim::Start>().operation.node == "n2");
}

TEST_CASE("nothing is begun for a claim on its way out") {
  Row row;
  row.claim_is(testing::claim("a").node("n1").deleting(), "n1");
  const auto wait = row.next_is<for_claim::Wait>();
  CHECK_FALSE(wait.at_most);
  CHECK_FALSE(wait.forget);
}

TEST_CASE("what is made for a claim on its way out is not published, and kept in mind") {
  Row row;
  row.make(State::kSucceeded);
  row.claim_is(testing::claim("a").node("n1").deleting(), "n1");
  CHECK_FALSE(row.next_is<for_claim::Wait>().forget);
  row.claim_is(testing::claim("a").node("n1"), "n1");
  row.next_is<for_claim::Publish>();
}

TEST_CASE("on a shared filesystem nothing is taken back before the next node's make begins") {
  Row row;
  row.claim_moved_to_n2();
  change(row.make(State::kSucceeded, 1, "n1").begun.operation,
         [](Operation& one) { one.shared = true; });
  row.memory.retry = {.hold_until = row.now + seconds(2), .seen = row.seen()};
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(2));
  row.memory.retry = {};
  CHECK(row.next_is<for_claim::Start>().operation.node == "n2");
}

TEST_CASE("a claim whose class is not there is refused") {
  Row row;
  row.storage_class = nullptr;
  CHECK(row.next_is<for_claim::Refuse>().refusal.message ==
        "storageClass \"local-path\" not found");
}

TEST_CASE("a claim that can never work is refused") {
  Row row;
  row.claim_is(testing::claim("a").node("n1").volume_mode("Block"), "n1");
  CHECK_FALSE(row.next_is<for_claim::Refuse>().refusal.node_is_the_reason);
  Row not_configured;
  not_configured.claim_is(testing::claim("a").node("n3"), "n3");
  CHECK(not_configured.next_is<for_claim::Refuse>().refusal.node_is_the_reason);
}

TEST_CASE("nothing is begun around or inside what is being taken back") {
  for (const char* path : {"/data", testing::kClaimPath, "/data/pvc-uid-a_default_a/inner"}) {
    for (const State state : kUnderWay) {
      Row row;
      row.take_back(state).operation = claim_operation(Kind::kTakeBack, 1, "n1", path);
      change(row.taking_back[0].operation, [](Operation& one) { one.only_if_empty = true; });
      CHECK(is_plain_wait(row.next()));
    }
  }
}

TEST_CASE("nothing is begun where a make is on record that is done") {
  for (const State state : {State::kRunning, State::kEnding}) {
    Row row;
    row.make(state).begun.done = true;
    CHECK(is_plain_wait(row.next()));
  }
}

TEST_CASE("a claim that moves too often waits before it begins on yet another node") {
  Row row;
  row.claim_moved_to_n2();
  row.memory.begun_on = "n1";
  row.memory.move_at = row.now + seconds(6);
  row.memory.moves = 2;
  row.next_is<for_claim::Start>();
  row.memory.moves = 3;
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(6));
  row.memory.move_at = row.now;
  row.next_is<for_claim::Start>();
}

TEST_CASE("a directory is made for a claim that asks and has nothing yet") {
  Row row;
  const auto start = row.next_is<for_claim::Start>().operation;
  CHECK(start.kind == Kind::kMake);
  CHECK(start.attempt == 1);
  CHECK(start.node == "n1");
  CHECK(start.path == testing::kClaimPath);
  CHECK(start.shape.has_value());
}

TEST_CASE("the number of an attempt is one that no other has had, on whichever node") {
  Row row;
  row.claim_moved_to_n2();
  row.memory.retry.number = 2;
  row.make(State::kRunning, 5);
  CHECK(row.next_is<for_claim::Start>().operation.attempt == 6);
}

}  // namespace
}  // namespace lpp::provisioner::claim_rows
