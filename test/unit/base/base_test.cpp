#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/strings.h"
#include "fakes/fake_clock.h"

using namespace lpp;  // NOLINT(google-build-using-namespace): a test file

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

TEST_CASE("random UUIDs have the right shape and differ") {
  const std::string a = random_uuid();
  CHECK(a.size() == 36);
  CHECK(a[14] == '4');
  CHECK(a != random_uuid());
}
