// SPDX-License-Identifier: Apache-2.0
// What is known of the volumes that are measured.

#include "operation/usage.h"

#include <doctest/doctest.h>

namespace lpp::operation {
namespace {

TEST_CASE("the newest word about a volume counts, until nobody measures it any more") {
  UsageBoard board;
  CHECK_FALSE(board.find("n1", "/data/a"));
  board.note("n1", "/data/a", {.bytes = 5, .limit_bytes = 10});
  board.note("n1", "/data/b", {.bytes = 1});
  board.note("n2", "/data/a", {.bytes = 2, .inodes = 3});
  board.note("n1", "/data/a", {.bytes = 6, .limit_bytes = 10});
  CHECK(board.find("n1", "/data/a") == Usage{.bytes = 6, .limit_bytes = 10});
  REQUIRE(board.all().size() == 3);
  CHECK(board.all()[2].node == "n2");
  CHECK(board.all()[2].usage.inodes == 3);

  board.forget("n1", "/data/a");
  board.forget("n1", "/never/seen");
  board.forget("nobody", "/data/a");
  CHECK_FALSE(board.find("n1", "/data/a"));
  CHECK(board.find("n1", "/data/b"));
  CHECK(board.find("n2", "/data/a"));
}

TEST_CASE("what a node has not told among everything is forgotten, and other nodes' is not") {
  UsageBoard board;
  for (const char* node : {"n1", "n10"}) {
    board.note(node, "/data/a", {.bytes = 1});
    board.note(node, "/data/b", {.bytes = 2});
  }
  board.keep_only("n1", {"/data/b", "/data/c"});
  CHECK_FALSE(board.find("n1", "/data/a"));
  CHECK(board.find("n1", "/data/b"));
  CHECK_FALSE(board.find("n1", "/data/c"));
  CHECK(board.find("n10", "/data/a"));
  board.forget_node("n10");
  board.forget_node("nobody");
  CHECK(board.all().size() == 1);
  board.forget_all();
  CHECK(board.all().empty());
}

TEST_CASE("no node takes the place of others, and all together do not grow beyond a bound") {
  UsageBoard board;
  const auto fill = [&](const std::string& node) {
    for (std::size_t i = 0; i <= UsageBoard::kMostOfNode; ++i) {
      board.note(node, "/data/" + std::to_string(i), {.bytes = 1});
    }
  };
  fill("n0");
  CHECK(board.all().size() == UsageBoard::kMostOfNode);
  board.note("n0", "/data/0", {.bytes = 7});
  CHECK(board.find("n0", "/data/0")->bytes == 7);
  for (std::size_t i = 1; i <= UsageBoard::kMost / UsageBoard::kMostOfNode; ++i) {
    fill("n" + std::to_string(i));
  }
  CHECK(board.all().size() == UsageBoard::kMost);
  board.forget_node("n0");
  board.note("late", "/data/a", {.bytes = 1});
  CHECK(board.find("late", "/data/a"));
}

}  // namespace
}  // namespace lpp::operation
