// SPDX-License-Identifier: Apache-2.0
// What an executor promises (operation/executor.h), kept by every one that there is.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "fakes/operations.h"
#include "support/executor_bed.h"

namespace lpp::testing {
namespace {

namespace fs = std::filesystem;
using operation::Directory;
using operation::Executor;
using operation::Kind;
using operation::Operation;
using Start = Executor::Start;
using State = operation::Progress::State;
using When = Executor::When;
using Moment = Trouble::Moment;

LPP_EXECUTORS_TEST_CASE(
    "an operation is on record before anything is done, and another process goes on with it") {
  ExecutorBed bed(by);
  Operation make = ExecutorBed::make();
  make.shape = operation::Shape{.affinity_key = "kubernetes.io/hostname", .affinity_value = "x"};
  CHECK(bed.executor().recorded(make.volume_name).empty());
  bed.trouble.silence("node-1");
  CHECK(bed.start(make) == Start::kRecorded);
  for (const bool crashed : {false, true}) {
    CAPTURE(crashed);
    if (crashed) bed.crash();
    const auto all = bed.executor().recorded(make.volume_name);
    REQUIRE(all.size() == 1);
    CHECK(same(*all[0].operation, make));
    CHECK_FALSE(all[0].progress.over());
    CHECK(bed.executor().recorded("another").empty());
    CHECK_FALSE(bed.is_free(make));
    CHECK_FALSE(fs::exists(bed.disk(make)));
  }
  CHECK(bed.take_woken() == std::vector<std::string>{make.volume_name});
  bed.trouble.end();
  bed.wait_state(make, State::kSucceeded);
  CHECK(fs::is_directory(bed.disk(make)));
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "what is over stays on record until it is forgotten, whatever process looks") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  const bool works = [] {
    bool good = true;
    SUBCASE("it succeeded") {}
    SUBCASE("it failed") { good = false; }
    return good;
  }();
  std::string said = "the disk is full of bees";
  if (!works) said = bed.trouble.fail(Kind::kMake, said);
  bed.start(make);
  const State end = works ? State::kSucceeded : State::kFailed;
  bed.wait_state(make, end);
  bed.trouble.end();
  bed.crash();
  bed.wait_state(make, end);
  CHECK(bed.start(make) == Start::kRecorded);
  CHECK(bed.state(make) == end);
  const auto progress = *bed.progress(make);
  CHECK((progress.message.find(said) != std::string::npos) == !works);
  CHECK(progress.reason.empty() == works);
  CHECK(fs::exists(bed.disk(make)) == works);
  CHECK_FALSE(bed.is_free(make));
  bed.forget(make);
  CHECK(LPP_MUST(bed.executor().forget(make.id(), When::kNow)));
  CHECK(bed.is_free(make));
  CHECK(fs::exists(bed.disk(make)) == works);
  // Until its agent has heard it, another process may be told of it once more.
  if (by == By::kAgents) bed.trouble.wait_no_record();
  bed.crash();
  CHECK_FALSE(bed.state(make));
}

LPP_EXECUTORS_TEST_CASE("an operation that is started twice is recorded and done once") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.trouble.hold(Kind::kMake, Moment::kAfter);
  for (int i = 0; i < 2; ++i) CHECK(bed.start(make) == Start::kRecorded);
  bed.wait_state(make, State::kRunning);
  CHECK(bed.start(make) == Start::kRecorded);
  bed.crash();
  CHECK(bed.start(make) == Start::kRecorded);
  CHECK(bed.executor().recorded(make.volume_name).size() == 1);
  bed.trouble.end();
  bed.wait_state(make, State::kSucceeded);
  CHECK(bed.trouble.recorded() == std::vector<std::string>{"make over"});
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "under a number that is taken the record counts, not what is to be started") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.run(make);
  Operation other = make;
  other.owner_uid = "another";
  CHECK(bed.start(other) == Start::kOtherFound);
  REQUIRE(bed.executor().recorded(make.volume_name).size() == 1);
  CHECK(bed.state(make) == State::kSucceeded);
  // Nothing but what is named is cancelled or forgotten.
  LPP_MUST(bed.executor().cancel(other.id()));
  CHECK(LPP_MUST(bed.executor().forget(other.id(), When::kNow)));
  CHECK(bed.state(make) == State::kSucceeded);
}

