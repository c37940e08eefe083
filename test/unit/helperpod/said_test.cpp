// SPDX-License-Identifier: Apache-2.0
// What the work in a helper pod tells, line by line.

#include "helperpod/said.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace lpp::helperpod {
namespace {

using operation::Directory;
using operation::Kept;
using operation::Space;
using operation::Usage;

constexpr const char* kAll =
    "a word for people\n"
    "space: size=1000 free=400 inodes=50 freeInodes=20 promised=700 volumes=3\n"
    "limits: bytes=64 inodes=5\n"
    "used: bytes=12 inodes=3 more=1\n"
    "checked: reserve overcommit\n"
    "another word\n"
    "directory: made\n";

TEST_CASE("every line that is for us is read, the others are for people") {
  const Said said = read_message(kAll);
  CHECK(said.directory == Directory::kMade);
  CHECK(said.kept ==
        Kept{.size = true, .bytes = 64, .inodes = 5, .reserve = true, .overcommit = true});
  CHECK(said.space == Space{.size = 1000, .free = 400, .inodes = 50, .free_inodes = 20});
  CHECK(said.usage == Usage{.bytes = 12, .limit_bytes = 64, .inodes = 3, .limit_inodes = 5});
  CHECK(said.rest == "a word for people\nanother word");
}

TEST_CASE("a line is enough; windows' ends of lines and blanks do no harm") {
  CHECK(read_message("  limits: none \r\n").kept == Kept{.size = false});
  CHECK(read_message("checked: reserve").kept == Kept{.reserve = true});
  CHECK(read_message("checked: mount").kept == Kept{.mount = true});
  CHECK(read_message("checked: overcommit later").kept == Kept{.overcommit = true});
  CHECK(read_message("space: free=1 size=2").space == Space{.size = 2, .free = 1});
}

TEST_CASE("what cannot be read is not said, and is for people") {
  for (const std::string line :
       {"space: size=10", "space: size=10 free=11", "space: size=-1 free=-2",
        "space:", "space: size=99999999999999999999 free=0", "space: size=1x free=0",
        "limits: bytes=0", "limits: bytes=", "limits: ", "limits: 64", "checked: something",
        "checked:", "used: ", "used: bytes=-1", "used: bytes=99999999999999999999",
        "used: inodes=1", "limits", "directory: made soon", "my limits: none"}) {
    CAPTURE(line);
    const Said said = read_message(line);
    CHECK(said.kept == Kept{});
    CHECK_FALSE(said.space);
    CHECK_FALSE(said.usage);
    CHECK(said.directory == Directory::kUnknown);
    CHECK_FALSE(said.rest.empty());
  }
  CHECK(read_message("").rest.empty());
}

TEST_CASE("promises are told all or not at all") {
  const std::string space = "space: size=10 free=5 inodes=2 freeInodes=1";
  const Space without{.size = 10, .free = 5, .inodes = 2, .free_inodes = 1};
  Space with = without;
  with.promises = operation::Promises{.unused = 1, .used = 2, .unlimited = 3};
  CHECK(read_message(space + " unused=1 limitedUsed=2 unlimited=3").space == with);
  for (const char* part : {" unused=1 limitedUsed=2", " unused=1 unlimited=3", " unlimited=3",
                           " unused=-1 limitedUsed=2 unlimited=3",
                           " unused=1 limitedUsed=2 unlimited=99999999999999999999"}) {
    CAPTURE(part);
    CHECK(read_message(space + part).space == without);
  }
}

TEST_CASE("what a directory takes up is known with its limit only") {
  CHECK_FALSE(read_message("used: bytes=7\nlimits: none").usage);
  CHECK_FALSE(read_message("used: bytes=7").usage);
  CHECK(read_message("used: bytes=7\nlimits: bytes=9").usage ==
        Usage{.bytes = 7, .limit_bytes = 9, .inodes = std::nullopt});
}

}  // namespace
}  // namespace lpp::helperpod
