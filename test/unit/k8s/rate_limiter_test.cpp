// SPDX-License-Identifier: Apache-2.0
#include "k8s/rate_limiter.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"

using namespace lpp;
using lpp::k8s::RateLimiter;
using lpp::testing::eventually;
using lpp::testing::FakeClock;
using namespace std::chrono_literals;

namespace {

bool ready(const std::future<bool>& call) { return call.wait_for(0s) == std::future_status::ready; }

std::future<bool> acquire_later(RateLimiter& limiter, TimePoint deadline,
                                const std::stop_token& stop) {
  return std::async(std::launch::async,
                    [&limiter, deadline, stop] { return limiter.acquire(deadline, stop); });
}

}  // namespace

TEST_CASE("a burst passes at once, then nothing before the deadline") {
  FakeClock clock;
  RateLimiter limiter(clock, 5, 10);
  const auto now = clock.now();
  for (int i = 0; i < 10; ++i) CHECK(limiter.acquire(now, {}));
  CHECK_FALSE(limiter.acquire(now + 100ms, {}));
  clock.advance(200ms);
  CHECK(limiter.acquire(clock.now(), {}));
  CHECK_FALSE(limiter.acquire(clock.now(), {}));
}

TEST_CASE("unused time saves at most a burst") {
  FakeClock clock;
  RateLimiter limiter(clock, 5, 3);
  clock.advance(1h);
  int passed = 0;
  while (limiter.acquire(clock.now(), {})) ++passed;
  CHECK(passed == 3);
}

TEST_CASE("who waits gets the next token when its time has come, and a refusal costs none") {
  FakeClock clock;
  RateLimiter limiter(clock, 1, 1);
  CHECK(limiter.acquire(clock.now(), {}));
  CHECK_FALSE(limiter.acquire(clock.now() + 500ms, {}));
  auto first = acquire_later(limiter, clock.now() + 10s, {});
  for (int i = 0; i < 9; ++i) clock.advance(100ms);
  CHECK(first.wait_for(30ms) == std::future_status::timeout);
  clock.advance(100ms);
  REQUIRE(first.wait_for(60s) == std::future_status::ready);
  CHECK(first.get());
}

TEST_CASE("a stop ends the wait and gives the token back") {
  FakeClock clock;
  RateLimiter limiter(clock, 1, 1);
  CHECK(limiter.acquire(clock.now(), {}));
  std::stop_source stop;
  auto waiting = acquire_later(limiter, clock.now() + 10s, stop.get_token());
  CHECK_FALSE(ready(waiting));
  stop.request_stop();
  REQUIRE(waiting.wait_for(60s) == std::future_status::ready);
  CHECK_FALSE(waiting.get());
  clock.advance(1s);
  CHECK(limiter.acquire(clock.now(), {}));
  CHECK_FALSE(limiter.acquire(clock.now(), stop.get_token()));
}

TEST_CASE("those that wait take turns by namespace") {
  FakeClock clock;
  RateLimiter limiter(clock, 1, 1);
  CHECK(limiter.acquire(clock.now(), {}));
  std::atomic<int> loud = 0;
  std::atomic<int> quiet = 0;
  std::vector<std::jthread> calls;
  const auto call = [&](const char* ns, std::atomic<int>& passed) {
    calls.emplace_back([&limiter, &clock, &passed, ns] {
      if (limiter.acquire(clock.now() + 1h, {}, ns)) ++passed;
    });
  };
  for (int i = 0; i < 10; ++i) call("loud", loud);
  REQUIRE(eventually([&] { return limiter.waiting() == 10; }));
  CHECK_FALSE(limiter.acquire(clock.now() + 1500ms, {}, "quiet"));
  for (int i = 0; i < 2; ++i) call("quiet", quiet);
  REQUIRE(eventually([&] { return limiter.waiting() == 12; }));
  for (int second = 1; second <= 4; ++second) {
    clock.advance(1s);
    REQUIRE(eventually([&] { return loud + quiet == second; }));
  }
  CHECK(quiet == 2);
  CHECK(loud == 2);
  for (int second = 5; second <= 12; ++second) {
    clock.advance(1s);
    REQUIRE(eventually([&] { return loud + quiet == second; }));
  }
  CHECK(loud == 10);
}

TEST_CASE("absurd settings neither crash nor let everything pass") {
  FakeClock clock;
  RateLimiter limiter(clock, 0, 0);
  CHECK(limiter.acquire(clock.now(), {}));
  CHECK_FALSE(limiter.acquire(clock.now() + 100s, {}));
}
