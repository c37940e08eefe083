// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "k8s/reflector.h"
#include "unit/k8s/reflector_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;

TEST_CASE("a list that must not be older than a moment ends a watch, and comes once") {
  ReflectorFixture f;
  f.list_at("10");
  const TimePoint before = f.clock.now();
  CHECK(f.reflector.listed_since(before));
  f.clock.advance(1s);
  const TimePoint since = f.clock.now();
  CHECK_FALSE(f.reflector.listed_since(since));
  f.transport.on("GET", kWatch)
      .run([&](const auto&, const auto*, const std::stop_token& stop) -> Result<Response> {
        f.reflector.list_since(since);
        CHECK(stop.stop_requested());
        return cancelled();
      });
  CHECK(f.step() == 0s);
  f.transport.on("GET", kList)
      .reply(200, list_of("20", {"a"}, "token"))
      .reply(200, list_of("20", {"b"}));
  CHECK(f.step() == 0s);
  CHECK_FALSE(f.reflector.listed_since(since));  // not as long as a page is missing
  f.reflector.list_since(since);                 // it is under way
  CHECK(f.step() == 0s);
  CHECK(f.reflector.listed_since(since));
  CHECK(f.sink.take() == Calls{"begin", "item a", "item b", "end"});
  f.reflector.list_since(since);
  f.reflector.list_since(before);
  f.transport.on("GET", kWatch)
      .run([&](const auto&, const auto*, const std::stop_token& stop) -> Result<Response> {
        CHECK_FALSE(stop.stop_requested());
        return Response{.status = 200};
      });
  f.step();
  CHECK(f.last("resourceVersion") == "20");
  CHECK(f.reflector.stats().lists == 2);
}

TEST_CASE("a list that is older than what is asked for begins anew") {
  ReflectorFixture f;
  auto& lists = f.transport.on("GET", kList);
  lists.reply(200, list_of("10", {"old"}, "token"));
  SUBCASE("between two pages") {
    CHECK(f.step() == 0s);
    f.clock.advance(1s);
    f.reflector.list_since(f.clock.now());
  }
  SUBCASE("while a page is asked for") {
    lists.run([&](const auto&, const auto*, const std::stop_token& stop) -> Result<Response> {
      f.clock.advance(1s);
      f.reflector.list_since(f.clock.now());
      CHECK(stop.stop_requested());
      return cancelled();
    });
    CHECK(f.step() == 0s);
    CHECK(f.step() == 0s);
  }
  f.sink.take();
  const TimePoint since = f.clock.now();
  lists.reply(200, list_of("20", {"new"}));
  CHECK(f.step() == 0s);
  CHECK(f.last("continue") == "<none>");
  CHECK(f.reflector.listed_since(since));
  CHECK(f.sink.take() == Calls{"begin", "item new", "end"});
}

TEST_CASE("a list that is wanted does not wait until a back-off has passed") {
  SystemClock clock;
  FakeTransport transport;
  ApiClient client{transport, clock, {}};
  RecordingSink sink;
  Reflector reflector{client, clock, {.resource = kPods}, sink};
  transport.on("GET", kList).reply_retry_after(401, 60s).reply(200, list_of("10"));
  transport.on("GET", kWatch).hang();
  const std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
  REQUIRE(transport.wait_for_requests(1));
  const TimePoint since = clock.now();
  reflector.list_since(since);
  CHECK(transport.wait_for_requests(3, 40s));
  CHECK(reflector.listed_since(since));
}
