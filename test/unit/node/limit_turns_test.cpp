// SPDX-License-Identifier: Apache-2.0
#include "node/limit_turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace lpp;
using namespace lpp::node;

namespace {

using Ids = std::vector<std::string>;

Ids numbered(int count) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back(std::to_string(1000 + i));
  return ids;
}

Ids taken(LimitTurns& turns, const Ids& of) {
  Ids ids;
  const auto chosen = turns.take(of);
  REQUIRE(chosen.size() == of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (chosen[i]) ids.push_back(of[i]);
  }
  return ids;
}

}  // namespace

TEST_CASE("every directory is looked at the first time and within ten looks from then on") {
  for (const int count : {0, 1, 7, 99, 100, 101, 1000, 1234}) {
    CAPTURE(count);
    const Ids all = numbered(count);
    LimitTurns turns;
    CHECK(taken(turns, all) == all);
    std::map<std::string, int> looks;
    for (int look = 0; look < 10; ++look) {
      const Ids now = taken(turns, all);
      CHECK(now.size() == std::min(all.size(), std::max<std::size_t>(100, (all.size() + 9) / 10)));
      for (const auto& id : now) ++looks[id];
    }
    CHECK(looks.size() == all.size());
  }
}

TEST_CASE("the turn goes on behind those that have come and gone") {
  LimitTurns turns(2);
  CHECK(taken(turns, {"a", "b", "c", "d", "e"}).size() == 5);
  CHECK(taken(turns, {"a", "b", "c", "d", "e"}) == Ids{"a", "b"});
  CHECK(taken(turns, {"a", "aa", "b", "d", "e"}) == Ids{"d", "e"});
  CHECK(taken(turns, {"b", "d"}) == Ids{"b", "d"});
  CHECK(taken(turns, {}).empty());
  CHECK(taken(turns, {"x"}) == Ids{"x"});
}

TEST_CASE("one that was found out of its limit is looked at each time until it is in it again") {
  const Ids all{"a", "b", "c", "d", "e"};
  LimitTurns turns(1);
  CHECK(taken(turns, all) == all);
  turns.saw("d", true);
  for (const char* const turn : {"a", "b", "c"}) CHECK(taken(turns, all) == Ids{turn, "d"});
  turns.saw("d", std::nullopt);
  CHECK(taken(turns, all) == Ids{"d"});
  CHECK(taken(turns, all) == Ids{"d", "e"});
  turns.saw("d", false);
  CHECK(taken(turns, all) == Ids{"a"});
  // What nobody can tell of another one makes nobody look again.
  turns.saw("a", std::nullopt);
  CHECK(taken(turns, all) == Ids{"b"});
  // A later one of the same name is another one.
  turns.saw("d", true);
  CHECK(taken(turns, {"a", "b", "c", "e"}) == Ids{"c"});
  CHECK(taken(turns, all) == Ids{"e"});
  CHECK(taken(turns, all) == Ids{"a"});
}
