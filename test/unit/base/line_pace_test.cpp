// SPDX-License-Identifier: Apache-2.0
#include "base/line_pace.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "base/on_behalf_of.h"

using namespace lpp;
using namespace std::chrono_literals;

TEST_CASE("a namespace that writes too many lines loses its own only, and that is counted") {
  LinePace pace(3, 1);
  const TimePoint now{};
  for (int i = 0; i < 3; ++i) CHECK(pace.ask("loud", now).pass);
  for (int i = 0; i < 10; ++i) CHECK_FALSE(pace.ask("loud", now).pass);
  CHECK(pace.ask("quiet", now).pass);
  const auto later = pace.ask("loud", now + 1s);
  CHECK(later.pass);
  CHECK(later.left_out == 10);
  CHECK_FALSE(pace.ask("loud", now + 1s).pass);
  CHECK(pace.ask("loud", now + 10s).left_out == 1);
}

TEST_CASE("the paces of very many namespaces take no room without end") {
  LinePace pace(1, 0.001);
  const TimePoint now{};
  int passed = 0;
  for (int i = 0; i < 5000; ++i) passed += pace.ask("ns-" + std::to_string(i), now).pass ? 1 : 0;
  CHECK(passed == 1001);
  CHECK(pace.ask("new", now + 24h).pass);
}

TEST_CASE("lines about one namespace have a pace, those about nobody in particular have none") {
  std::vector<std::string> lines;
  const log::Level usual = log::level();
  log::set_level(log::Level::kWarn);
  log::divert([&](log::Level, const std::string& line) { lines.push_back(line); });
  {
    const OnBehalfOf tenant("flood");
    for (int i = 0; i < 3 * static_cast<int>(log::kLineBurst); ++i) log::warn("x");
  }
  CHECK(lines.size() >= static_cast<std::size_t>(log::kLineBurst));
  CHECK(lines.size() < static_cast<std::size_t>(2 * log::kLineBurst));
  lines.clear();
  {
    const OnBehalfOf tenant("another");
    log::warn("x");
    const OnBehalfOf nobody("");
    for (int i = 0; i < 2 * static_cast<int>(log::kLineBurst); ++i) log::warn("y");
  }
  CHECK(lines.size() == static_cast<std::size_t>(2 * log::kLineBurst) + 1);
  log::divert(nullptr);
  log::set_level(usual);
}
