// SPDX-License-Identifier: Apache-2.0
#include "operation/operation.h"

#include <doctest/doctest.h>

#include <utility>

#include "operation/executor.h"

namespace lpp::operation {
namespace {

Operation make(const std::string& node, const std::string& path) {
  Operation operation;
  operation.volume_name = "pvc-1";
  operation.owner_uid = "1";
  operation.node = node;
  operation.base_path = "/data";
  operation.path = path;
  return operation;
}

TEST_CASE("operations are told apart by kind, volume, owner and attempt, and by nothing else") {
  const Operation first = make("n1", "/data/a");
  Operation other = first;
  other.path = "/data/b";
  other.node = "n2";
  other.size_bytes = 5;
  CHECK(first.id() == other.id());
  SUBCASE("kind") { other.kind = Kind::kTakeBack; }
  SUBCASE("volume") { other.volume_name = "pvc-2"; }
  SUBCASE("owner") { other.owner_uid = "2"; }
  SUBCASE("attempt") { other.attempt = 2; }
  CHECK(first.id() != other.id());
}

TEST_CASE("kinds have words for people") {
  CHECK(to_string(Kind::kMake) == "make");
  CHECK(to_string(Kind::kTakeBack) == "take back");
  CHECK(to_string(Kind::kRemove) == "remove");
  CHECK(to_string(Kind::kResize) == "resize");
}

TEST_CASE("one place is one path on one node, or on any") {
  const Operation a = make("n1", "/data/a");
  CHECK(same_place(a, make("n1", "/data/a")));
  CHECK_FALSE(same_place(a, make("n1", "/data/a/b")));
  CHECK_FALSE(same_place(a, make("n2", "/data/a")));
  CHECK(same_place(a, make("", "/data/a")));
  Operation shared = a;
  Operation elsewhere = make("n2", "/data/a");
  shared.shared = true;
  CHECK_FALSE(same_place(shared, elsewhere));
  elsewhere.shared = true;
  CHECK(same_place(shared, elsewhere));
}

TEST_CASE("room is given back once, by whoever holds it last") {
  int given_back = 0;
  {
    Admission none;
    CHECK_FALSE(none);
    Admission one([&] { ++given_back; });
    CHECK(one);
    Admission moved(std::move(one));
    none = std::move(moved);
    CHECK(none);
    CHECK(given_back == 0);
  }
  CHECK(given_back == 1);
}

TEST_CASE("an operation is over when it has succeeded or failed, and not when it is late") {
  using State = Progress::State;
  for (const State state : {State::kSucceeded, State::kFailed}) {
    CHECK(Progress{.state = state}.over());
  }
  for (const State state : {State::kWaiting, State::kRunning, State::kLate, State::kEnding}) {
    CHECK_FALSE(Progress{.state = state}.over());
  }
}

}  // namespace
}  // namespace lpp::operation
