// SPDX-License-Identifier: Apache-2.0
#include "cli/version_command.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"

namespace lpp::cli {

namespace version_command {
namespace {

constexpr std::array kFlags = {
    Flag{.name = "output",
         .short_name = 'o',
         .placeholder = "FORMAT",
         .help = "instead of one line",
         .choices = "json"},
};
constexpr std::array kGroups = {FlagGroup{"Flags", kFlags}};

int run_version(const Given& given, Context& context) {
  FlagReader flags(given, context.getenv, kGroups);
  const std::string format = flags.choice("output");
  if (flags.error()) return fail(context, "version", *flags.error(), kExitUsage);
  context.out(format == "json"
                  ? nlohmann::json{{"version", context.version}}.dump(2) + "\n"
                  : fmt::format("local-path-provisioner version {}\n", context.version));
  return kExitOk;
}

}  // namespace
}  // namespace version_command

const Command kVersionCommand{
    .name = "version",
    .summary = "show the version",
    .text = "Show the version of this program.\n",
    .flags = version_command::kGroups,
    .run = version_command::run_version,
};

}  // namespace lpp::cli
