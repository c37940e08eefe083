// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/clock.h"
#include "base/sync.h"
#include "devcluster/node/process_host.h"
#include "fakes/eventually.h"
#include "harness/file_text.h"
#include "node_test_support.h"

namespace lpp::devcluster::process_host {

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

/// Each kind of sandbox keeps the same promises.
template <SandboxKind kKind>
struct Bed {
  Bed() {
    REQUIRE(sandbox_tools(kKind).ok());
    // Under proot the container's own user goes through it.
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
    image = folder.path() + "/image";
    REQUIRE(make_image_root(*sandbox_tools(kKind), image).ok());
    auto made = ProcessHost::create(
        *sandbox_tools(kKind), [this](auto id, const ProcessExit& exit) { ended.add(id, exit); });
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

  TempDir folder;
  std::string image;
  Ended ended;
  std::unique_ptr<ProcessHost> host;
};

template <SandboxKind kKind>
void runs_a_script() {
  Bed<kKind> bed;
  const ProcessExit exit =
      bed.run(bed.shell("echo \"$WORD on $(hostname)\"; echo bad >&2; exit 7"));
  CHECK(exit.started);
  CHECK(exit.code == 7);
  CHECK(exit.signal == 0);
  std::array<char, 256> machine{};
  gethostname(machine.data(), machine.size());
  const std::string host = kKind == SandboxKind::kBubblewrap ? "a-pod" : machine.data();
  CHECK(BoundedLog::read(bed.log()) == "with space on " + host + "\nbad\n");
}

template <SandboxKind kKind>
void sees_its_mounts() {
  Bed<kKind> bed;
  const std::string volume = bed.folder.path() + "/volume";
  std::filesystem::create_directories(volume);
  SandboxSpec spec =
      bed.shell("echo hello > /data/deep/file; ls / | tr '\\n' ' '; touch /tmp/a /b");
  spec.mounts = {{volume, "/data/deep", false}, {volume, "/locked", true}};
  CHECK(bed.run(spec).code == 0);
  CHECK(BoundedLog::read(bed.log()) == "bin data dev etc locked proc root sbin tmp usr var ");
  CHECK(lpp::testing::text_of(volume + "/file") == "hello\n");
}

template <SandboxKind kKind>
void cannot_write() {
  Bed<kKind> bed;
  const std::string volume = bed.folder.path() + "/volume";
  std::filesystem::create_directories(volume + "/folder");
  std::ofstream(volume + "/file") << "text\n";
  SandboxSpec spec = bed.shell(
      "cd /v; (echo x > new; echo x >> file; rm file; rmdir folder; mv file other; mkdir more; "
      "ln -s a b; mkfifo p; rm /bin/sh; mv /own file) 2>/dev/null; touch /own && exit 6");
  spec.mounts = {{volume, "/v", true}};
  SUBCASE("by a mount") { CHECK(bed.run(spec).code == 6); }
  SUBCASE("by the container's own root") {
    spec.read_only_root = true;
    CHECK(bed.run(spec).code == 1);
  }
  std::string seen;
  for (const auto& entry : std::filesystem::directory_iterator(volume)) {
    seen += entry.path().filename().string() + ' ';
  }
  CHECK((seen == "file folder " || seen == "folder file "));
  CHECK(lpp::testing::text_of(volume + "/file") == "text\n");
}

template <SandboxKind kKind>
void fails_to_start() {
  Bed<kKind> bed;
  SandboxSpec spec = bed.shell("");
  spec.argv = {"/no/such/program"};
  const ProcessExit exit = bed.run(spec);
  CHECK_FALSE(exit.started);
  CHECK(exit.code == 128);
  CHECK(exit.message.find("No such file") != std::string::npos);
}

template <SandboxKind kKind>
void misses_a_mount() {
  Bed<kKind> bed;
  SandboxSpec spec = bed.shell("true");
  spec.mounts = {{bed.folder.path() + "/missing", "/data", false}};
  CHECK_FALSE(bed.run(spec).started);
}

template <SandboxKind kKind>
void gets_signals() {
  Bed<kKind> bed;
  SUBCASE("a handler runs") {
    const auto id = bed.host->start(
        bed.shell("trap 'exit 3' TERM; while true; do sleep 0.05; done"), bed.log());
    REQUIRE(id.ok());
    // Sent before the handler was set it is ignored: process 1 of a container has no default.
    const auto ends = [&] {
      bed.host->signal(*id, SIGTERM);
      MutexLock lock(bed.ended.mutex);
      return !bed.ended.exits.empty();
    };
    REQUIRE(
        lpp::testing::eventually(ends, std::chrono::seconds(60), std::chrono::milliseconds(50)));
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

template <SandboxKind kKind>
void is_stopped() {
  Bed<kKind> bed;
  for (int i = 0; i < 5; ++i) REQUIRE(bed.host->start(bed.shell("sleep 100"), bed.log()).ok());
  bed.host->stop();
  CHECK_FALSE(bed.host->start(bed.shell("true"), bed.log()).ok());
  MutexLock lock(bed.ended.mutex);
  CHECK(bed.ended.exits.empty());
}

template <SandboxKind kKind>
void becomes_a_user() {
  Bed<kKind> bed;
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

template <SandboxKind kKind>
void leaves_no_process() {
  Bed<kKind> bed;
  const std::string volume = bed.folder.path() + "/volume";
  std::filesystem::create_directories(volume);
  // Orphans of orphans, one in a session of its own: each would write when it is let.
  SandboxSpec spec = bed.shell(
      "mkfifo /v/p; (setsid sh -c 'echo >/v/up; cat /v/p; touch /v/late' & ) ; "
      "(trap '' TERM HUP; (cat /v/p; touch /v/late) &) ; "
      "while [ ! -e /v/up ]; do sleep 0.01; done; exit 4");
  spec.mounts = {{volume, "/v", false}};
  CHECK(bed.run(spec).code == 4);
  // A reader that has outlived the container would let this open succeed.
  const int fifo = open((volume + "/p").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  CHECK(fifo < 0);
  if (fifo >= 0) close(fifo);
  CHECK_FALSE(std::filesystem::exists(volume + "/late"));
}

template <SandboxKind kKind>
void mounts_in_mounts() {
  Bed<kKind> bed;
  const std::string outer = bed.folder.path() + "/outer";
  const std::string inner = bed.folder.path() + "/with:colon";
  const std::string file = bed.folder.path() + "/file";
  for (const std::string& folder : {outer, inner}) std::filesystem::create_directories(folder);
  std::ofstream(file) << "text\n";
  std::filesystem::create_symlink("/etc", outer + "/link");
  SandboxSpec spec = bed.shell(
      "pwd; cat /a/b/c/file; echo log > /dev/termination-log; cd /a; echo 1 > one; mv one b/c/two; "
      "echo x > link/inside");
  spec.working_dir = "/a/b/c";
  spec.mounts = {{file, "/a/b/c/file", true},
                 {inner, "/a/b/c", false},
                 {outer, "/a", false},
                 {file, "/dev/termination-log", false}};
  CHECK(bed.run(spec).code == 0);
  CHECK(BoundedLog::read(bed.log()) == "/a/b/c\ntext\n");
  CHECK(lpp::testing::text_of(file) == "log\n");
  CHECK(std::filesystem::exists(inner + "/two"));
  CHECK_FALSE(std::filesystem::exists("/etc/inside"));
}

template <SandboxKind kKind>
void keeps_names_apart() {
  Bed<kKind> bed;
  const std::string base = bed.folder.path() + "/base";
  std::filesystem::create_directories(base + "/deep/part");
  SandboxSpec spec = bed.shell(
      "cd /base/deep/part && pwd -P; echo 1 > /part/one; cat one; mkdir -p ../../other/new; "
      "cd /part && echo 2 > two; ls /base/deep/part /base; rm /base/deep/part/one; ls; "
      "cd /tmp && echo 3 > three");
  spec.mounts = {{base, "/base", false},
                 {base + "/deep/part", "/part", false},
                 {base + "/deep", "/tmp", false}};
  CHECK(bed.run(spec).code == 0);
  CHECK(BoundedLog::read(bed.log()) ==
        "/base/deep/part\n1\n/base:\ndeep\nother\n\n/base/deep/part:\none\ntwo\ntwo\n");
  CHECK(std::filesystem::exists(base + "/other/new"));
  CHECK(std::filesystem::exists(base + "/deep/three"));
}

// A macro: doctest names a test by a literal.
#define LPP_EACH_SANDBOX(name, check, ...)                                                        \
  TEST_CASE("under bubblewrap, " name* NeedsSandbox(SandboxKind::kBubblewrap __VA_OPT__(, )       \
                                                        __VA_ARGS__)) {                           \
    check<SandboxKind::kBubblewrap>();                                                            \
  }                                                                                               \
  TEST_CASE("under proot, " name* NeedsSandbox(SandboxKind::kProot __VA_OPT__(, ) __VA_ARGS__)) { \
    check<SandboxKind::kProot>();                                                                 \
  }

}  // namespace

LPP_EACH_SANDBOX("a sandbox runs a script over busybox and reports its exit code and output",
                 runs_a_script)
LPP_EACH_SANDBOX("a sandbox sees its mounts and nothing else of the machine", sees_its_mounts)
LPP_EACH_SANDBOX("what is read-only stays as it is", cannot_write, true)
LPP_EACH_SANDBOX("a program that does not exist is a failed start, not an exit code",
                 fails_to_start)
LPP_EACH_SANDBOX("a missing mount source is a failed start", misses_a_mount)
LPP_EACH_SANDBOX("signals reach the container's first process", gets_signals)
LPP_EACH_SANDBOX("stop kills what runs and reports nothing any more", is_stopped)
LPP_EACH_SANDBOX("a container can run as another user without capabilities", becomes_a_user, false,
                 true)
LPP_EACH_SANDBOX("no process outlives the first one", leaves_no_process)
LPP_EACH_SANDBOX("mounts lie in each other, and links lead nowhere else", mounts_in_mounts)
LPP_EACH_SANDBOX("a folder mounted twice, once within another, keeps both names", keeps_names_apart)

TEST_CASE("a log keeps the newest megabyte") {
  const TempDir folder;
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

}  // namespace lpp::devcluster::process_host
