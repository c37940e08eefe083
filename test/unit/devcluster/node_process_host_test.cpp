#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/clock.h"
#include "base/sync.h"
#include "devcluster/node/process_host.h"
#include "node_test_support.h"

using namespace lpp;
using namespace lpp::devcluster;
using namespace lpp::devcluster::testing;

namespace {

/// Collects exits; wait() blocks until the process has ended.
struct Ended {
  Mutex mutex;
  CondVar changed;
  std::map<ProcessHost::Id, ProcessExit> exits LPP_GUARDED_BY(mutex);

  void add(ProcessHost::Id id, const ProcessExit& exit) {
    MutexLock lock(mutex);
    exits[id] = exit;
    changed.notify_all();
  }
  ProcessExit wait(ProcessHost::Id id) {
    const SystemClock clock;
    const TimePoint end = clock.now() + kDeadline;
    MutexLock lock(mutex);
    while (!exits.contains(id) && clock.now() < end) changed.wait_until(mutex, end);
    REQUIRE(exits.contains(id));
    return exits[id];
  }
};

struct Bed {
  Bed() {
    image = folder.path() + "/image";
    REQUIRE(make_image_root(*sandbox_tools(), image).ok());
    auto made = ProcessHost::create(
        *sandbox_tools(), [this](auto id, const ProcessExit& exit) { ended.add(id, exit); });
    REQUIRE(made.ok());
    host = *std::move(made);
  }
  SandboxSpec shell(const std::string& script) const {
    SandboxSpec spec;
    spec.image_root = image;
    spec.hostname = "a-pod";
    spec.env = {{"PATH", "/bin"}, {"WORD", "with space"}};
    spec.argv = {"sh", "-c", script};
    return spec;
  }
  ProcessExit run(const SandboxSpec& spec) {
    const auto id = host->start(spec, log());
    REQUIRE(id.ok());
    return ended.wait(*id);
  }
  std::string log() const { return folder.path() + "/log"; }

  TemporaryFolder folder;
  std::string image;
  Ended ended;
  std::unique_ptr<ProcessHost> host;
};

}  // namespace

TEST_CASE("a sandbox runs a script over busybox and reports its exit code and output") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  const ProcessExit exit =
      bed.run(bed.shell("echo \"$WORD on $(hostname)\"; echo bad >&2; exit 7"));
  CHECK(exit.started);
  CHECK(exit.code == 7);
  CHECK(exit.signal == 0);
  CHECK(BoundedLog::read(bed.log()) == "with space on a-pod\nbad\n");
}

TEST_CASE("a sandbox sees its mounts and nothing else of the machine") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  const std::string volume = bed.folder.path() + "/volume";
  std::filesystem::create_directories(volume);
  SandboxSpec spec = bed.shell(
      "echo hello > /data/deep/file; (echo x > /locked/file) 2>/dev/null && exit 1; "
      "ls / | tr '\\n' ' '; touch /tmp/a /b");
  spec.mounts = {{volume, "/data/deep", false}, {volume, "/locked", true}};
  CHECK(bed.run(spec).code == 0);
  CHECK(BoundedLog::read(bed.log()) == "bin data dev etc locked proc root sbin tmp usr var ");
  std::ifstream file(volume + "/file");
  CHECK(std::string{std::istreambuf_iterator<char>(file), {}} == "hello\n");
}

TEST_CASE("a program that does not exist is a failed start, not an exit code") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  SandboxSpec spec = bed.shell("");
  spec.argv = {"/no/such/program"};
  const ProcessExit exit = bed.run(spec);
  CHECK_FALSE(exit.started);
  CHECK(exit.code == 128);
  CHECK(exit.message.find("No such file") != std::string::npos);
}

TEST_CASE("a missing mount source is a failed start") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  SandboxSpec spec = bed.shell("true");
  spec.mounts = {{bed.folder.path() + "/missing", "/data", false}};
  CHECK_FALSE(bed.run(spec).started);
}

TEST_CASE("signals reach the container's first process") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  SUBCASE("a handler runs") {
    const auto id = bed.host->start(
        bed.shell("trap 'exit 3' TERM; while true; do sleep 0.05; done"), bed.log());
    REQUIRE(id.ok());
    bed.host->signal(*id, SIGTERM);
    // Sent before the handler was set it is ignored: process 1 of a container has no default.
    for (int i = 0; i < 100; ++i) {
      bed.host->signal(*id, SIGTERM);
      MutexLock lock(bed.ended.mutex);
      if (!bed.ended.exits.empty()) break;
      bed.ended.changed.wait_until(bed.ended.mutex,
                                   SystemClock().now() + std::chrono::milliseconds(50));
    }
    CHECK(bed.ended.wait(*id).code == 3);
  }
  SUBCASE("a kill needs no cooperation") {
    const auto id = bed.host->start(bed.shell("sleep 100"), bed.log());
    REQUIRE(id.ok());
    bed.host->signal(*id, SIGKILL);
    const ProcessExit exit = bed.ended.wait(*id);
    CHECK(exit.signal == SIGKILL);
    CHECK(exit.code == 137);
  }
}

TEST_CASE("stop kills what runs and reports nothing any more") {
  LPP_NEEDS_SANDBOX();
  Bed bed;
  for (int i = 0; i < 5; ++i) REQUIRE(bed.host->start(bed.shell("sleep 100"), bed.log()).ok());
  bed.host->stop();
  CHECK_FALSE(bed.host->start(bed.shell("true"), bed.log()).ok());
  MutexLock lock(bed.ended.mutex);
  CHECK(bed.ended.exits.empty());
}

TEST_CASE("a container can run as another user without capabilities") {
  LPP_NEEDS_SANDBOX();
  if (!sandbox_tools()->root) return;
  Bed bed;
  SandboxSpec spec =
      bed.shell("id -u; id -g; grep -c 'CapEff:.*0000000000000000' /proc/self/status");
  spec.uid = 1000;
  spec.gid = 2000;
  spec.drop_all_capabilities = true;
  spec.passwd_file = bed.folder.path() + "/passwd";
  std::ofstream(spec.passwd_file) << "user:x:1000:2000::/:/bin/sh\n";
  CHECK(bed.run(spec).code == 0);
  CHECK(BoundedLog::read(bed.log()) == "1000\n2000\n1\n");
}

TEST_CASE("a log keeps the newest megabyte") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  {
    BoundedLog log(path);
    for (int i = 0; i < 300; ++i) log.append(std::string(10'000, i < 299 ? 'a' : 'z'));
  }
  const std::string text = BoundedLog::read(path);
  CHECK(text.size() <= BoundedLog::kLimit);
  CHECK(text.size() >= BoundedLog::kLimit / 2);
  CHECK(text.ends_with(std::string(10'000, 'z')));
}
