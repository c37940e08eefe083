// SPDX-License-Identifier: Apache-2.0
// What a process notes of makes that it finds on record.

#include "provisioner/memory.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::memory_rows {
namespace {

using operation::Directory;
using operation::Kind;
using operation::Operation;
using operation::Recorded;
using testing::change;
using testing::claim_operation;
using testing::State;

Recorded recorded(Kind kind, State state, int attempt = 1) {
  return {claim_operation(kind, attempt), {.state = state}};
}

}  // namespace

TEST_CASE("what is over when it is first seen may have been published") {
  for (const State state : testing::kAllStates) {
    CAPTURE(static_cast<int>(state));
    Memory memory;
    note_begun({recorded(Kind::kMake, state)}, memory);
    REQUIRE(memory.begun.size() == 1);
    const bool may_be = state == State::kSucceeded || state == State::kEnding;
    CHECK(memory.begun[0].never_published != may_be);
  }
}

TEST_CASE("on a shared filesystem another node's make may have been published by then") {
  const auto share = [](Operation& one) { one.shared = true; };
  const auto any_node = [](Operation& one) { one.node.clear(); };
  for (const State state : testing::kAllStates) {
    for (const bool has_node : {true, false}) {
      Recorded make = recorded(Kind::kMake, state);
      if (has_node)
        change(make.operation, share);
      else
        change(make.operation, any_node);
      Memory memory;
      note_begun({make}, memory);
      CHECK_FALSE(memory.begun.at(0).never_published);
    }
  }
}

TEST_CASE("what this process saw being made has not been published, however it stands") {
  Memory memory;
  note_begun({recorded(Kind::kMake, State::kWaiting)}, memory);
  Recorded make = recorded(Kind::kMake, State::kSucceeded);
  make.progress.directory = Directory::kMade;
  note_begun({make}, memory);
  REQUIRE(memory.begun.size() == 1);
  CHECK(memory.begun[0].never_published);
  CHECK(memory.begun[0].made);
  note_begun({}, memory);  // its record is gone: it is in mind
  CHECK(memory.begun.size() == 1);
}

TEST_CASE("what is taken back is given up, and what is done goes with its record") {
  Memory memory;
  const Recorded make = recorded(Kind::kMake, State::kFailed);
  note_begun({make, recorded(Kind::kTakeBack, State::kRunning)}, memory);
  REQUIRE(memory.begun.size() == 1);
  CHECK(memory.begun[0].given_up);
  memory.begun[0].done = true;
  note_begun({make}, memory);
  CHECK(memory.begun.size() == 1);
  note_begun({}, memory);
  CHECK(memory.begun.empty());
}

TEST_CASE("a taking back that somebody stops is noted where nothing else tells of its directory") {
  for (const State state : testing::kAllStates) {
    CAPTURE(static_cast<int>(state));
    Memory memory;
    Recorded stopped = recorded(Kind::kTakeBack, state);
    note_begun({stopped}, memory);
    REQUIRE(memory.begun.size() == (state == State::kEnding ? 1 : 0));
    if (state != State::kEnding) continue;
    CHECK(memory.begun[0].operation == stopped.operation);
    CHECK(memory.begun[0].given_up);
    CHECK_FALSE(memory.begun[0].made);  // it goes only if it is empty
    CHECK_FALSE(memory.begun[0].never_published);
    note_begun({stopped}, memory);
    note_begun({}, memory);
    CHECK(memory.begun.size() == 1);
  }
}

TEST_CASE("a taking back whose record is removed after its end is done") {
  Memory memory;
  Recorded over = recorded(Kind::kTakeBack, State::kEnding);
  over.progress.acts_no_more = true;
  note_begun({over}, memory);
  CHECK(memory.begun.empty());
  // The make tells of the directory.
  note_begun({recorded(Kind::kMake, State::kFailed), recorded(Kind::kTakeBack, State::kEnding)},
             memory);
  CHECK(memory.begun.size() == 1);
}

}  // namespace lpp::provisioner::memory_rows
