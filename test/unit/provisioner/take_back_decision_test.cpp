// SPDX-License-Identifier: Apache-2.0
// The table of what is done for a claim, its first rows: what was begun and is not wanted. A row a
// test, in the order of the code. The other rows are in claim_decision_test.cpp.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::take_back_rows {
namespace {

using operation::Kind;
using operation::Operation;
using std::chrono::seconds;
using testing::change;
using testing::claim_operation;
using testing::is_plain_wait;
using testing::kEnded;
using testing::kOver;
using testing::kUnderWay;
using testing::kUnsafePath;
using testing::State;
using Row = testing::ClaimRow;

// A volume that the cache does not show.

TEST_CASE("the API server is asked for a created volume whose claim is gone before all else") {
  Row row;
  row.claim_is_gone();
  row.memory.published = row.now;
  row.make(State::kSucceeded);
  row.take_back(State::kSucceeded);
  row.next_is<for_claim::CheckPublished>();
}

// What takes a directory back.

TEST_CASE("an attempt to take a directory back that failed gives way to the next one") {
  Row row;
  row.claim_is_gone();
  row.make(State::kSucceeded);
  row.take_back(State::kFailed, 1);
  row.take_back(State::kRunning, 2);
  row.take_back_has_failed(1, Duration::zero());
  const auto forget = row.next_is<for_claim::Forget>();
  CHECK(forget.operation == row.taking_back[0].operation);
  CHECK(forget.heir == nullptr);
  CHECK_FALSE(forget.when_quiet);
  // Without it the second one is followed, and its success is seen.
  row.taking_back.erase(row.taking_back.begin());
  CHECK(is_plain_wait(row.next()));
  row.taking_back[0].progress.state = State::kSucceeded;
  row.next_is<for_claim::FinishTakeBack>();
}

TEST_CASE(
    "a taking back is cancelled where a volume is by now, whatever other attempts there are") {
  for (const State state : {State::kWaiting, State::kRunning}) {
    Row row;
    row.take_back(state, 2).in_use = true;
    for (const int other : {1, 3}) {
      Row several = row;
      several.take_back(State::kEnding, other);
      CHECK(several.next_is<for_claim::Cancel>().operation->attempt == 2);
    }
    CHECK(row.next_is<for_claim::Cancel>().operation->attempt == 2);
  }
}

TEST_CASE("a teardown is stopped unless the record of the make says that it made the directory") {
  for (const State state : {State::kWaiting, State::kRunning}) {
    Row row;
    row.claim_is_gone();
    row.take_back(state);
    CHECK(is_plain_wait(row.next()));
    change(row.taking_back[0].operation, [](Operation& one) { one.only_if_empty = false; });
    row.next_is<for_claim::Cancel>();
    row.make(State::kSucceeded);
    row.next_is<for_claim::Cancel>();
    row.makes[0].begun.made = true;
    CHECK(is_plain_wait(row.next()));
  }
}

TEST_CASE("a taking back that goes on is waited for, and nothing is begun in its place") {
  for (const State state : kUnderWay) {
    Row row;
    row.take_back(state);
    CHECK(is_plain_wait(row.next()));
  }
}

TEST_CASE(
    "a taking back that has waited too long is called off, and begins anew when it has ended") {
  for (const State state : {State::kWaiting, State::kRunning}) {
    Row row;
    row.claim_is_gone();
    row.make(State::kSucceeded).begun.given_up = true;
    row.take_back(state).progress.outdated = true;
    CHECK(row.next_is<for_claim::Cancel>().operation == row.taking_back[0].operation);
    row.taking_back[0].progress = {.state = State::kEnding};
    CHECK(is_plain_wait(row.next()));
    row.taking_back.clear();
    row.next_is<for_claim::TakeBack>();
  }
}

TEST_CASE("a taking back that does not get on is told") {
  for (const State state : kUnderWay) {
    Row row;
    row.take_back(state).progress.message = "no such image";
    CHECK(row.next_is<for_claim::TakeBackStuck>().progress.message == "no such image");
  }
}

TEST_CASE("a taking back that has succeeded is finished") {
  Row row;
  row.take_back(State::kSucceeded);
  CHECK(row.next_is<for_claim::FinishTakeBack>().done.operation == row.taking_back[0].operation);
}

TEST_CASE("a taking back that has failed or is late is counted once") {
  for (const State state : {State::kFailed, State::kLate}) {
    Row row;
    row.take_back(state, 3);
    row.take_back_has_failed(2, -seconds(1));
    CHECK(row.next_is<for_claim::TakeBackFailed>().failed.operation->attempt == 3);
  }
}

TEST_CASE("a late taking back is cancelled once it is counted") {
  Row row;
  row.take_back(State::kLate);
  row.take_back_has_failed(1, seconds(1));
  CHECK(row.next_is<for_claim::Cancel>().operation == row.taking_back[0].operation);
  row.take_back(State::kRunning, 2);  // it does not keep the earlier one from being stopped
  CHECK(row.next_is<for_claim::Cancel>().operation == row.taking_back[0].operation);
}

TEST_CASE("a taking back that is called off is begun anew though no make of it is known") {
  Row row;
  row.claim_is_gone();
  SUBCASE("it has waited too long") { row.take_back(State::kWaiting).progress.outdated = true; }
  SUBCASE("it is late") {
    row.take_back(State::kLate);
    row.take_back_has_failed(1, seconds(1));
  }
  row.taking_back[0].in_use = true;
  CHECK_FALSE(row.next_is<for_claim::Cancel>().is_last_record);
  row.taking_back[0].in_use = false;
  CHECK(row.next_is<for_claim::Cancel>().is_last_record);
  row.make(State::kSucceeded).begun.given_up = true;
  CHECK_FALSE(row.next_is<for_claim::Cancel>().is_last_record);
}

TEST_CASE("a taking back that has failed is given up where a volume is by now") {
  Row row;
  row.take_back(State::kFailed).in_use = true;
  row.next_is<for_claim::FinishTakeBack>();
}

TEST_CASE("a taking back that has failed is not tried again while it is held") {
  Row row;
  row.claim_is_gone();
  row.take_back(State::kFailed);
  row.take_back_has_failed(1, seconds(4));
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(4));
}

