// SPDX-License-Identifier: Apache-2.0
// What is known of the space below base paths, and which limits are missing.

#include "operation/space.h"

#include <doctest/doctest.h>

#include "operation/operation.h"

namespace lpp::operation {
namespace {

TEST_CASE("the newest word about a base path counts, until its node is gone") {
  SpaceBoard board;
  CHECK_FALSE(board.find("n1", "/data"));
  board.note("n1", "/data", {.size = 100, .free = 50});
  board.note("n2", "/data", {.size = 7, .free = 7});
  board.note("n1", "/data", {.size = 100, .free = 40});
  board.note("n1", "/fast", {.size = 9, .free = 1});
  CHECK(board.find("n1", "/data") == Space{.size = 100, .free = 40});
  REQUIRE(board.all().size() == 3);
  CHECK(board.all()[1].base_path == "/fast");
  board.forget("n1");
  REQUIRE(board.all().size() == 1);
  CHECK(board.all()[0].node == "n2");
  board.forget_all();
  CHECK(board.all().empty());
}

TEST_CASE("base paths of a node are known to share a file system when both are told to be on it") {
  SpaceBoard board;
  const auto beside = [&](const std::string& path) { return board.beside("n1", path); };
  using Paths = std::vector<std::string>;
  CHECK(beside("/a") == Paths{"/a"});
  board.note("n1", "/a", {.size = 100, .filesystem = "8:17"});
  board.note("n1", "/b", {.size = 100, .filesystem = "8:17"});
  board.note("n1", "/c", {.size = 100, .filesystem = "8:33"});
  board.note("n1", "/d", {.size = 100});
  board.note("n1", "/e", {.size = 100});
  board.note("n10", "/a", {.size = 100, .filesystem = "8:17"});
  CHECK(beside("/a") == Paths{"/a", "/b"});
  CHECK(beside("/b") == Paths{"/b", "/a"});
  CHECK(beside("/c") == Paths{"/c"});
  CHECK(beside("/d") == Paths{"/d"});
  // A helper pod tells of its space without it.
  board.note("n1", "/a", {.size = 99});
  CHECK(board.find("n1", "/a")->size == 99);
  CHECK(beside("/a") == Paths{"/a", "/b"});
  board.note("n1", "/a", {.size = 99, .filesystem = "8:33"});
  CHECK(beside("/a") == Paths{"/a", "/c"});
}

TEST_CASE("each word about a path is told from the one before, changed or not") {
  SpaceBoard board;
  const auto told = [&](const std::string& node) {
    for (const auto& entry : board.all()) {
      if (entry.node == node) return entry.told;
    }
    return std::uint64_t{0};
  };
  board.note("n1", "/data", {.size = 7, .free = 7});
  board.note("n10", "/data", {.size = 7, .free = 7});
  const auto first = told("n1");
  const auto other = told("n10");
  board.note("n1", "/data", {.size = 7, .free = 7});
  CHECK(told("n1") != first);
  const auto second = told("n1");
  board.confirm("n1");
  CHECK(told("n1") != second);
  CHECK(told("n10") == other);
  board.confirm("nobody");
  CHECK(board.all().size() == 2);
}

TEST_CASE("the board does not grow beyond its bound") {
  SpaceBoard board;
  for (std::size_t i = 0; i <= SpaceBoard::kMost; ++i) board.note(std::to_string(i), "/data", {});
  CHECK(board.all().size() == SpaceBoard::kMost);
  board.note("0", "/data", {.size = 1});
  CHECK(board.find("0", "/data")->size == 1);
}

TEST_CASE("what is promised and not used yet is taken from what is free, used bytes once") {
  const Space space{.size = 1000, .free = 600};
  CHECK(Promises{}.not_used_yet(space) == 0);
  CHECK(Promises{.unused = 250, .used = 50}.not_used_yet(space) == 250);
  // 350 are others': of volumes without limits these may be.
  CHECK(Promises{.unused = 250, .used = 50, .unlimited = 300}.not_used_yet(space) == 250);
  CHECK(Promises{.unused = 250, .used = 50, .unlimited = 400}.not_used_yet(space) == 300);
  CHECK(Promises{.used = 5000, .unlimited = 400}.not_used_yet(space) == 400);
  Promises most{.unused = INT64_MAX, .used = INT64_MAX, .unlimited = INT64_MAX};
  most += most;
  CHECK(most.not_used_yet({.size = INT64_MAX}) == std::int64_t{1} << 62U);
}

TEST_CASE("promises are those of all base paths, or not known, and what is made counts at once") {
  using Paths = std::vector<std::string>;
  SpaceBoard board;
  const Promises one{.unused = 10, .used = 2, .unlimited = 3};
  board.note("n1", "/a", {.size = 100, .promises = one});
  board.note("n1", "/b", {.size = 100, .promises = one});
  board.note("n1", "/c", {.size = 100});
  CHECK(board.promises("n1", Paths{"/a"}) == one);
  CHECK(board.promises("n1", Paths{"/a", "/b"}) ==
        Promises{.unused = 20, .used = 4, .unlimited = 6});
  CHECK_FALSE(board.promises("n1", Paths{"/a", "/c"}));
  CHECK_FALSE(board.promises("n2", Paths{"/a"}));

  // A work of an agent tells the space without them.
  for (int i = 0; i < 2; ++i) {
    board.note_work("n1", "/a", {.size = 100, .free = 40});
    board.note_made("n1", "/a", "/a/pvc-1", {.unused = 5});
    board.note_made("n1", "/a", "/a/pvc-2", {.unlimited = 7});
    board.note_made("n1", "/c", "/c/pvc-1", {.unused = 5});
  }
  CHECK(board.find("n1", "/a")->free == 40);
  CHECK(board.promises("n1", Paths{"/a"}) == Promises{.unused = 15, .used = 2, .unlimited = 10});
  CHECK_FALSE(board.promises("n1", Paths{"/c"}));
  board.note_removed("n1", "/a", "/a/pvc-2");
  CHECK(board.promises("n1", Paths{"/a"}) == Promises{.unused = 15, .used = 2, .unlimited = 3});
  SUBCASE("told anew, they hold what was made") {
    board.note("n1", "/a", {.size = 100, .promises = Promises{.unused = 15}});
    CHECK(board.promises("n1", Paths{"/a"}) == Promises{.unused = 15});
  }
  SUBCASE("who tells them no more, as after a downgrade, does not leave old ones") {
    board.note("n1", "/a", {.size = 100});
    CHECK_FALSE(board.promises("n1", Paths{"/a"}));
  }
}

Operation of(const Limits& limits) {
  Operation operation;
  operation.size_bytes = 64;
  operation.limits = limits;
  return operation;
}

TEST_CASE("each limit that was asked for must be told to hold") {
  const Kept all{.size = true, .reserve = true, .overcommit = true};
  CHECK(what_is_missing({}, {}).empty());
  for (const Limits& limits :
       {Limits{.hard = true}, Limits{.reserve = "1Gi"}, Limits{.overcommit = false}}) {
    CHECK(limits.any());
    CHECK_FALSE(what_is_missing(of(limits), {}).empty());
    CHECK(what_is_missing(of(limits), all).empty());
  }
  CHECK_FALSE(what_is_missing(of({.hard = true}), {.size = false}).empty());
  CHECK_FALSE(
      what_is_missing(of({.hard = true, .reserve = "1%"}), {.size = true, .overcommit = true})
          .empty());
}

TEST_CASE("a directory is not shown where nobody says that its disk is there") {
  Operation operation;
  operation.require_mount = true;
  CHECK(what_is_missing(operation, {}).find("requireMount") != std::string::npos);
  CHECK(what_is_missing(operation, {.mount = true}).empty());
  operation.kind = Kind::kRemove;
  CHECK(what_is_missing(operation, {}).empty());
}

TEST_CASE(
    "a limit that is told with its size is not smaller than the volume, and not without inodes") {
  const auto missing = [](const Limits& limits, std::int64_t bytes, std::int64_t inodes) {
    return what_is_missing(of(limits), {.size = true, .bytes = bytes, .inodes = inodes});
  };
  CHECK(missing({.hard = true}, 64, 0).empty());
  CHECK(missing({.hard = true}, 4096, 9).empty());  // rounded up to what the file system knows
  CHECK(missing({.hard = true}, 63, 0) ==
        "the directory was given a limit of 63 bytes, and 64 were asked for");
  CHECK(missing({.hard = true, .inodes = 9}, 64, 9).empty());
  CHECK(missing({.hard = true, .inodes = 9}, 64, 5).empty());
  CHECK(missing({.hard = true, .inodes = 9}, 64, 0).find("quotaInodes") != std::string::npos);
  CHECK(missing({.hard = true, .inodes = 9}, 64, 10).find("quotaInodes") != std::string::npos);
  // By hand a volume may be given more, which it keeps when it grows.
  auto growth = of({.hard = true, .inodes = 9});
  growth.kind = Kind::kResize;
  CHECK(what_is_missing(growth, {.size = true, .bytes = 64, .inodes = 10}).empty());
  CHECK_FALSE(what_is_missing(growth, {.size = true, .bytes = 64, .inodes = 0}).empty());
}

}  // namespace
}  // namespace lpp::operation
