// SPDX-License-Identifier: Apache-2.0
// The random schedule of faults of test/chaos on a real control plane and a real node.

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>

#include "chaos/chaos_run.h"
#include "fakes/setting.h"
#include "real_faults.h"
#include "real_story.h"

namespace lpp::testing {
namespace {

std::uint64_t number_setting(const char* name, std::uint64_t otherwise) {
  const auto value = setting(name);
  return value ? std::stoull(*value) : otherwise;
}

/// The beginning of a known schedule that has most kinds of steps: what a change breaks is to be
/// seen. LPP_CHAOS_SEED and LPP_CHAOS_SECONDS choose another one; a seed gives the same steps
/// again, not the same timing of a real cluster.
TEST_CASE("real node: two daemons keep every promise through a random schedule of faults") {
  const auto bed = LPP_MUST(RealBed::create());
  RealFaults cluster(*bed);
  ChaosOptions options{
      .daemon = required_setting("LPP_E2E_DAEMON"),
      .folder = required_setting("LPP_E2E_LOGS") + "/chaos",
      .seed = number_setting("LPP_CHAOS_SEED", 616),
      .seconds = std::chrono::seconds(number_setting("LPP_CHAOS_SECONDS", 0)),
      .round = 30,
      // The controllers wait for up to a minute before they look for an API server that was killed
      // several times in a short while.
      .patience = std::chrono::seconds(150),
  };
  if (options.seconds.count() == 0) options.steps = 60;
  options.say = [&](const std::string& line) {
    std::printf("chaos, seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
                line.c_str());
    std::fflush(stdout);
  };
  std::filesystem::create_directories(options.folder);
  options.say("begins");
  auto run = ChaosRun(*bed, cluster, options).run();
  LPP_MUST(cluster.error());  // first: it is why the run failed
  const auto summary = LPP_MUST(std::move(run));
  for (const auto& [kind, count] : summary.faults) {
    std::printf("chaos: %6zu %s\n", count, kind.c_str());
  }
  options.say(std::to_string(summary.steps) + " steps, " + std::to_string(summary.quiet_points) +
              " quiet points, " + std::to_string(summary.volumes) + " volumes checked, " +
              std::to_string(summary.takeovers) + " takeovers");
  CHECK(summary.quiet_points >= 2);
  CHECK(summary.volumes > 0);
  CHECK_FALSE(summary.faults.empty());
}

}  // namespace
}  // namespace lpp::testing