TEST_CASE("a taking back that has failed is not tried again while a make may act there") {
  for (const State state : {State::kRunning, State::kEnding}) {
    Row row;
    row.claim_is_gone();
    row.make(state);
    row.take_back(State::kFailed);
    row.take_back_has_failed(1, Duration::zero());
    CHECK(is_plain_wait(row.next()));
    row.makes[0].progress = {.state = State::kEnding, .acts_no_more = true};
    row.next_is<for_claim::TakeBack>();
  }
}

TEST_CASE("a taking back that has failed is not tried again while another attempt may act there") {
  for (const char* path : {"/data", testing::kClaimPath}) {
    Row row;
    row.claim_is_gone();
    row.take_back(State::kEnding, 1).operation = claim_operation(Kind::kTakeBack, 1, "n1", path);
    row.take_back(State::kFailed, 2);
    row.take_back_has_failed(2, Duration::zero());
    CHECK(is_plain_wait(row.next()));
    row.taking_back[0].progress.acts_no_more = true;
    CHECK(row.next_is<for_claim::TakeBack>().attempt == 3);
  }
}

TEST_CASE("a taking back that has failed is tried again with the make that it is of") {
  Row row;
  row.claim_is_gone();
  row.make(State::kSucceeded, 1, "n2");
  row.make(State::kSucceeded, 2);
  row.take_back(State::kFailed, 5);
  row.take_back_has_failed(5, Duration::zero());
  row.memory.take_back["n2:" + std::string(testing::kClaimPath)] = {
      .number = 1, .hold_until = row.now + seconds(9)};
  const auto again = row.next_is<for_claim::TakeBack>();
  CHECK(again.attempt == 6);
  CHECK(again.make.operation().id() == row.makes[1].operation().id());
}

TEST_CASE("a taking back that has failed is tried again by its own record where no other is left") {
  Row row;
  row.claim_is_gone();
  row.take_back(State::kFailed);
  row.take_back_has_failed(1, Duration::zero());
  const auto again = row.next_is<for_claim::TakeBack>();
  CHECK(again.attempt == 2);
  CHECK(again.make.begun.operation == row.taking_back[0].operation);
  CHECK(again.make.begun.given_up);
  CHECK_FALSE(again.make.begun.never_published);
  CHECK_FALSE(again.make.begun.made);
}

// What was made.

TEST_CASE("the record of a make that is done is forgotten once it is over") {
  for (const State state : kOver) {
    for (const bool shown : {true, false}) {
      Row row;
      if (shown) row.volume_is_there();
      Make& make = row.make(state);
      make.begun.done = true;
      make.shown = shown;
      const auto forget = row.next_is<for_claim::Forget>();
      CHECK(forget.operation == row.makes[0].begun.operation);
      CHECK(forget.when_quiet == shown);  // else something may wait for its place
    }
  }
}

TEST_CASE("a late make that is done is cancelled, unless its volume is there") {
  Row row;
  row.make(State::kLate).begun.done = true;
  CHECK(row.next_is<for_claim::Cancel>().operation == row.makes[0].begun.operation);
  row.volume_is_there();
  row.makes[0].shown = true;
  CHECK(is_plain_wait(row.next()));
}