/// A make that was cancelled. A helper pod is let end, for its record tells what it leaves.
std::optional<State> wait_acts_no_more(ExecutorBed& bed, const Operation& make) {
  std::optional<State> now;
  wait_for(bed, "it acts no more", [&]() -> std::string {
    now = bed.state(make);
    const bool acts = now && *now != State::kSucceeded && *now != State::kFailed;
    return acts ? "it does" : "";
  });
  return now;
}

/// The same; then it is forgotten. Whether its directory is there.
bool wait_ended(ExecutorBed& bed, const Operation& make) {
  const auto now = wait_acts_no_more(bed, make);
  const bool is_there = fs::exists(bed.disk(make));
  CHECK_FALSE((is_there && !now));
  CHECK(bed.is_free(make) == !now);
  if (now) LPP_MUST(bed.executor().forget(make.id(), When::kNow));
  bed.wait_state(make, std::nullopt);
  return is_there;
}

LPP_EXECUTORS_TEST_CASE("what is cancelled is on record until it is certain that it acts no more") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.trouble.silence("node-1");
  bed.start(make);
  LPP_MUST(bed.executor().cancel(make.id()));
  for (const bool crashed : {false, true}) {
    if (crashed) bed.crash();
    // That a helper pod is let end the process that comes does not know.
    const bool is_known = !crashed || by == By::kDirectories;
    CHECK(bed.state(make).has_value());
    CHECK((bed.state(make) == State::kEnding) == is_known);
    LPP_MUST(bed.executor().cancel(make.id()));
    CHECK(bed.state(make) == State::kEnding);
    CHECK_FALSE(bed.is_free(make));
  }
  bed.trouble.end();
  const bool is_there = wait_ended(bed, make);
  bed.wait_woken(make.volume_name);
  CHECK(bed.is_free(make));
  // A work that came after all would be seen by the time that another one is done.
  bed.run(ExecutorBed::make("pvc-2"));
  CHECK(fs::exists(bed.disk(make)) == is_there);
}

LPP_EXECUTORS_TEST_CASE("what is cancelled while it works leaves nothing that is not on record") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.trouble.hold(Kind::kMake, Moment::kBefore);
  bed.start(make);
  wait_for(bed, "it works, for certain", [&]() -> std::string {
    const auto recorded = bed.executor().recorded(make.volume_name);
    const bool works = recorded.size() == 1 && recorded.front().progress.state == State::kRunning &&
                       !recorded.front().progress.begins_unasked;
    return works ? "" : "it does not";
  });
  LPP_MUST(bed.executor().cancel(make.id()));
  CHECK(bed.state(make).value_or(State::kEnding) == State::kEnding);
  bed.trouble.end();
  const bool is_there = wait_ended(bed, make);
  bed.run(ExecutorBed::make("pvc-2"));
  CHECK(fs::exists(bed.disk(make)) == is_there);
}

LPP_ALL_EXECUTORS_TEST_CASE("what is forgotten for a quiet moment is not told any more") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.run(make);
  CHECK(LPP_MUST(bed.executor().forget(make.id(), When::kWhenQuiet)));
  CHECK_FALSE(bed.state(make));
  wait_for(bed, "the record is gone",
           [&]() -> std::string { return bed.trouble.recorded().empty() ? "" : "it is there"; });
  CHECK(fs::is_directory(bed.disk(make)));
}

