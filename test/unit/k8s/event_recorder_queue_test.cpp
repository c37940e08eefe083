// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/on_behalf_of.h"
#include "k8s/event_recorder.h"
#include "unit/k8s/event_recorder_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using namespace std::chrono_literals;
using nlohmann::json;

TEST_CASE("a full queue drops and counts, and never blocks") {
  EventFixture f;
  for (int i = 0; i < 4200; ++i) {
    f.send("m", claim_reference("c" + std::to_string(i), "team" + std::to_string(i % 5)));
  }
  CHECK(f.recorder.dropped() == 200);
  f.start_with_working_server();
  CHECK(f.transport.wait_for_requests(5 * 300));
  f.recorder.stop(1h);
  CHECK(f.transport.requests().size() == 4000);
}

TEST_CASE("one namespace's events leave a place for those of others") {
  EventFixture f;
  for (int i = 0; i < 5000; ++i) f.send("m", claim_reference("c" + std::to_string(i), "greedy"));
  f.send("m", claim_reference("c", "modest"));
  CHECK(f.recorder.dropped() == 4000);
  f.start_with_working_server();
  REQUIRE(f.transport.wait_for_requests(301));
  CHECK(f.request(1).target.find("/modest/") != std::string::npos);
  // The rest has a pace, and waits for nobody else.
  CHECK(f.transport.requests().size() == 301);
  f.sent("n");
  f.clock.advance(10s);
  REQUIRE(f.transport.wait_for_requests(402));
  CHECK(f.transport.requests().size() == 402);
  // The places are free again.
  const auto send_more = [&](int count) {
    for (int i = 0; i < count; ++i) {
      f.send("more", claim_reference("c" + std::to_string(i), "greedy"));
    }
  };
  send_more(390);
  CHECK(f.recorder.dropped() == 4000);
  send_more(500);
  CHECK(f.recorder.dropped() > 4000);
}

TEST_CASE("what a namespace's pace holds back is sent, and what has no place is told") {
  EventFixture f;
  std::vector<std::string> dropped;
  f.recorder.on_dropped([&](const ObjectReference& about, std::string_view, std::string_view) {
    dropped.push_back(about.ns + "/" + about.name);
  });
  for (int i = 0; i < 1010; ++i) f.send("m", claim_reference("c" + std::to_string(i), "greedy"));
  f.start_with_working_server();
  std::size_t sent = 300;
  REQUIRE(f.transport.wait_for_requests(sent));
  for (int i = 0; i < 7; ++i) {
    f.clock.advance(10s);
    REQUIRE(f.transport.wait_for_requests(sent += 100));
  }
  f.recorder.stop(1h);
  CHECK(f.transport.requests().size() == 1000);
  REQUIRE(dropped.size() == 10);
  CHECK(dropped.front() == "greedy/c1000");
}

TEST_CASE("namespaces take turns with their events, warnings or not") {
  EventFixture f;
  EventType type = EventType::kWarning;
  SUBCASE("warnings") {}
  SUBCASE("normal ones") { type = EventType::kNormal; }
  for (int i = 0; i < 100; ++i) {
    f.send("m", claim_reference("c" + std::to_string(i), "greedy"), type);
  }
  f.send("m", claim_reference("c", "modest"), type);
  f.send("m", claim_reference("d", "modest"), type);
  f.start_with_working_server();
  REQUIRE(f.transport.wait_for_requests(4));
  CHECK(f.request(1).target.find("/modest/") != std::string::npos);
  CHECK(f.request(3).target.find("/modest/") != std::string::npos);
}

TEST_CASE("an event about a volume counts for the namespace that is worked for") {
  EventFixture f;
  const auto volume = [](int number) {
    return ObjectReference{.kind = "PersistentVolume",
                           .api_version = "v1",
                           .ns = "",
                           .name = "pv-" + std::to_string(number),
                           .uid = std::to_string(number)};
  };
  {
    const OnBehalfOf tenant("greedy");
    for (int i = 0; i < 1500; ++i) f.send("m", volume(i));
  }
  CHECK(f.recorder.dropped() == 500);
  const OnBehalfOf tenant("modest");
  f.send("m", volume(5000));
  CHECK(f.recorder.dropped() == 500);
  f.start_with_working_server();
  REQUIRE(f.transport.wait_for_requests(2));
  CHECK(f.request(1).body.find("pv-5000") != std::string::npos);
}

