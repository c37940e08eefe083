// SPDX-License-Identifier: Apache-2.0
// lpp_node_bench: what the work on a node takes, by Google Benchmark. LPP_NODE_TEST_DIR names a
// folder on the file system that is measured (with limits where it has project quota); without it,
// memory. Trees: 100,000 files, or as many as LPP_TREE_FILES says.

// The bed of the unit tests says where a test case cannot run.
#define DOCTEST_CONFIG_IMPLEMENT
#include <benchmark/benchmark.h>
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "unit/node/node_bed.h"

namespace {
bool waits_for_disk = true;
}

/// In the place of libc's: what a disk takes for it is the disk's affair.
extern "C" int fsync(int fd) {
  return waits_for_disk ? static_cast<int>(::syscall(SYS_fsync, fd)) : 0;
}

namespace lpp::bench {
namespace {

using node::MakeRequest;
using node::Volumes;
using testing::BaseFolder;

/// Counts what waits for the disk, and the calls.
class CountingKernel final : public node::Kernel {
 public:
  std::int64_t syncs() const { return syncs_; }
  std::int64_t calls() const { return calls_; }

 protected:
  int before(const char* call) override {
    ++calls_;
    if (std::string_view(call) == "fsync") ++syncs_;
    return 0;
  }

 private:
  std::int64_t syncs_ = 0;
  std::int64_t calls_ = 0;
};

MakeRequest numbered(std::int64_t i) {
  MakeRequest request =
      testing::make_request("pvc-" + std::to_string(i), "pvc-" + std::to_string(i));
  request.size = request.limits.bytes;
  return request;
}

void count(benchmark::State& state, const CountingKernel& kernel) {
  state.counters["fsyncs"] =
      benchmark::Counter(static_cast<double>(kernel.syncs()), benchmark::Counter::kAvgIterations);
  state.counters["calls"] =
      benchmark::Counter(static_cast<double>(kernel.calls()), benchmark::Counter::kAvgIterations);
}

/// With limits where the file system has some, with fsyncs or without.
void make(benchmark::State& state, bool waits) {
  waits_for_disk = waits;
  const BaseFolder base;
  node::Kernel kernel;
  CountingKernel counting;
  const Volumes volumes = base.volumes(kernel);
  const auto measured = Volumes::open(counting, base.path(), {});
  if (!volumes.make(numbered(-1)).ok()) return state.SkipWithError("make");
  std::int64_t i = 0;
  for (auto _ : state) {
    if (!measured->make(numbered(i)).ok()) return state.SkipWithError("make");
    state.PauseTiming();
    if (!volumes.remove({.id = numbered(i).id}).ok()) return state.SkipWithError("remove");
    ++i;
    state.ResumeTiming();
  }
  count(state, counting);
}
BENCHMARK_CAPTURE(make, whole, true)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(make, without_fsyncs, false)->Unit(benchmark::kMicrosecond)->UseRealTime();

void remove_empty(benchmark::State& state, bool waits) {
  waits_for_disk = waits;
  const BaseFolder base;
  node::Kernel kernel;
  CountingKernel counting;
  const Volumes volumes = base.volumes(kernel);
  const auto measured = Volumes::open(counting, base.path(), {});
  std::int64_t i = 0;
  for (auto _ : state) {
    state.PauseTiming();
    if (!volumes.make(numbered(i)).ok()) return state.SkipWithError("make");
    state.ResumeTiming();
    if (!measured->remove({.id = numbered(i).id}).ok()) return state.SkipWithError("remove");
    ++i;
  }
  count(state, counting);
}
BENCHMARK_CAPTURE(remove_empty, whole, true)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(remove_empty, without_fsyncs, false)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

/// Of one who asks once, or who asks again and again.
void usage(benchmark::State& state, bool in_turn) {
  waits_for_disk = false;
  const BaseFolder base;
  node::Kernel kernel;
  const Volumes volumes = base.volumes(kernel);
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    if (!volumes.make(numbered(i)).ok()) return state.SkipWithError("make");
  }
  CountingKernel counting;
  const auto watched = Volumes::open(counting, base.path(), {});
  node::LimitTurns turns;
  const auto look = [&] { return watched->usage(in_turn ? &turns : nullptr); };
  if (in_turn && !volumes.usage(&turns).ok()) return state.SkipWithError("usage");
  for (auto _ : state) {
    const auto measured = look();
    if (!measured.ok() || static_cast<std::int64_t>(measured->volumes.size()) != state.range(0)) {
      return state.SkipWithError("usage");
    }
  }
  count(state, counting);
}
BENCHMARK_CAPTURE(usage, of_all, false)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(usage, in_turn, true)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();

std::int64_t tree_files() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
  const char* const files = std::getenv("LPP_TREE_FILES");
  return files == nullptr ? 100'000 : std::atoll(files);
}

void plant(const std::string& top) {
  constexpr std::int64_t kEach = 1000;
  for (std::int64_t i = 0; i < tree_files(); ++i) {
    const std::string folder = top + "/" + std::to_string(i / kEach);
    if (i % kEach == 0) std::filesystem::create_directories(folder);
    std::ofstream(folder + "/file-" + std::to_string(i)) << i;
  }
  ::sync();
}

/// The same tree in turn: by us, and by GNU rm.
void remove_tree(benchmark::State& state, bool ours) {
  waits_for_disk = true;
  const BaseFolder base;
  node::Kernel kernel;
  const Volumes volumes = base.volumes(kernel);
  rusage before{};
  for (auto _ : state) {
    state.PauseTiming();
    if (!volumes.make({.id = "tree", .path = "tree"}).ok()) return state.SkipWithError("make");
    plant(base.at("tree"));
    ::getrusage(RUSAGE_SELF, &before);
    state.ResumeTiming();
    if (ours) {
      if (!volumes.remove({.id = "tree"}).ok()) return state.SkipWithError("remove");
    } else {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): what is compared with
      if (std::system(("rm -rf " + base.at("tree")).c_str()) != 0) return state.SkipWithError("rm");
      state.PauseTiming();
      if (!volumes.remove({.id = "tree"}).ok()) return state.SkipWithError("remove");
      state.ResumeTiming();
    }
  }
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  state.counters["grown_kib"] = static_cast<double>(after.ru_maxrss - before.ru_maxrss);
}
BENCHMARK_CAPTURE(remove_tree, ours, true)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(remove_tree, rm, false)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
}  // namespace lpp::bench

BENCHMARK_MAIN();