/// Whether the order of those that wait could be judged. Who is called has a few seconds to come,
/// and has lost its turn then.
bool judge_order_of_waiting(By by) {
  ExecutorBed bed(by, 1);
  bed.trouble.hold(Kind::kMake, Moment::kBefore);
  const Operation a = ExecutorBed::make("a");
  const Operation b = ExecutorBed::make("b");
  const Operation c = ExecutorBed::make("c");
  {
    const auto room = bed.executor().admit(a);
    REQUIRE(room);
    CHECK_FALSE(bed.executor().admit(b));
    CHECK_FALSE(bed.executor().admit(c));
    bed.start(a);
  }
  CHECK_FALSE(bed.executor().admit(b));
  {
    // Room that is not used goes to who has waited, here to nobody.
    const auto elsewhere = bed.executor().admit(ExecutorBed::make("d", 1, "node-2"));
    CHECK(elsewhere);
  }
  bed.crash();  // what is at work counts
  CHECK_FALSE(bed.executor().admit(b));
  CHECK_FALSE(bed.executor().admit(c));
  (void)bed.take_woken();
  bed.trouble.end();
  TimePoint called = bed.clock.now();
  wait_for(bed, "the first one is done", [&]() -> std::string {
    const TimePoint looked = bed.clock.now();
    if (bed.state(a) == State::kSucceeded) return "";
    called = looked;
    return "not yet";
  });
  bed.wait_woken("b");
  const bool c_comes_first = static_cast<bool>(bed.executor().admit(c));
  {
    const auto unused = bed.executor().admit(b);
    if (bed.clock.now() - called > std::chrono::seconds(4)) return false;
    CHECK_FALSE(c_comes_first);
    CHECK(unused);
    (void)bed.take_woken();
  }
  bed.wait_woken("c");
  return true;
}

LPP_EXECUTORS_TEST_CASE(
    "no node gets more than it may, and who waits is woken in the order of asking") {
  try_until_judged([&] { return judge_order_of_waiting(by); });
}

LPP_ALL_EXECUTORS_TEST_CASE("what is made is told from what was there") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  CHECK(bed.run(make) == Directory::kMade);
  std::ofstream(bed.disk(make) + "/data") << "x";
  // An agent's record knows for whom it was made: it was there, but for the same claim.
  CHECK(bed.run(ExecutorBed::make(ExecutorBed::kVolume, 2)) ==
        (by == By::kAgents ? Directory::kMade : Directory::kFound));
  Operation others = ExecutorBed::make(ExecutorBed::kVolume, 3);
  others.owner_uid = "another";
  CHECK(bed.run(others) == Directory::kFound);
  CHECK(text_of(bed.disk(make) + "/data") == "x");
}

LPP_ALL_EXECUTORS_TEST_CASE("a directory that is to go only if it is empty goes only then") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.run(make);
  const Operation careful = ExecutorBed::unmake(Kind::kTakeBack, true);
  SUBCASE("empty") {
    CHECK(bed.run(careful) == Directory::kRemoved);
    CHECK_FALSE(fs::exists(bed.disk(make)));
  }
  SUBCASE("not empty") {
    std::ofstream(bed.disk(make) + "/data") << "x";
    CHECK(bed.run(careful) == Directory::kKept);
    CHECK(text_of(bed.disk(make) + "/data") == "x");
  }
  SUBCASE("not there") {
    fs::remove(bed.disk(make));
    CHECK(bed.run(careful) != Directory::kKept);
  }
}

LPP_ALL_EXECUTORS_TEST_CASE(
    "a directory goes with what is in it, and with nothing that a link leads to") {
  ExecutorBed bed(by);
  const Operation make = ExecutorBed::make();
  bed.run(make);
  Kind kind = Kind::kRemove;
  SUBCASE("removed") {}
  SUBCASE("taken back") { kind = Kind::kTakeBack; }
  const std::string precious = bed.bed->on_disk("node-1", "/precious");
  fs::create_directories(precious);
  std::ofstream(precious + "/data") << "x";
  fs::create_directories(bed.disk(make) + "/below/it");
  fs::create_symlink("/precious", bed.disk(make) + "/below/absolute");
  fs::create_symlink("../../../../precious", bed.disk(make) + "/below/relative");
  std::ofstream(bed.disk(make) + "/below/it/data") << "x";
  const auto removed = bed.run(ExecutorBed::unmake(kind));
  // Those that keep records of their own take nothing back that somebody may have used.
  const bool stays = kind == Kind::kTakeBack && by == By::kAgents;
  CHECK((removed == Directory::kKept) == stays);
  CHECK(fs::exists(bed.disk(make) + "/below/it/data") == stays);
  CHECK(fs::exists(bed.disk(make)) == stays);
  CHECK(text_of(precious + "/data") == "x");
}

