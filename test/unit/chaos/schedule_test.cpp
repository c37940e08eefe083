// SPDX-License-Identifier: Apache-2.0
#include "chaos/schedule.h"

#include <doctest/doctest.h>

#include <set>

namespace lpp::testing {
namespace {

std::set<StepKind> kinds_of(Schedule schedule) {
  std::set<StepKind> kinds;
  for (int i = 0; i < 20'000; ++i) kinds.insert(schedule.next().kind);
  return kinds;
}

TEST_CASE("a schedule has every kind of step, those of agents only where there are some") {
  const auto with = kinds_of(Schedule(1, Schedule::Agents::kSome));
  const auto without = kinds_of(Schedule(1));
  for (int i = 0; i <= static_cast<int>(StepKind::kReturnDisk); ++i) {
    const auto kind = static_cast<StepKind>(i);
    CAPTURE(to_string(kind));
    CHECK(with.contains(kind));
    CHECK(without.contains(kind) == (kind <= StepKind::kWait));
  }
}

}  // namespace
}  // namespace lpp::testing
