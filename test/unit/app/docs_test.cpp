// SPDX-License-Identifier: Apache-2.0
// The docs must say what the program does.

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "app/flag_table.h"
#include "cli/context.h"
#include "places/places.h"

namespace {

constexpr std::string_view kBegin = "<!-- reference: begin -->\n";
constexpr std::string_view kEnd = "<!-- reference: end -->";

std::string configure_page() { return repository_text("docs/configure.md"); }

}  // namespace

TEST_CASE("docs/configure.md holds the reference that the program prints") {
  const auto all = lpp::app::all_commands();
  lpp::SystemClock clock;
  lpp::cli::Context context{.clock = clock};
  context.commands = all;
  std::string printed;
  context.out = [&](std::string_view text) { printed += text; };
  REQUIRE(lpp::cli::find_command(all, "reference")->run({}, context) == 0);

  const std::string page = configure_page();
  const auto begin = page.find(kBegin);
  const auto end = page.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string held = page.substr(begin + kBegin.size(), end - begin - kBegin.size());
  CHECK_MESSAGE(held == printed, "run scripts/update-docs.sh");
}

TEST_CASE("docs/configure.md names each variable that scripts get, and no others") {
  const auto variables_of = [](std::string_view text) {
    std::set<std::string> names;
    for (auto at = text.find("VOL_"); at != text.npos; at = text.find("VOL_", at + 1)) {
      const auto end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at);
      names.emplace(text.substr(at, end - at));
    }
    return names;
  };
  const auto given = variables_of(repository_text("src/helperpod/manifest.cpp"));
  CHECK(given.contains("VOL_MESSAGE_PATH"));
  const std::string page = configure_page();
  CHECK(variables_of(page.substr(0, page.find(kBegin))) == given);
}
