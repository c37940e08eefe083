// SPDX-License-Identifier: Apache-2.0
#include "harness/child_process.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "fakes/eventually.h"
#include "harness/daemon_process.h"
#include "harness/file_text.h"
#include "harness/temp_dir.h"

namespace lpp::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Result<std::unique_ptr<ChildProcess>> shell(const std::string& script, const TempDir& dir) {
  return ChildProcess::start({.program = "/bin/sh",
                              .args = {"-c", script},
                              .env = {{"WORD", "hello"}},
                              .log_file = dir.path("log")});
}

TEST_CASE("a child reports its exit code and its output is kept") {
  const TempDir dir;
  auto child = shell("echo $WORD; echo error >&2; exit 3", dir);
  REQUIRE(child.ok());
  CHECK((*child)->wait(seconds(60)) == ChildExit{.code = 3});
  CHECK((*child)->wait(seconds(60)) == ChildExit{.code = 3});
  CHECK_FALSE((*child)->alive());
  CHECK(text_of(dir.path("log")) == "hello\nerror\n");
}

TEST_CASE("a killed child is dead when kill returns") {
  const TempDir dir;
  auto child = shell("exec sleep 1000", dir);
  REQUIRE(child.ok());
  CHECK((*child)->alive());
  CHECK_FALSE((*child)->wait(milliseconds(1)).has_value());
  (*child)->kill();
  CHECK_FALSE((*child)->alive());
  CHECK((*child)->wait(seconds(0)) == ChildExit{.signal = SIGKILL});
}

TEST_CASE("a child does not outlive its object") {
  const TempDir dir;
  pid_t pid = 0;
  {
    auto child = shell("exec sleep 1000", dir);
    REQUIRE(child.ok());
    pid = (*child)->pid();
  }
  CHECK(::kill(pid, 0) != 0);
}

TEST_CASE("a program that cannot be executed is an error with its path") {
  const TempDir dir;
  const auto missing = ChildProcess::start({.program = "/nowhere/program"});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message.starts_with("/nowhere/program: "));
  std::ofstream(dir.path("text")) << "text";
  CHECK(ChildProcess::start({.program = dir.path("text")}).error().code == ErrorCode::kInvalid);
}

TEST_CASE("a daemon that ends at once is reported with its log") {
  const TempDir dir;
  const std::string program = dir.path("daemon");
  std::ofstream(program) << "#!/bin/sh\necho \"cannot start: $*\"\nexit 1\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  auto daemon =
      DaemonProcess::start({.program = program, .args = {"--flag"}, .log_file = dir.path("log")});
  REQUIRE(daemon.ok());
  const auto ready = (*daemon)->wait_ready(seconds(60));
  REQUIRE_FALSE(ready.ok());
  CHECK(ready.error().message.find("exit code 1") != std::string::npos);
  CHECK(ready.error().message.find("cannot start: start --health-port") != std::string::npos);
  CHECK(ready.error().message.find("--flag") != std::string::npos);
}

TEST_CASE("a daemon that ignores SIGTERM is killed and reported") {
  const TempDir dir;
  const std::string program = dir.path("daemon");
  std::ofstream(program) << "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.05; done\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  auto daemon = DaemonProcess::start({.program = program, .log_file = dir.path("log")});
  REQUIRE(daemon.ok());
  REQUIRE(eventually([&] { return !text_of(dir.path("log")).empty(); }));
  const auto ended = (*daemon)->terminate(milliseconds(100));
  REQUIRE_FALSE(ended.ok());
  CHECK(ended.error().code == ErrorCode::kTimeout);
  CHECK_FALSE((*daemon)->alive());
}

}  // namespace
}  // namespace lpp::testing
