// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse_time.h"
#include "base/result.h"
#include "base/strings.h"
#include "fakes/fake_clock.h"
#include "fakes/needs.h"

using namespace lpp;

namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid("odd");
  return n / 2;
}

Result<int> quarter(int n) {
  LPP_ASSIGN_OR_RETURN(const int once, half(n), "first half");
  LPP_ASSIGN_OR_RETURN(const int twice, half(once), "second half");
  return twice;
}

}  // namespace

TEST_CASE("a result carries a value or an error with its context") {
  CHECK(quarter(8).value() == 2);
  const auto failed = quarter(6);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().message == "second half: odd");
  CHECK(failed.error().is(ErrorCode::kInvalid));
}

TEST_CASE("split keeps empty parts") {
  CHECK(split("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
  CHECK(split("", ',').size() == 1);
}

TEST_CASE("percent encoding leaves only unreserved characters") {
  CHECK(percent_encode("a b/é~") == "a%20b%2F%C3%A9~");
}

TEST_CASE("a text is never cut inside a UTF-8 sequence") {
  CHECK(truncate_utf8("aé", 2) == "a");
  CHECK(truncate_utf8("aé", 3) == "aé");
}

TEST_CASE("a log value is quoted only when it must be") {
  CHECK(log::quoted("a/b") == "a/b");
  CHECK(log::quoted("a b\n\x01") == "\"a b\\n\\x01\"");
  CHECK(log::quoted("") == "\"\"");
}

TEST_CASE("times are printed as Kubernetes prints them") {
  const std::chrono::system_clock::time_point time{
      std::chrono::microseconds(1'000'000'000'148'207)};
  CHECK(format_rfc3339(time) == "2001-09-09T01:46:40Z");
  CHECK(format_rfc3339_micro(time) == "2001-09-09T01:46:40.148207Z");
}

TEST_CASE("times are read as RFC 3339 has them, and nothing else is") {
  using std::chrono::milliseconds;
  const auto read = [](std::string_view text) {
    const auto time = parse_rfc3339(text);
    return time ? format_rfc3339(*time) : "none";
  };
  CHECK(read("2026-05-28T20:26:40Z") == "2026-05-28T20:26:40Z");
  CHECK(*parse_rfc3339("2026-05-28T20:26:40.500000Z") - *parse_rfc3339("2026-05-28 20:26:40z") ==
        milliseconds(500));
  CHECK(read("2026-11-20T09:15:16+02:00") == "2026-11-20T07:15:16Z");
  CHECK(read("2026-11-20T09:15:16.123-00:30") == "2026-11-20T09:45:16Z");
  CHECK(read("9999-12-31T23:59:59Z") == "2200-01-01T00:00:00Z");
  CHECK(read("0001-01-01T00:00:00Z") == "1970-01-01T00:00:00Z");
  for (const char* bad :
       {"", "2026", "2026-05-28", "2026-05-28T20:26:40", "2026-05-28T20:26:40+2:00",
        "2026-05-28T20:26:40+24:00", "2026-05-28T20:26:40*02:00", "2026-13-28T20:26:40Z",
        "2026-05-28T24:26:40Z", "xxxx-05-28T20:26:40Z", "-026-05-28T20:26:40Z",
        "2026-05-28T20:26:40Zx", "2026-05-28T20:26:40.x", "2026-05-28T20:26:40."}) {
    CAPTURE(bad);
    CHECK(read(bad) == "none");
  }
}

TEST_CASE("sleeping ends at the deadline or when stopped") {
  testing::FakeClock clock;
  std::atomic<int> slept = 0;
  std::jthread sleeper([&](const std::stop_token& stop) {
    if (clock.sleep_for(std::chrono::seconds(5), stop)) ++slept;
    if (!clock.sleep_for(std::chrono::hours(500'000), stop)) ++slept;
  });
  while (slept == 0) clock.advance(std::chrono::seconds(1));
  sleeper.request_stop();
  sleeper.join();
  CHECK(slept == 2);
}

namespace {

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/// What `child` returns, run in a process of its own.
template <typename Child>
int in_child(const Child& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// For the children of this process, by a time namespace: as if the machine had been suspended for
/// a while. 0 if that can be had.
int move_boot_time() {
  constexpr std::string_view kOffset = "boottime 1000000 0\n";
  if (::unshare(CLONE_NEWTIME) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) return 1;
  const int fd = ::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, kOffset.data(), kOffset.size()) < 0) return 1;
  ::close(fd);
  return 0;
}

/// Whether the clock counts that time, which no other clock does.
int clock_counts_suspension() {
  if (move_boot_time() != 0) return 1;
  return in_child([] {
    const auto ahead = SystemClock().now() - std::chrono::steady_clock::now();
    return ahead > std::chrono::seconds(900'000) ? 0 : 1;
  });
}

}  // namespace

TEST_CASE("time goes on while the machine is suspended" *
          testing::Needs(in_child(move_boot_time) == 0, "not here: a time namespace")) {
  CHECK(in_child(clock_counts_suspension) == 0);
}

TEST_CASE("random UUIDs have the right shape and differ") {
  const std::string a = random_uuid();
  CHECK(a.size() == 36);
  CHECK(a[14] == '4');
  CHECK(a != random_uuid());
}

TEST_CASE("a shell reads a word of a printed command back as it was") {
  CHECK(shell_word("/opt/a_b/c-1.2:3=4@5") == "/opt/a_b/c-1.2:3=4@5");
  for (const std::string text : {"", "a;echo b|cat", "it's", "'", "a  b", "$(echo x)", "`echo x`",
                                 "a\\b\"c", "*", "~", "#x", "a&b>c", "\xc3\xa9"}) {
    CAPTURE(text);
    const std::string command = "printf '<%s>' " + shell_word(text);
    FILE* const shell = ::popen(command.c_str(), "r");
    REQUIRE(shell != nullptr);
    std::string read;
    for (int c = std::fgetc(shell); c != EOF; c = std::fgetc(shell)) read += static_cast<char>(c);
    CHECK(::pclose(shell) == 0);
    CHECK(read == "<" + text + ">");
  }
}
