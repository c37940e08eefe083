// SPDX-License-Identifier: Apache-2.0
// lpp-chaos: the real daemon under a random schedule of faults on an embedded cluster.

#include <cstdio>
#include <cxxopts.hpp>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/log.h"
#include "chaos/chaos_run.h"
#include "chaos/embedded_faults.h"
#include "harness/embedded/embedded_bed.h"
#include "harness/installation.h"
#include "harness/temp_dir.h"
#include "places/places.h"

namespace {

using namespace lpp;
using namespace lpp::testing;

void print_counts(const char* what, const std::map<std::string, std::size_t>& counts) {
  std::size_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  std::printf("%s: %zu\n", what, total);
  for (const auto& [name, count] : counts) std::printf("  %8zu %s\n", count, name.c_str());
}

int run(const cxxopts::ParseResult& arguments) {
  ChaosOptions options;
  options.daemon = arguments["daemon"].as<std::string>();
  options.seed =
      arguments.count("seed") > 0 ? arguments["seed"].as<std::uint64_t>() : std::random_device()();
  options.steps = arguments["steps"].as<std::size_t>();
  options.seconds = std::chrono::seconds(arguments["seconds"].as<int>());
  options.replicas = arguments["replicas"].as<std::size_t>();
  options.round = arguments["round"].as<std::size_t>();
  options.patience = std::chrono::seconds(arguments["patience"].as<int>());
  for (const auto& name : arguments["without"].as<std::vector<std::string>>()) {
    options.without.insert(name);
  }
  options.folder =
      (std::filesystem::temp_directory_path() / ("lpp-chaos-" + std::to_string(options.seed)))
          .string();
  options.say = [&](const std::string& line) {
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed), line.c_str());
    std::fflush(stdout);
  };
  std::filesystem::remove_all(options.folder);
  std::filesystem::create_directories(options.folder);
  const bool agents = arguments.count("agents") > 0;
  // One node is left to helper pods.
  if (agents) options.agents = {"node-1", "node-3"};
  options.say("begins");
  auto bed = EmbeddedBed::create({.manifest = arguments["manifest"].as<std::string>(),
                                  .nodes = {"node-1", "node-2", "node-3"}});
  if (!bed.ok()) {
    std::fprintf(stderr, "lpp-chaos: %s\n", bed.error().message.c_str());
    return 1;
  }
  if (agents) {
    const auto granted =
        apply_manifest((*bed)->admin(), lpp::testing::repository("deploy/agents/rbac.yaml"));
    if (!granted.ok()) {
      std::fprintf(stderr, "lpp-chaos: %s\n", granted.error().message.c_str());
      return 1;
    }
  }
  options.say("containers run under " + (*bed)->cluster().nodes().sandbox());
  EmbeddedFaults cluster((*bed)->cluster());
  const auto summary = ChaosRun(**bed, cluster, options).run();
  if (!summary.ok()) {
    std::fprintf(stderr, "lpp-chaos: FAILED: %s\nagain: lpp-chaos --seed %llu%s\n",
                 summary.error().message.c_str(), static_cast<unsigned long long>(options.seed),
                 agents ? " --agents" : "");
    return 1;
  }
  print_counts("steps", summary->kinds);
  print_counts("faults", summary->faults);
  std::printf(
      "seed %llu passed: %zu steps, %zu quiet points, %zu volumes checked, %zu takeovers, "
      "%zu directories of lost records, %zu of patterns left in place, %zu volumes saved, "
      "%zu files written, %zu removed\n",
      static_cast<unsigned long long>(options.seed), summary->steps, summary->quiet_points,
      summary->volumes, summary->takeovers, summary->excused, summary->stayed, summary->saved,
      summary->written, summary->removed);
  if (agents) {
    std::printf("%zu volumes at quiet points were made by agents, %zu times a disk was away\n",
                summary->by_agents, summary->disks_away);
    if (summary->by_agents == 0) {
      std::fprintf(stderr, "lpp-chaos: FAILED: no agent has made anything\n");
      return 1;
    }
  }
  std::filesystem::remove_all(options.folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cxxopts::Options options(
      "lpp-chaos",
      "Runs the daemon while random steps change everything around it and random faults meet its\n"
      "API calls; checks at quiet points that every promise is kept. A seed gives the same "
      "schedule\n"
      "again.\n");
  options.add_options()("daemon", "the local-path-provisioner program",
                        cxxopts::value<std::string>())(
      "manifest", "the manifest to install",
      cxxopts::value<std::string>()->default_value(
          lpp::testing::repository("deploy/local-path-storage.yaml")))(
      "seed", "of the schedule (default: a random one, printed)", cxxopts::value<std::uint64_t>())(
      "steps", "how many steps; 0: by time", cxxopts::value<std::size_t>()->default_value("0"))(
      "seconds", "how long, if not by steps", cxxopts::value<int>()->default_value("60"))(
      "agents", "agents on two of the three nodes, which come and go")(
      "replicas", "of the daemon", cxxopts::value<std::size_t>()->default_value("2"))(
      "round", "steps between two quiet points",
      cxxopts::value<std::size_t>()->default_value("40"))(
      "without", "steps that are not taken, as a list of their names",
      cxxopts::value<std::vector<std::string>>()->default_value(""))(
      // A watch that failed often waits for a minute, and may have been ended by the last fault
      // only.
      "patience", "seconds after which a quiet point must be quiet",
      cxxopts::value<int>()->default_value("150"))("h,help", "print this text");
  try {
    const auto arguments = options.parse(argc, argv);
    if (arguments.count("help") > 0 || arguments.count("daemon") == 0) {
      std::fputs(options.help().c_str(), stdout);
      return arguments.count("help") > 0 ? 0 : 2;
    }
    lpp::log::set_up(lpp::log::Level::kError);
    return run(arguments);
  } catch (const cxxopts::exceptions::exception& error) {
    std::fprintf(stderr, "lpp-chaos: %s\n%s", error.what(), options.help().c_str());
    return 2;
  }
}
