// SPDX-License-Identifier: Apache-2.0
#include "node/tree_removal.h"

#include <doctest/doctest.h>
#include <linux/ioprio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace {

namespace fs = std::filesystem;

/// A folder of folders, each in the one before it, with a file in the last.
void make_deep(const std::string& top, int levels) {
  fs::create_directory(top);
  UniqueFd folder(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < levels; ++i) {
    REQUIRE(::mkdirat(folder.get(), "d", 0755) == 0);
    folder.reset(::openat(folder.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(folder.valid());
  }
  REQUIRE(UniqueFd(::openat(folder.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644)).valid());
}

}  // namespace

TEST_CASE("trees of any depth and names of any bytes go, with few descriptors") {
  const BaseFolder base;
  const BaseFolder outside;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("pvc-1", "a");
  request.limits = {};
  REQUIRE(volumes.make(request).ok());
  make_deep(base.at("a/deep"), 3000);
  make_deep(base.at("a/also deep"), 33);
  outside.write("kept", "data");
  fs::create_symlink(outside.at("kept"), base.at("a/link"));
  fs::create_directory_symlink(outside.path(), base.at("a/folder link"));
  fs::create_symlink("nowhere", base.at("a/dangling"));
  fs::create_directory_symlink("..", base.at("a/up"));
  REQUIRE(::mkfifo(base.at("a/pipe").c_str(), 0600) == 0);
  for (const std::string name : {"-rf", "\n", " ", "*", "\xff\xfe", "...", "deep.0", "volume"}) {
    base.write("a/" + name);
    base.write("a/of " + name + "/" + name);
  }
  base.write("a/" + std::string(255, 'x'));
  fs::permissions(base.at("a/of -rf"), fs::perms(::geteuid() == 0 ? 0 : 0700));

  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto removed = volumes.remove({.id = "pvc-1"});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_MESSAGE(removed.ok(), removed.error().message);
  CHECK(base.content().empty());
  CHECK(outside.content() == std::set<std::string>{"kept"});
}

TEST_CASE("a removal tells how far it is, stops when asked to, and goes on the next time") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("pvc-1", "a");
  request.limits = {};
  REQUIRE(volumes.make(request).ok());
  constexpr int kFiles = 20000;
  make_files(base.at("a"), kFiles);
  std::stop_source stop;
  std::uint64_t told = 0;
  RemoveRequest removal{.id = "pvc-1"};
  removal.stop = stop.get_token();
  removal.progress = [&](std::uint64_t done) {
    told = done;
    stop.request_stop();
  };
  CHECK(volumes.remove(removal).error().is(ErrorCode::kCancelled));
  CHECK(told > 0);
  CHECK(told < kFiles);
  CHECK_FALSE(base.has("a"));
  CHECK(volumes.list()->volumes.at(0).state == State::kRemoving);
  CHECK(volumes.make(request).error().is(ErrorCode::kConflict));
  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(base.content().empty());
}

TEST_CASE("while a tree is removed its thread's I/O goes behind that of others, and no longer") {
  const auto priority = [] {
    return static_cast<int>(::syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0));
  };
  class Watching final : public Kernel {
   public:
    std::function<void()> on_unlink{};

   protected:
    void after(const char* call) override {
      if (std::string_view(call) == "unlinkat" && on_unlink) std::exchange(on_unlink, {})();
    }
  } kernel;
  const BaseFolder base;
  const auto volumes = base.volumes(kernel);
  auto request = make_request("pvc-1", "a");
  request.limits = {};
  REQUIRE(volumes.make(request).ok());
  base.write("a/file");
  const int before = priority();
  int meanwhile = -1;
  kernel.on_unlink = [&] { meanwhile = priority(); };
  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(meanwhile == IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
  CHECK(priority() == before);
}

TEST_CASE("nothing outside goes while a tenant exchanges folders and symbolic links") {
  const BaseFolder base;
  const BaseFolder outside;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (const std::string name : {"a", "b", "c"}) outside.write("folder/" + name);
  const auto before = outside.content();
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    auto request = make_request("pvc-1", "v");
    request.limits = {};
    REQUIRE(volumes.make(request).ok());
    for (int i = 0; i < 20; ++i) {
      base.write("v/x/" + std::to_string(i) + "/folder/a");
      base.write("v/x/" + std::to_string(i) + "/a");
    }
    // What a process of a pod has: the volume itself, wherever it is now.
    const UniqueFd volume(::open(base.at("v").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fs::create_directory_symlink(outside.path(), base.at("v/y"));
    std::atomic<bool> stop{false};
    std::thread tenant([&] {
      while (!stop) {
        ::renameat2(volume.get(), "x", volume.get(), "y", RENAME_EXCHANGE);
        if (::symlinkat(outside.path().c_str(), volume.get(), "y") == 0) {
          ::mkdirat(volume.get(), "x", 0755);
        }
      }
    });
    auto removed = volumes.remove({.id = "pvc-1"});
    stop = true;
    tenant.join();
    if (!removed.ok()) {
      CHECK(removed.error().is(ErrorCode::kUnavailable));
      removed = volumes.remove({.id = "pvc-1"});
    }
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    REQUIRE(outside.content() == before);
    REQUIRE(base.content().empty());
  }
}