TEST_CASE("the record of a make whose volume is there is forgotten once it is over") {
  for (const auto& state : kEnded) {
    Row row;
    row.volume_is_there();
    row.make(state).shown = true;
    CHECK(row.next_is<for_claim::Forget>().when_quiet);
  }
}

TEST_CASE("a make whose volume is there is let end") {
  for (const State state : {State::kWaiting, State::kRunning, State::kLate, State::kEnding}) {
    for (const bool claim_is_there : {true, false}) {
      Row row;
      row.volume_is_there();
      if (!claim_is_there) row.claim_is_gone();
      row.make(state).shown = true;
      CHECK(is_plain_wait(row.next()));
    }
  }
}

/// All reasons for which nobody waits for what was made on n1.
struct Unwanted {
  const char* why;
  void (*become)(Row&);
};

constexpr std::array kUnwanted{
    Unwanted{"the claim is gone", [](Row& row) { row.claim_is_gone(); }},
    Unwanted{"the claim is bound to another volume",
             [](Row& row) { row.claim_is(testing::claim("a").node("n1").volume("b"), "n1"); }},
    Unwanted{"the claim has moved to another node", [](Row& row) { row.claim_moved_to_n2(); }},
    Unwanted{"the selected node was taken off the claim",
             [](Row& row) { row.claim_is(testing::claim("a"), ""); }},
    Unwanted{"the claim asks somebody else by now",
             [](Row& row) {
               row.claim_is(testing::claim("a").node("n1").provisioner("example.com/other"), "n1");
             }},
    Unwanted{"its volume is there and shows another directory",
             [](Row& row) { row.volume_is_there("/data/elsewhere"); }},
    Unwanted{"it was given up before",
             [](Row& row) {
               for (Make& make : row.makes) make.begun.given_up = true;
             }},
};

TEST_CASE("a make that nobody waits for is withdrawn while it has not begun to act, or is late") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    for (const State state : {State::kWaiting, State::kLate}) {
      Row row;
      row.make(state);
      unwanted.become(row);
      const auto withdraw = row.next_is<for_claim::Withdraw>();
      CHECK(withdraw.make.begun.operation == row.makes[0].begun.operation);
    }
  }
}

TEST_CASE("a make that nobody waits for is let end once it acts, and nothing is taken back yet") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    for (const State state : {State::kRunning, State::kEnding}) {
      Row row;
      row.make(state);
      unwanted.become(row);
      const auto decision = row.next();
      const bool begins_elsewhere = std::holds_alternative<for_claim::Start>(decision);
      CHECK(begins_elsewhere == (row.node_name == "n2"));
      if (!begins_elsewhere) CHECK(is_plain_wait(decision));
    }
  }
}

TEST_CASE("a make that nobody waits for is told if its end does not come") {
  Row row;
  row.claim_is_gone();
  row.make(State::kEnding).progress->message = "the node does not answer";
  CHECK(row.next_is<for_claim::TakeBackStuck>().operation == row.makes[0].begun.operation);
}

TEST_CASE("a make that nobody waits for is taken back once it is over, or its record vanished") {
  for (const Unwanted& unwanted : kUnwanted) {
    CAPTURE(unwanted.why);
    for (const auto& state : kEnded) {
      Row row;
      row.make(state);
      unwanted.become(row);
      const auto back = row.next_is<for_claim::TakeBack>();
      CHECK(back.make.begun.operation == row.makes[0].begun.operation);
      CHECK(back.attempt == 1);
    }
  }
}

TEST_CASE("what was given up is not published, though its claim has come back") {
  Row row;
  row.make(State::kSucceeded);
  row.next_is<for_claim::Publish>();
  row.makes[0].begun.given_up = true;
  row.next_is<for_claim::TakeBack>();
  row.take_back(State::kRunning);
  CHECK(is_plain_wait(row.next()));
}

TEST_CASE("a make that has failed is taken back for a claim on its way out, and not tried again") {
  Row row;
  row.claim_is(testing::claim("a").node("n1").deleting(), "n1");
  row.make(State::kFailed);
  row.next_is<for_claim::Failed>();  // it is counted and told all the same
  row.make_has_failed(1, Duration::zero());
  row.next_is<for_claim::TakeBack>();
}

TEST_CASE("a make is left alone while its taking back is held") {
  Row row;
  row.claim_is_gone();
  row.make(State::kSucceeded);
  row.take_back_has_failed(4, seconds(7));
  CHECK(row.next_is<for_claim::Wait>().at_most == seconds(7));
  row.take_back_has_failed(4, Duration::zero());
  CHECK(row.next_is<for_claim::TakeBack>().attempt == 5);
}