LPP_EXECUTORS_TEST_CASE(
    "every kind, attempt and node of a volume is recorded and followed by itself") {
  ExecutorBed bed(by);
  bed.trouble.silence("node-1");
  bed.trouble.silence("node-2");
  const Operation first = ExecutorBed::make();
  const Operation moved = ExecutorBed::make(ExecutorBed::kVolume, 2, "node-2");
  const Operation back = ExecutorBed::unmake(Kind::kTakeBack);
  for (const auto& operation : {first, moved, back})
    CHECK(bed.start(operation) == Start::kRecorded);
  for (const bool crashed : {false, true}) {
    if (crashed) bed.crash();
    CHECK(bed.executor().recorded(ExecutorBed::kVolume).size() == 3);
    for (const auto& operation : {first, moved, back}) CHECK(bed.state(operation).has_value());
  }
  LPP_MUST(bed.executor().cancel(first.id()));
  CHECK(bed.state(first) == State::kEnding);
  CHECK(bed.state(moved) != State::kEnding);
  CHECK(bed.state(back) != State::kEnding);
  bed.trouble.end();
  const auto now = wait_acts_no_more(bed, first);
  bed.wait_state(moved, State::kSucceeded);
  bed.wait_state(back, State::kSucceeded);
  CHECK(fs::exists(bed.disk(moved)));
  // Which of the two was last is open where the make is let end; then it is on record.
  CHECK_FALSE((fs::exists(bed.disk(first)) && !now));
}

LPP_EXECUTORS_TEST_CASE("of what is not over it is known when it changes by itself") {
  ExecutorBed bed(by);  // with patience: what is late by now changes no more
  const Operation make = ExecutorBed::make();
  bed.trouble.silence("node-1");
  bed.start(make);
  CHECK(bed.progress(make)->changes_at.has_value());
}

LPP_EXECUTORS_TEST_CASE(
    "what should be over by now is late, with the cause, and so is what should have ended") {
  ExecutorBed bed(by, 0, std::chrono::seconds(1));
  const Operation make = ExecutorBed::make();
  bed.trouble.silence("node-1");
  bed.start(make);
  bed.wait_state(make, State::kLate);
  const auto late = *bed.progress(make);
  CHECK(late.message.find("node-1") != std::string::npos);
  CHECK(late.reason == "Timeout");
  LPP_MUST(bed.executor().cancel(make.id()));
  CHECK(bed.state(make) == State::kEnding);
  wait_for(bed, "that is told", [&]() -> std::string {
    const auto now = bed.progress(make);
    if (!now) return "it is not on record";
    // Once its deadline is over it need not be let end any more.
    if (now->state == State::kLate) LPP_MUST(bed.executor().cancel(make.id()));
    const bool is_told = !now->message.empty() && !now->reason.empty();
    return now->state == State::kEnding && is_told ? "" : "not yet";
  });
}

LPP_EXECUTORS_TEST_CASE("the owner is woken for what has changed, and for nothing after the end") {
  ExecutorBed bed(by);
  const Operation here = ExecutorBed::make("here");
  const Operation there = ExecutorBed::make("there", 1, "node-2");
  bed.trouble.silence("node-1");
  bed.trouble.silence("node-2");
  bed.start(here);
  bed.start(there);
  CHECK(eventually([&] { return bed.trouble.recorded().size() == 2; }));
  (void)bed.take_woken();
  bed.executor().node_changed("node-2");
  bed.wait_woken("there");
  bed.trouble.end();
  bed.wait_woken("here");
  bed.executor().end(Duration::zero());
  (void)bed.take_woken();
  bed.executor().node_changed("node-1");
  CHECK(bed.take_woken().empty());
}

}  // namespace
}  // namespace lpp::testing
