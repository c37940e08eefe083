// SPDX-License-Identifier: Apache-2.0
// The daemon, but for what does its operations: directories made by itself instead of helper pods.
// DIRECTORY_DISKS and DIRECTORY_RECORDS in the environment say where.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <variant>

#include "app/app.h"
#include "app/flag_table.h"
#include "app/signals.h"
#include "harness/directory_executor.h"

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

int main(int argc, char** argv) {
  lpp::app::block_signals();
  const auto invocation = lpp::app::parse_command_line(argc, argv);
  const auto* options = std::get_if<lpp::app::Options>(&invocation);
  const lpp::testing::DirectoryExecutor::Settings settings{
      .disks = environment("DIRECTORY_DISKS"), .records = environment("DIRECTORY_RECORDS")};
  if (options == nullptr || settings.disks.empty() || settings.records.empty()) {
    std::fputs("only start, with DIRECTORY_DISKS and DIRECTORY_RECORDS\n", stderr);
    return 2;
  }
  lpp::app::App app(*options, [&](const lpp::app::ExecutorParts& parts) {
    auto here = settings;
    here.most_per_node = static_cast<std::size_t>(options->helper_pods_per_node);
    return std::make_unique<lpp::testing::DirectoryExecutor>(parts.clock, parts.ledger, here);
  });
  return lpp::app::run_until_signal(app);
}