TEST_CASE("a namespace whose events the server limits holds up no other") {
  EventFixture f;
  f.transport.on("POST", "/greedy/events").always([](const Request&) {
    return Response{.status = 429, .body = "too many"};
  });
  for (int i = 0; i < 100; ++i) f.send("m", claim_reference("c" + std::to_string(i), "greedy"));
  for (int i = 0; i < 50; ++i) f.send("m", claim_reference("c" + std::to_string(i), "modest"));
  f.start_with_working_server();
  REQUIRE(f.transport.wait_for_requests(51));
  std::size_t refused = 0;
  for (const Request& request : f.transport.requests()) {
    if (request.target.find("/greedy/") != std::string::npos) ++refused;
  }
  CHECK(refused == 1);
}

TEST_CASE("normal events give way to a burst of work, and warnings overtake them") {
  EventFixture f;
  std::size_t recorded = 0;
  const auto record = [&] {
    f.send("m", claim_reference("n" + std::to_string(recorded++)), EventType::kNormal);
  };
  while (recorded < 100) record();
  f.start_with_working_server();
  REQUIRE(f.transport.wait_for_requests(20));
  f.send("m", claim_reference("w"));
  REQUIRE(f.transport.wait_for_requests(21));
  CHECK(json::parse(f.request(20).body)["type"] == "Warning");
  const auto step = [&](bool busy, std::size_t expected) {
    if (busy) record();
    f.clock.advance(200ms);
    REQUIRE(f.transport.wait_for_requests(expected));
    CHECK(f.transport.requests().size() == expected);
  };
  std::size_t sent = 21;
  while (sent < 70) step(true, ++sent);                 // 5 per second
  for (int i = 0; i < 6; ++i) step(i < 3, sent += 4);   // 20: they have waited for 10 s
  for (int i = 0; i < 3; ++i) step(false, sent += 10);  // 50: no more came for a second
  f.recorder.stop(1h);                                  // the rest without a pace
  CHECK(f.transport.requests().size() == recorded + 1);
}

TEST_CASE("a normal event that still waits is replaced by the next one about the object") {
  EventFixture f;
  f.send("begins", claim_reference(), EventType::kNormal, "Provisioning");
  f.send("begins", claim_reference("other"), EventType::kNormal, "Provisioning");
  f.send("failed", claim_reference());
  f.send("done", claim_reference(), EventType::kNormal, "ProvisioningSucceeded");
  f.start_with_working_server();
  f.recorder.stop(1h);
  std::vector<std::string> sent;
  for (const Request& request : f.transport.requests()) {
    const auto event = json::parse(request.body);
    sent.push_back(event["involvedObject"]["name"].get<std::string>() + " " +
                   event["message"].get<std::string>());
  }
  CHECK(sent == std::vector<std::string>{"data failed", "data done", "other begins"});
}

TEST_CASE("stop sends what is queued") {
  EventFixture f;
  for (int i = 0; i < 20; ++i) f.send("m", claim_reference("c" + std::to_string(i)));
  f.start_with_working_server();
  f.recorder.stop(1h);
  CHECK(f.transport.requests().size() == 20);
  f.recorder.stop(1h);
  f.send("too late");
  CHECK(f.transport.requests().size() == 20);
  CHECK(f.recorder.dropped() == 1);
}

TEST_CASE("stop does not wait longer than its limit, whatever the server does") {
  SystemClock clock;
  FakeTransport transport;
  ApiClient client(transport, clock, {});
  EventRecorder recorder(client, clock, "c");
  auto& script = transport.on("POST", "/events");
  Duration limit = 50ms;
  SUBCASE("silent") { script.hang(); }
  SUBCASE("silent, no time given") {
    script.hang();
    limit = 0s;
  }
  SUBCASE("between two tries") {
    script.fail(ErrorCode::kUnavailable).fail(ErrorCode::kUnavailable);
  }
  recorder.event(claim_reference(), EventType::kWarning, "R", "1");
  recorder.event(claim_reference(), EventType::kWarning, "R", "2");
  recorder.start();
  REQUIRE(transport.wait_for_requests(1));
  const auto asked = std::chrono::steady_clock::now();
  recorder.stop(limit);
  CHECK(std::chrono::steady_clock::now() - asked < 60s);  // the request would hang for good
  CHECK(recorder.dropped() == 2);
}

TEST_CASE("a recorder that was never started, or is destroyed at once, ends quietly") {
  EventFixture never;
  never.send("m");
  never.recorder.stop(1s);
  CHECK(never.recorder.dropped() == 1);
  EventFixture at_once;
  at_once.start_with_working_server();
}