TEST_CASE("removals and take-backs of one name count their attempts together") {
  Row row;
  row.claim_is_gone();
  row.make(State::kFailed);
  row.removal(State::kSucceeded, 3);
  CHECK(row.next_is<for_claim::TakeBack>().attempt == 4);
}

TEST_CASE("a make whose taking back is on record is that one's business") {
  for (const State state :
       {State::kWaiting, State::kRunning, State::kEnding, State::kSucceeded, State::kFailed}) {
    Row row;
    row.make(state);
    row.take_back(State::kRunning);
    CHECK(is_plain_wait(row.next()));
  }
}

TEST_CASE("a late make is cancelled though its taking back is on record") {
  Row row;
  row.make(State::kLate);
  row.take_back(State::kRunning);
  CHECK(row.next_is<for_claim::Cancel>().operation == row.makes[0].begun.operation);
}

TEST_CASE("nothing is taken back while another attempt may still be at work there") {
  for (const State state : {State::kRunning, State::kEnding}) {
    for (const auto& ended : {std::optional(State::kFailed), std::optional<State>()}) {
      Row row;
      row.claim_is_gone();
      row.make(ended, 1);
      row.make(state, 2);
      CHECK(is_plain_wait(row.next()));
      row.makes[1].progress = {.state = State::kEnding, .acts_no_more = true};
      row.next_is<for_claim::TakeBack>();
    }
  }
  Row waiting;
  waiting.claim_is_gone();
  waiting.make(State::kFailed, 1);
  waiting.make(State::kWaiting, 2);
  CHECK(waiting.next_is<for_claim::Withdraw>().make.operation().attempt == 2);
}

TEST_CASE("an earlier make is forgotten for the later one that has its directory") {
  for (const auto& state : kEnded) {
    Row row;
    row.make(state);
    row.make(State::kRunning, 2);
    const auto forget = row.next_is<for_claim::Forget>();
    CHECK(forget.operation == row.makes[0].begun.operation);
    CHECK(forget.heir == row.makes[1].begun.operation);
    CHECK_FALSE(forget.when_quiet);
  }
}

TEST_CASE("what another node did on a shared filesystem is inherited, not taken back") {
  const auto share = [](Operation& one) { one.shared = true; };
  for (const int attempt_elsewhere : {1, 3}) {
    CAPTURE(attempt_elsewhere);
    Row row;
    row.claim_moved_to_n2();
    change(row.make(State::kSucceeded, attempt_elsewhere, "n1").begun.operation, share);
    // Before the next node's make there is an heir to wait for: that make, as soon as it begins.
    CHECK(row.next_is<for_claim::Start>().operation.node == "n2");
    change(row.make(State::kSucceeded, 2, "n2").begun.operation, share);
    const auto forget = row.next_is<for_claim::Forget>();
    CHECK(forget.operation == row.makes[0].begun.operation);
    CHECK(forget.heir == row.makes[1].begun.operation);
  }
}

TEST_CASE("a claim goes on elsewhere while what it left on a node cannot be taken back") {
  for (const State state : kUnderWay) {
    Row row;
    row.claim_moved_to_n2();
    row.make(State::kSucceeded);
    row.take_back(state);
    CHECK(row.next_is<for_claim::Start>().operation.node == "n2");
  }
}

TEST_CASE("nothing is taken back while a volume of unknown origin has the claim's volume name") {
  Row row;
  row.volume_is_anothers();
  row.make(State::kSucceeded);
  row.next_is<for_claim::OtherVolume>();
}

// How careful a taking back is.

TEST_CASE("a teardown takes only what no volume showed and what is certainly the make's") {
  struct Said {
    bool never_published;
    bool made;
    bool on_record;
    bool may;
  };
  for (const Said& said : std::vector<Said>{{true, true, true, true},
                                            {true, true, false, false},
                                            {true, false, true, false},
                                            {true, false, false, false},
                                            {false, true, true, false},
                                            {false, false, true, false}}) {
    // That the name holds the claim's UID says nothing: a restored backup may know the claim of a
    // directory that is full.
    for (const char* path : {testing::kClaimPath, kUnsafePath}) {
      Make make{.begun = {.operation = claim_operation(Kind::kMake, 1, "n1", path),
                          .never_published = said.never_published,
                          .made = said.made}};
      if (said.on_record) make.progress = {.state = State::kSucceeded};
      CHECK(may_tear_down(make) == said.may);
      if (!make.progress) continue;
      make.progress->standing = operation::Progress::Standing::kAwaited;
      CHECK_FALSE(may_tear_down(make));
    }
  }
}

}  // namespace
}  // namespace lpp::provisioner::take_back_rows
