// SPDX-License-Identifier: Apache-2.0
#include "operation/told_uses.h"

#include <doctest/doctest.h>

#include "fakes/fake_clock.h"

using namespace lpp;

using operation::ToldUses;

TEST_CASE("what was told last counts, for an hour") {
  testing::FakeClock clock;
  ToldUses uses(clock);
  uses.note("n1", "/data/a", {.bytes = 1});
  clock.advance(std::chrono::minutes(30));
  uses.note("n1", "/data/b", {.bytes = 2});
  uses.note("n1", "/data/b", {.bytes = 3});
  uses.note("n2", "/data/a", {.bytes = 4});
  REQUIRE(uses.all().size() == 3);
  CHECK(uses.all()[1].path == "/data/b");
  CHECK(uses.all()[1].usage.bytes == 3);
  CHECK(uses.all()[1].at == clock.wall_now());
  uses.forget("n2", "/data/a");
  CHECK(uses.all().size() == 2);
  clock.advance(std::chrono::minutes(30));
  REQUIRE(uses.all().size() == 1);
  CHECK(uses.all()[0].path == "/data/b");
  uses.forget_all();
  CHECK(uses.all().empty());
}

TEST_CASE("of very many the oldest go") {
  testing::FakeClock clock;
  ToldUses uses(clock);
  for (std::size_t i = 0; i <= ToldUses::kMost; ++i) {
    uses.note("n1", std::to_string(i), {});
    if (i == 0) clock.advance(std::chrono::seconds(1));
  }
  const auto all = uses.all();
  CHECK(all.size() == ToldUses::kMost);
  for (const auto& one : all) CHECK_UNARY(one.path != "0");
}
