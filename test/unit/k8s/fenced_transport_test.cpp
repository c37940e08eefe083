// SPDX-License-Identifier: Apache-2.0
#include "k8s/fenced_transport.h"

#include <doctest/doctest.h>

#include <string>

#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using namespace std::chrono_literals;

TEST_CASE("a fenced transport passes reads and refuses writes outside the lease") {
  FakeClock clock;
  FakeTransport inner;
  inner.on_any().always([](const Request&) { return Response{.status = 200}; });
  TimePoint valid_until = TimePoint::min();
  FencedTransport fenced(inner, clock, [&] { return valid_until; });
  const auto ask = [&](const std::string& method, std::chrono::milliseconds timeout = 10s) {
    return fenced.round_trip({.method = method, .target = "/x", .timeout = timeout}, {});
  };
  SUBCASE("never held") {}
  SUBCASE("over now") { valid_until = clock.now(); }
  SUBCASE("less than can be given to a request") { valid_until = clock.now() + 999us; }
  CHECK(ask("GET").ok());
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    CAPTURE(method);
    const auto refused = ask(method);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().is(ErrorCode::kUnavailable));
    CHECK(refused.error().reason == kNotLeader);
    CHECK(refused.error().message.find("lease") != std::string::npos);
  }
  CHECK(inner.requests().size() == 1);
  const auto sink = [](std::string_view) { return true; };
  CHECK(fenced.stream({.method = "GET", .target = "/x"}, sink, {}).ok());
  CHECK_FALSE(fenced.stream({.method = "POST", .target = "/x"}, sink, {}).ok());
}

TEST_CASE("a fenced transport lets no write outlive the lease") {
  FakeClock clock;
  FakeTransport inner;
  inner.on_any().always([](const Request&) { return Response{.status = 200}; });
  TimePoint valid_until = clock.now() + 3s;
  FencedTransport fenced(inner, clock, [&] { return valid_until; });
  const auto timeout_of = [&](const std::string& method, std::chrono::milliseconds timeout) {
    CHECK(fenced.round_trip({.method = method, .target = "/x", .body = "b", .timeout = timeout}, {})
              .ok());
    CHECK(inner.requests().back().body == "b");
    return inner.requests().back().timeout;
  };
  CHECK(timeout_of("POST", 10s) == 3s);
  CHECK(timeout_of("PUT", 2s) == 2s);
  CHECK(timeout_of("GET", 10s) == 10s);
  clock.advance(2s);
  CHECK(timeout_of("DELETE", 2s) == 1s);
  valid_until = TimePoint::max();
  CHECK(timeout_of("PATCH", 10s) == 10s);
}
