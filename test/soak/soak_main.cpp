// SPDX-License-Identifier: Apache-2.0
// lpp-soak: claims come and go on an embedded cluster for a long time; the daemon must not grow.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cxxopts.hpp>
#include <deque>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/log.h"
#include "bench/process_usage.h"
#include "harness/embedded/embedded_bed.h"
#include "harness/installation.h"
#include "harness/kinds.h"
#include "harness/objects.h"
#include "harness/temp_dir.h"
#include "harness/volume_audit.h"
#include "places/places.h"

namespace {

using namespace lpp;
using namespace lpp::testing;
using std::chrono::steady_clock;

constexpr std::size_t kClaims = 20;  // there at any time
constexpr const char* kNamespace = "soak";

struct Sample {
  double seconds = 0;
  double rss_kib = 0;
  double descriptors = 0;
  double threads = 0;
};

Sample sample(pid_t pid, double seconds) {
  auto memory = bench::memory_kib(pid);
  Sample one{.seconds = seconds,
             .rss_kib = static_cast<double>(memory["VmRSS"]),
             .threads = static_cast<double>(memory["Threads"])};
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; ++it) {
    ++one.descriptors;
  }
  return one;
}

/// What a straight line through the second half of the samples says it grows by over that half.
double growth(const std::vector<Sample>& samples, double Sample::*value) {
  const std::vector<Sample> half(samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2),
                                 samples.end());
  if (half.size() < 3) return 0;
  double mean_x = 0;
  double mean_y = 0;
  for (const Sample& one : half) {
    mean_x += one.seconds / static_cast<double>(half.size());
    mean_y += one.*value / static_cast<double>(half.size());
  }
  double xy = 0;
  double xx = 0;
  for (const Sample& one : half) {
    xy += (one.seconds - mean_x) * (one.*value - mean_y);
    xx += (one.seconds - mean_x) * (one.seconds - mean_x);
  }
  return xy / xx * (half.back().seconds - half.front().seconds);
}

/// One claim goes, another one comes; errors are those of the embedded cluster.
Result<void> churn(Kube& admin, std::deque<k8s::ObjectKey>& claims, std::size_t number,
                   const std::vector<std::string>& nodes) {
  if (claims.size() >= kClaims) {
    LPP_RETURN_IF_ERROR(admin.remove(k8s::kPersistentVolumeClaims, claims.front()), "soak");
    claims.pop_front();
  }
  claims.push_back({kNamespace, "c" + std::to_string(number)});
  const auto made = admin.create(
      claim_object({.key = claims.back(), .selected_node = nodes[number % nodes.size()]}));
  if (!made.ok()) return made.error();
  return {};
}

Result<bool> run(const cxxopts::ParseResult& arguments) {
  const double limit = arguments["seconds"].as<double>();
  const double every = arguments["every"].as<double>();
  const TempDir folder;
  LPP_ASSIGN_OR_RETURN(const auto bed,
                       EmbeddedBed::create({.manifest = arguments["manifest"].as<std::string>()}),
                       "soak");
  LPP_ASSIGN_OR_RETURN(const auto installation,
                       Installation::create(*bed, {.daemon = arguments["daemon"].as<std::string>(),
                                                   .folder = folder.path(),
                                                   .extra_args = {},
                                                   .env = {}}),
                       "soak");
  LPP_RETURN_IF_ERROR(installation->start_daemon(), "soak");
  LPP_RETURN_IF_ERROR(installation->wait_ready(), "soak");
  LPP_RETURN_IF_ERROR(bed->admin().apply(namespace_object(kNamespace)), "soak");

  std::deque<k8s::ObjectKey> claims;
  std::vector<Sample> samples;
  std::size_t number = 0;
  const auto began = steady_clock::now();
  std::printf("%8s %8s %9s %12s %8s\n", "seconds", "claims", "RSS KiB", "descriptors", "threads");
  while (true) {
    const double now = std::chrono::duration<double>(steady_clock::now() - began).count();
    if (now >= every * static_cast<double>(samples.size() + 1)) {
      samples.push_back(sample(installation->daemon().pid(), now));
      const Sample& one = samples.back();
      std::printf("%8.0f %8zu %9.0f %12.0f %8.0f\n", now, number, one.rss_kib, one.descriptors,
                  one.threads);
      std::fflush(stdout);
      installation->proxy().clear_records();
      if (!installation->daemon().alive()) return Error{.message = installation->log_tail()};
    }
    if (now >= limit) break;
    LPP_RETURN_IF_ERROR(churn(bed->admin(), claims, ++number, bed->nodes()), "soak");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const auto& claim : claims) {
    LPP_RETURN_IF_ERROR(bed->admin().remove(k8s::kPersistentVolumeClaims, claim), "soak");
  }
  VolumeAudit audit(*bed);
  LPP_RETURN_IF_ERROR(audit.wait_clean(), "soak");
  LPP_RETURN_IF_ERROR(installation->stop_daemon(), "soak");

  // A straight line through noise is never quite level.
  const double rss = growth(samples, &Sample::rss_kib);
  const double descriptors = growth(samples, &Sample::descriptors);
  const double threads = growth(samples, &Sample::threads);
  const double allowed = std::max(1024.0, samples.empty() ? 0.0 : samples.back().rss_kib * 0.05);
  const bool flat = rss < allowed && descriptors < 3 && threads < 1;
  std::printf(
      "%zu claims; growth over the second half: RSS %.0f KiB (allowed %.0f), descriptors %.1f "
      "(3), threads %.1f (1): %s\n",
      number, rss, allowed, descriptors, threads, flat ? "flat" : "NOT FLAT");
  return flat;
}

}  // namespace

int main(int argc, char** argv) {
  cxxopts::Options options("lpp-soak", "Makes and removes claims for a long time and measures.\n");
  options.add_options()("daemon", "the local-path-provisioner program",
                        cxxopts::value<std::string>())(
      "manifest", "the manifest to install",
      cxxopts::value<std::string>()->default_value(
          lpp::testing::repository("deploy/local-path-storage.yaml")))(
      "seconds", "how long", cxxopts::value<double>()->default_value("1800"))(
      "every", "seconds between two samples", cxxopts::value<double>()->default_value("10"))(
      "h,help", "print this text");
  try {
    const auto arguments = options.parse(argc, argv);
    if (arguments.count("help") > 0 || arguments.count("daemon") == 0) {
      std::fputs(options.help().c_str(), stdout);
      return arguments.count("help") > 0 ? 0 : 2;
    }
    lpp::log::set_up(lpp::log::Level::kError);
    const auto flat = run(arguments);
    if (!flat.ok()) std::fprintf(stderr, "lpp-soak: %s\n", flat.error().message.c_str());
    return flat.ok() && *flat ? 0 : 1;
  } catch (const cxxopts::exceptions::exception& error) {
    std::fprintf(stderr, "lpp-soak: %s\n%s", error.what(), options.help().c_str());
    return 2;
  }
}
