// SPDX-License-Identifier: Apache-2.0
#include "operation/node_load.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "fakes/fake_clock.h"

namespace lpp::operation {
namespace {

using std::chrono::seconds;

Operation on(const std::string& node, const std::string& volume) {
  Operation operation;
  operation.volume_name = volume;
  operation.node = node;
  return operation;
}

std::vector<std::string> names(const NodeLoad::Waiting& waiting) {
  std::vector<std::string> out;
  for (const auto& operation : waiting) out.push_back(operation->volume_name);
  return out;
}

using Names = std::vector<std::string>;

TEST_CASE("without a limit there is room for everybody, and nobody waits") {
  testing::FakeClock clock;
  NodeLoad load(clock, 0);
  for (int i = 0; i < 100; ++i) CHECK(load.admit(on("n1", "v" + std::to_string(i))));
  load.began(on("n1", "x"), "u");
  CHECK(load.ended(on("n1", "x"), "u").empty());
  CHECK(load.give_back(on("n1", "x")).empty());
}

TEST_CASE("no node gets more than the limit at once, pods and admissions counted together") {
  testing::FakeClock clock;
  NodeLoad load(clock, 2);
  load.began(on("n1", "x"), "u1");
  load.began(on("n1", "x"), "u1");  // said again
  CHECK(load.admit(on("n1", "a")));
  CHECK_FALSE(load.admit(on("n1", "b")));
  CHECK(load.admit(on("n2", "b")));              // each node for itself
  load.began(on("n1", "x"), "u2");               // a has started …
  CHECK(load.give_back(on("n1", "x")).empty());  // … so that there is no room yet
  CHECK_FALSE(load.admit(on("n1", "b")));
  CHECK(names(load.ended(on("n1", "x"), "u2")) == Names{"b"});
  CHECK(load.ended(on("n1", "x"), "u2").empty());  // said again
  CHECK(load.admit(on("n1", "b")));
}

TEST_CASE("who waits is served in the order of asking") {
  testing::FakeClock clock;
  NodeLoad load(clock, 1);
  load.began(on("n1", "x"), "u1");
  for (const char* volume : {"a", "b", "c", "b"}) CHECK_FALSE(load.admit(on("n1", volume)));
  CHECK(names(load.ended(on("n1", "x"), "u1")) == Names{"a"});
  // The others may ask first: the room is not theirs.
  CHECK_FALSE(load.admit(on("n1", "d")));
  CHECK_FALSE(load.admit(on("n1", "b")));
  CHECK(load.admit(on("n1", "a")));
  CHECK(names(load.give_back(on("n1", "x"))) == Names{"b"});
  CHECK(load.admit(on("n1", "b")));
  CHECK(names(load.give_back(on("n1", "x"))) == Names{"c"});
}

TEST_CASE("who does not ask any more holds up nobody for long") {
  testing::FakeClock clock;
  NodeLoad load(clock, 1);
  load.began(on("n1", "x"), "u1");
  CHECK_FALSE(load.admit(on("n1", "gone")));
  CHECK_FALSE(load.admit(on("n1", "b")));
  SUBCASE("it asks from time to time and keeps its turn") {
    for (int i = 0; i < 5; ++i) {
      clock.advance(seconds(30));
      CHECK_FALSE(load.admit(on("n1", "gone")));
      CHECK_FALSE(load.admit(on("n1", "b")));
    }
    CHECK(names(load.ended(on("n1", "x"), "u1")) == Names{"gone"});
  }
  SUBCASE("it does not") {
    clock.advance(seconds(30));
    CHECK_FALSE(load.admit(on("n1", "b")));
    clock.advance(seconds(11));
    CHECK(names(load.ended(on("n1", "x"), "u1")) == Names{"b"});  // not woken in vain
    CHECK(load.admit(on("n1", "b")));
  }
  SUBCASE("and there is room already") {
    CHECK(names(load.ended(on("n1", "x"), "u1")) == Names{"gone"});
    clock.advance(seconds(5));
    CHECK_FALSE(load.admit(on("n1", "b")));
    clock.advance(seconds(1));
    CHECK(load.admit(on("n1", "b")));
  }
}

TEST_CASE("operations that differ in their attempt only wait each for itself") {
  testing::FakeClock clock;
  NodeLoad load(clock, 1);
  CHECK(load.admit(on("n1", "x")));
  Operation again = on("n1", "a");
  CHECK_FALSE(load.admit(again));
  again.attempt = 2;
  CHECK_FALSE(load.admit(again));
  CHECK_FALSE(load.admit(again));
  CHECK(load.give_back(on("n1", "x")).size() == 1);
  CHECK_FALSE(load.admit(again));
  again.attempt = 1;
  CHECK(load.admit(again));
}

Operation of(const std::string& ns, const std::string& volume) {
  Operation operation = on("n1", volume);
  operation.claim.ns = ns;
  return operation;
}

TEST_CASE("namespaces take turns, however many claims one of them has") {
  testing::FakeClock clock;
  NodeLoad load(clock, 1);
  load.began(on("n1", "x"), "u");
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(load.admit(of("many", "m" + std::to_string(i))));
  CHECK_FALSE(load.admit(of("few", "f0")));
  CHECK_FALSE(load.admit(of("few", "f1")));
  CHECK(names(load.ended(on("n1", "x"), "u")) == Names{"m0"});
  CHECK_FALSE(load.admit(of("few", "f0")));
  for (const char* next : {"m0", "f0", "m1", "f1", "m2"}) {
    const Operation mine = of(next[0] == 'm' ? "many" : "few", next);
    CHECK(load.admit(mine));
    (void)load.give_back(mine);
  }
}

TEST_CASE("who is called and does not come holds up nobody") {
  testing::FakeClock clock;
  NodeLoad load(clock, 1);
  const auto of = [](const char* ns, const std::string& name) {
    Operation operation = on("n1", name);
    operation.claim.ns = ns;
    return operation;
  };
  REQUIRE(load.admit(of("few", "first")));
  load.began(of("few", "first"), "u");
  CHECK_FALSE(load.admit(of("gone", "g0")));  // its claim is deleted then
  CHECK_FALSE(load.admit(of("few", "f0")));
  CHECK(names(load.give_back(of("few", "first"))).empty());
  CHECK(names(load.ended(of("few", "first"), "u")) == Names{"g0"});
  CHECK_FALSE(load.admit(of("few", "f0")));
  clock.advance(std::chrono::seconds(6));
  CHECK(load.admit(of("few", "f0")));
}

TEST_CASE("of removals no more are ordered than soon begin, where they have a limit of their own") {
  testing::FakeClock clock;
  NodeLoad load(clock, 100, 8);
  Operation one = on("n1", "");
  for (const auto kind : {operation::Kind::kRemove, operation::Kind::kMake}) {
    one.kind = kind;
    std::size_t admitted = 0;
    for (int i = 0; i < 50; ++i) {
      one.volume_name = "v" + std::to_string(i);
      if (load.admit(one)) ++admitted;
    }
    CHECK(admitted == (kind == operation::Kind::kRemove ? 8 : 50));
  }
}

TEST_CASE("long removals leave room for claims, and claims for removals") {
  testing::FakeClock clock;
  NodeLoad load(clock, 10);
  bool removals_first = false;
  SUBCASE("removals first") { removals_first = true; }
  SUBCASE("claims first") {}
  const auto kind = [&](bool removal) {
    Operation operation = on("n1", "");
    operation.kind = removal ? operation::Kind::kRemove : operation::Kind::kMake;
    return operation;
  };
  Operation one = kind(removals_first);
  int admitted = 0;
  for (int i = 0; i < 50; ++i) {
    one.volume_name = "v" + std::to_string(i);
    admitted += load.admit(one) ? 1 : 0;
  }
  CHECK(admitted == 8);
  Operation other = kind(!removals_first);
  other.volume_name = "o1";
  CHECK(load.admit(other));
  other.volume_name = "o2";
  CHECK(load.admit(other));
  other.volume_name = "o3";
  CHECK_FALSE(load.admit(other));
  const Names woken = names(load.give_back(one));
  CHECK(std::find(woken.begin(), woken.end(), "v8") != woken.end());
}

}  // namespace
}  // namespace lpp::operation
