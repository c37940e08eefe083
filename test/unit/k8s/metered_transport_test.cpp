// SPDX-License-Identifier: Apache-2.0
#include "k8s/metered_transport.h"

#include <doctest/doctest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"

using namespace lpp;
using namespace lpp::k8s;
using namespace lpp::testing;
using namespace std::chrono_literals;

TEST_CASE("requests are counted by answer and method, and timed unless they are watches") {
  FakeClock clock;
  FakeTransport server;
  MeteredTransport transport(server, clock);
  server.on("GET", "/a").run([&](const auto&, const auto*, const auto&) {
    clock.advance(300ms);
    return Result<Response>(Response{.status = 200});
  });
  server.on("POST", "/a").reply(409).fail(ErrorCode::kUnavailable).fail(ErrorCode::kCancelled);
  server.on("GET", "/watch").stream({"{}\n"});
  (void)transport.round_trip({.method = "GET", .target = "/a"}, {});
  for (int i = 0; i < 3; ++i) (void)transport.round_trip({.method = "POST", .target = "/a"}, {});
  (void)transport.stream({.method = "GET", .target = "/watch"}, [](auto) { return true; }, {});

  std::map<std::string, std::uint64_t> requests;
  for (const auto* entry : transport.stats().requests.entries()) {
    requests[entry->first[1] + " " + entry->first[0]] = entry->second;
  }
  // What we have cancelled ourselves says nothing about the server.
  CHECK(requests ==
        std::map<std::string, std::uint64_t>{{"GET 200", 2}, {"POST 409", 1}, {"POST <error>", 1}});
  const auto latency = transport.stats().latency.entries();
  REQUIRE(latency.size() == 2);
  const HistogramSnapshot get = latency[0]->second.snapshot();
  CHECK(get.sum_seconds == doctest::Approx(0.3));
  CHECK(get.counts[4] == 1);  // 0.25 < 0.3 <= 0.5
}
