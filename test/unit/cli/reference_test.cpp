// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include <doctest/doctest.h>

#include <set>

#include "cli_bed.h"
#include "config/config_parser.h"

namespace {

std::set<std::string_view> names(std::span<const lpp::cli::Setting> settings) {
  std::set<std::string_view> out;
  for (const auto& setting : settings) out.insert(setting.name);
  return out;
}

std::set<std::string_view> all(std::span<const std::string_view> keys) {
  return {keys.begin(), keys.end()};
}

}  // namespace

TEST_CASE("the documented keys of config.json are those that its parser knows") {
  CHECK(names(lpp::cli::config_keys()) == all(lpp::config::top_level_keys()));
  CHECK(names(lpp::cli::class_keys()) == all(lpp::config::class_entry_keys()));
  CHECK(names(lpp::cli::node_keys()) == all(lpp::config::node_entry_keys()));
}

TEST_CASE("the reference names every flag of every command that is shown") {
  lpp::testing::CliBed bed;
  const auto outcome = bed.run({"reference"});
  CHECK(outcome.code == 0);
  for (const lpp::cli::Command& command : lpp::cli::commands()) {
    const auto heading = outcome.out.find("\n### " + std::string(command.name) + "\n");
    CHECK((heading != std::string::npos) == !command.hidden);
    if (command.hidden) continue;
    for (const auto& group : command.flags) {
      for (const auto& flag : group.flags) {
        CHECK(outcome.out.find("--" + std::string(flag.name), heading) != std::string::npos);
      }
    }
  }
}
