// SPDX-License-Identifier: Apache-2.0
#include "text/edit_distance.h"

#include <doctest/doctest.h>

#include <string>

namespace lpp::text {
namespace {

TEST_CASE("the distance of two words is the number of letters to put in, take out or change") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("quota", "quota") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("quota", "quote") == 1);
  CHECK(edit_distance("nodePathMap", "nodePahtMap") == 2);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sitting", "kitten") == 3);
}

TEST_CASE("the word that was meant is the first of the nearest, and none when all are far") {
  CHECK(nearest("nam", {"namespace", "name", "node"}) == "name");
  CHECK(nearest("nade", {"name", "node"}) == "name");
  CHECK(nearest("x", {"a"}) == "a");
  CHECK(nearest("naem", {"name", "node"}).empty());
  CHECK(nearest("xy", {"ab"}).empty());
  CHECK(nearest("worker-threads", {"worker-thread", "threads"}) == "worker-thread");
  CHECK(nearest("name", {}).empty());
  CHECK(nearest(std::string(101, 'a'), {std::string_view("a")}).empty());
}

}  // namespace
}  // namespace lpp::text
