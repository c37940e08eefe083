// SPDX-License-Identifier: Apache-2.0
#include "k8s/event_recorder.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "fakes/time_passes.h"
#include "k8s/event_correlator.h"
#include "unit/k8s/event_recorder_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;
using namespace std::chrono_literals;
using nlohmann::json;

TEST_CASE("an event is stored as the API wants it") {
  EventFixture f;
  f.start_with_working_server();
  const json event = f.sent("no space");
  CHECK(f.request(0).method == "POST");
  CHECK(f.request(0).target == "/api/v1/namespaces/team/events");
  CHECK(event["kind"] == "Event");
  CHECK(event["apiVersion"] == "v1");
  const std::string name = event["metadata"]["name"];
  CHECK(name.starts_with("data."));
  CHECK(name.find_first_not_of("0123456789abcdef", 5) == std::string::npos);
  CHECK(event["metadata"]["namespace"] == "team");
  CHECK(event["involvedObject"] == json{{"kind", "PersistentVolumeClaim"},
                                        {"apiVersion", "v1"},
                                        {"namespace", "team"},
                                        {"name", "data"},
                                        {"uid", "uid-data"},
                                        {"resourceVersion", "7"}});
  CHECK(event["type"] == "Warning");
  CHECK(event["reason"] == "ProvisioningFailed");
  CHECK(event["message"] == "no space");
  CHECK(event["count"] == 1);
  CHECK(event["firstTimestamp"] == format_rfc3339(f.clock.wall_now()));
  CHECK(event["lastTimestamp"] == event["firstTimestamp"]);
  CHECK(event["source"] == json{{"component", "rancher.io/local-path_host_uid"}});
  CHECK(event["reportingComponent"] == "rancher.io/local-path_host_uid");
  CHECK_FALSE(event.contains("eventTime"));
}

TEST_CASE("an event about a cluster-scoped object lives in the namespace default") {
  EventFixture f;
  f.start_with_working_server();
  f.send("x", {.kind = "PersistentVolume", .api_version = "v1", .ns = "", .name = "pv", .uid = "u"},
         EventType::kNormal);
  REQUIRE(f.transport.wait_for_requests(1));
  CHECK(f.request(0).target == "/api/v1/namespaces/default/events");
  const json event = json::parse(f.request(0).body);
  CHECK(event["metadata"]["namespace"] == "default");
  CHECK_FALSE(event["involvedObject"].contains("namespace"));
  CHECK_FALSE(event["involvedObject"].contains("resourceVersion"));
  CHECK(event["type"] == "Normal");
}

TEST_CASE("event names are valid and different whatever the object's name is") {
  EventFixture f;
  f.start_with_working_server();
  std::set<std::string> names;
  std::size_t n = 0;
  for (const std::string& object :
       {std::string("a"), std::string(253, 'a'), std::string(240, 'a'), std::string("Upper_Case"),
        std::string("system:node"), std::string(), std::string("a..b"), std::string("-a"),
        std::string("größe"), std::string("a/b")}) {
    CAPTURE(object);
    f.send("x", claim_reference(object));
    REQUIRE(f.transport.wait_for_requests(++n));
    const std::string name = json::parse(f.request(n - 1).body)["metadata"]["name"];
    CHECK(name.size() <= 253);
    CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos);
    CHECK(name.front() != '-');
    CHECK(name.find("..") == std::string::npos);
    CHECK(names.insert(name).second);
  }
  // The clock stands still, yet no name comes twice.
  for (int i = 0; i < 5; ++i) {
    f.send("message " + std::to_string(i));
    REQUIRE(f.transport.wait_for_requests(++n));
    CHECK(names.insert(json::parse(f.request(n - 1).body)["metadata"]["name"]).second);
  }
}

TEST_CASE("the same event again raises the count of the stored one") {
  EventFixture f;
  f.start_with_working_server();
  const json first = f.sent("no space");
  f.clock.advance(90s);
  const json second = f.sent("no space");
  CHECK(f.request(1).method == "PATCH");
  CHECK(f.request(1).target ==
        "/api/v1/namespaces/team/events/" + first["metadata"]["name"].get<std::string>());
  CHECK(f.request(1).content_type == "application/strategic-merge-patch+json");
  CHECK(second == json{{"count", 2},
                       {"lastTimestamp", format_rfc3339(f.clock.wall_now())},
                       {"message", "no space"}});
  CHECK(f.sent("no space")["count"] == 3);
}

TEST_CASE("the object's version does not make an event another one, all else does") {
  EventFixture f;
  f.start_with_working_server();
  f.sent("m");
  auto about = claim_reference();
  about.resource_version = "8";
  f.send("m", about);
  REQUIRE(f.transport.wait_for_requests(2));
  CHECK(f.request(1).method == "PATCH");
  std::size_t n = 2;
  const auto creates = [&](const ObjectReference& object, EventType type, const std::string& reason,
                           const std::string& message) {
    f.send(message, object, type, reason);
    REQUIRE(f.transport.wait_for_requests(++n));
    CHECK(f.request(n - 1).method == "POST");
  };
  creates(claim_reference(), EventType::kWarning, "ProvisioningFailed", "other");
  creates(claim_reference(), EventType::kWarning, "Other", "m");
  creates(claim_reference(), EventType::kNormal, "ProvisioningFailed", "m");
  creates(claim_reference("b"), EventType::kWarning, "ProvisioningFailed", "m");
  creates(claim_reference("data", "other"), EventType::kWarning, "ProvisioningFailed", "m");
  about.uid = "recreated";
  creates(about, EventType::kWarning, "ProvisioningFailed", "m");
}

TEST_CASE("an event that expired on the server is created anew and goes on counting") {
  EventFixture f;
  f.transport.on("PATCH", "/events").reply(404);
  f.start_with_working_server();
  const json first = f.sent("m");
  f.send("m");
  REQUIRE(f.transport.wait_for_requests(3));
  CHECK(f.request(1).method == "PATCH");
  CHECK(f.request(2).method == "POST");
  const json anew = json::parse(f.request(2).body);
  CHECK(anew["count"] == 2);
  CHECK(anew["firstTimestamp"] == first["firstTimestamp"]);
  CHECK(anew["metadata"]["name"] != first["metadata"]["name"]);
  f.sent("m");
  CHECK(f.request(3).method == "PATCH");
  CHECK(f.request(3).target.ends_with(anew["metadata"]["name"].get<std::string>()));
}

TEST_CASE("many similar events become one combined event") {
  EventFixture f;
  f.start_with_working_server();
  for (int i = 1; i <= 9; ++i) {
    CHECK(f.sent("message " + std::to_string(i))["message"] == "message " + std::to_string(i));
  }
  const json combined = f.sent("message 10");
  CHECK(f.request(9).method == "POST");
  CHECK(combined["message"] == "(combined from similar events): message 10");
  const json again = f.sent("message 11");
  CHECK(f.request(10).method == "PATCH");
  CHECK(again["message"] == "(combined from similar events): message 11");
  CHECK(again["count"] == 2);
  // Another reason is another group.
  f.send("message 12", claim_reference(), EventType::kWarning, "Other");
  REQUIRE(f.transport.wait_for_requests(12));
  CHECK(json::parse(f.request(11).body)["message"] == "message 12");
  // After a quiet interval they are told apart again.
  f.clock.advance(601s);
  CHECK(f.sent("message 13")["message"] == "message 13");
}

TEST_CASE("the interval of similar events rolls on with each of them") {
  FakeClock clock;
  EventCorrelator correlator(clock);
  EventReport report{.about = claim_reference(), .reason = "R"};
  for (int i = 1; i <= 12; ++i) {
    report.message = std::to_string(i);
    const auto write = correlator.correlate(report);
    REQUIRE(write.has_value());
    CHECK(write->event.message.starts_with("(combined") == (i >= 10));
    clock.advance(500s);
  }
}

TEST_CASE("a flood about one object is cut off after 25, then one per 300 seconds") {
  FakeClock clock;
  EventCorrelator correlator(clock);
  EventReport report{.about = claim_reference(), .reason = "R", .message = "m"};
  int passed = 0;
  for (int i = 0; i < 100; ++i) passed += correlator.correlate(report).has_value() ? 1 : 0;
  CHECK(passed == 25);
  clock.advance(299s);
  CHECK_FALSE(correlator.correlate(report).has_value());
  clock.advance(1s);
  const auto write = correlator.correlate(report);
  REQUIRE(write.has_value());
  CHECK(write->event.count == 102);  // what was held back is counted
  CHECK_FALSE(correlator.correlate(report).has_value());

  // Other types and other objects have their own allowance; other reasons and messages do not.
  report.type = EventType::kWarning;
  CHECK(correlator.correlate(report).has_value());
  report.type = EventType::kNormal;
  report.reason = "Other";
  report.message = "other";
  CHECK_FALSE(correlator.correlate(report).has_value());
  report.about = claim_reference("b");
  CHECK(correlator.correlate(report).has_value());
  clock.advance(24h);
  passed = 0;
  for (int i = 0; i < 100; ++i) passed += correlator.correlate(report).has_value() ? 1 : 0;
  CHECK(passed == 25);
}

TEST_CASE("what the correlator remembers is bounded, oldest first forgotten") {
  FakeClock clock;
  EventCorrelator correlator(clock, 3);
  const auto count = [&](const std::string& name) {
    const EventReport report{.about = claim_reference(name), .reason = "R", .message = "m"};
    const auto write = correlator.correlate(report);
    correlator.stored(*write, {"team", name + ".1"});
    return write->event.count;
  };
  CHECK(count("a") == 1);
  CHECK(count("b") == 1);
  CHECK(count("c") == 1);
  CHECK(count("a") == 2);  // now the most recent
  CHECK(count("d") == 1);  // drops b
  CHECK(count("a") == 3);
  CHECK(count("b") == 1);
}

TEST_CASE("equal events that wait together become one request") {
  EventFixture f;
  f.send("m");
  f.clock.advance(5s);
  f.send("m");
  f.send("other");
  f.send("m");
  f.start_with_working_server();
  REQUIRE(f.transport.wait_for_requests(2));
  f.recorder.stop(1s);
  CHECK(f.transport.requests().size() == 2);
  const json event = json::parse(f.request(0).body);
  CHECK(event["count"] == 3);
  CHECK(event["firstTimestamp"] == format_rfc3339(f.clock.wall_now() - 5s));
  CHECK(event["lastTimestamp"] == format_rfc3339(f.clock.wall_now()));
}

TEST_CASE("messages are bounded without cutting characters, combined ones too") {
  EventFixture f;
  f.start_with_working_server();
  const std::string long_message = "x" + [] {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "日";
    return text;
  }();
  const std::string sent = f.sent(long_message)["message"];
  CHECK(sent.size() <= 1024);
  CHECK(sent.size() > 1020);
  CHECK(long_message.starts_with(sent));
  CHECK(json::accept("\"" + sent + "\""));
  for (int i = 0; i < 10; ++i) f.sent(std::to_string(i) + long_message);
  const std::string combined = json::parse(f.request(10).body)["message"];
  CHECK(combined.starts_with("(combined"));
  CHECK(combined.size() <= 1024);
  // Bytes that are no UTF-8 are no reason to fail.
  CHECK_FALSE(f.sent("bad \xff\xfe").empty());
}

TEST_CASE("an event that the API server refuses is dropped, and the next one is sent") {
  EventFixture f;
  auto& script = f.transport.on("POST", "/events");
  SUBCASE("namespace terminating") {
    script.reply(
        403,
        R"({"kind":"Status","reason":"Forbidden","message":"because it is being terminated"})");
  }
  SUBCASE("invalid") { script.reply(422); }
  SUBCASE("no JSON") { script.reply(200, "<html>"); }
  f.start_with_working_server();
  f.sent("first");
  f.sent("second");
  CHECK(f.transport.requests().size() == 2);
  CHECK(f.recorder.dropped() == 1);
}

TEST_CASE("an event is sent again while no answer comes, under one name") {
  EventFixture f;
  auto& script = f.transport.on("POST", "/events");
  script.fail(ErrorCode::kTimeout).fail(ErrorCode::kUnavailable);
  SUBCASE("and is stored") {}
  SUBCASE("and was stored the first time already") {
    script.reply(409, R"({"kind":"Status","reason":"AlreadyExists"})");
  }
  f.start_with_working_server();
  f.send("m");
  CHECK(as_time_passes(f.clock, 1s, [&] { return f.transport.requests().size() == 3; }));
  const std::string name = json::parse(f.request(0).body)["metadata"]["name"];
  CHECK(json::parse(f.request(1).body)["metadata"]["name"] == name);
  CHECK(json::parse(f.request(2).body)["metadata"]["name"] == name);
  f.sent("m");
  CHECK(f.request(3).method == "PATCH");
  CHECK(f.request(3).target.ends_with(name));
  CHECK(f.recorder.dropped() == 0);
}

TEST_CASE("an event is sent again soon when the server is in trouble") {
  for (const int status : {429, 500, 503, 504}) {
    EventFixture f;
    f.transport.on("POST", "/events").reply(status).reply(status);
    f.start_with_working_server();
    f.send("m");
    CHECK(as_time_passes(f.clock, 1s, [&] { return f.transport.requests().size() == 3; }));
  }
}

TEST_CASE("a patch without an answer is repeated, and may turn into a create") {
  EventFixture f;
  f.transport.on("PATCH", "/events").fail(ErrorCode::kTimeout).reply(404);
  f.start_with_working_server();
  const json first = f.sent("m");
  f.send("m");
  CHECK(as_time_passes(f.clock, 1s, [&] { return f.transport.requests().size() == 4; }));
  CHECK(f.request(1).method == "PATCH");
  CHECK(f.request(2).method == "PATCH");
  CHECK(f.request(3).method == "POST");
  CHECK(json::parse(f.request(3).body)["count"] == 2);
}

TEST_CASE("an event that is refused for now is stored later, and holds up no other one") {
  EventFixture f;
  auto& script = f.transport.on("POST", "/events");
  SUBCASE("no right, as an API server says that does not know its roles yet") { script.reply(403); }
  SUBCASE("credentials not accepted") { script.reply(401); }
  SUBCASE("namespace not there yet") { script.reply(404); }
  SUBCASE("conflict") { script.reply(409); }
  SUBCASE("the name is taken") {
    script.reply(409, R"({"kind":"Status","reason":"AlreadyExists"})");
  }
  f.start_with_working_server();
  f.send("first");
  f.send("second");
  CHECK(as_time_passes(f.clock, 1s, [&] { return f.transport.requests().size() == 3; }));
  const auto sent = [&](std::size_t n) { return json::parse(f.request(n).body); };
  CHECK(sent(0)["message"] == "first");
  CHECK(sent(1)["message"] == "second");
  CHECK(sent(2)["message"] == "first");
  // It was not stored: the name may be another one's.
  CHECK(sent(2)["metadata"]["name"] != sent(0)["metadata"]["name"]);
  CHECK(f.recorder.dropped() == 0);
}

TEST_CASE("an event that happens again while it waits for another try is stored once") {
  EventFixture f;
  f.transport.on("POST", "/events").reply(403).reply(403);
  f.start_with_working_server();
  f.sent("m");
  f.send("m");
  f.send("m");
  CHECK(as_time_passes(f.clock, 1s, [&] { return f.transport.requests().size() == 3; }));
  CHECK(json::parse(f.request(2).body)["count"] == 3);
  f.sent("m");
  CHECK(f.request(3).method == "PATCH");
  CHECK(json::parse(f.request(3).body)["count"] == 4);
}

namespace {

/// What the hook of a recorder hears.
struct Heard {
  explicit Heard(EventRecorder& events) : recorder(events) {
    recorder.on_dropped(
        [this](const ObjectReference& about, std::string_view reason, std::string_view message) {
          MutexLock lock(mutex);
          all.push_back(about.uid + " " + std::string(reason) + " " + std::string(message));
        });
  }
  ~Heard() { recorder.stop(0s); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;
  std::vector<std::string> get() {
    MutexLock lock(mutex);
    return all;
  }
  EventRecorder& recorder;
  Mutex mutex;
  std::vector<std::string> all;
};

}  // namespace

TEST_CASE("an event that is never taken is tried for an hour, and its loss is told") {
  EventFixture f;
  Heard heard(f.recorder);
  Duration kept = 1h;
  f.transport.on("POST", "/events").always([&](const Request&) {
    return Response{.status = kept == 1h ? 403 : 404};
  });
  SUBCASE("for lack of a right") {}
  SUBCASE("for lack of its namespace, which comes soon or never") { kept = 20s; }
  f.recorder.start();
  const auto begun = f.clock.now();
  f.send("lost");
  CHECK(as_time_passes(f.clock, 5s, [&] { return !heard.get().empty(); }));
  CHECK(f.clock.now() - begun >= kept);
  CHECK(f.transport.requests().size() <= 80);
  CHECK(heard.get() == std::vector<std::string>{"uid-data ProvisioningFailed lost"});
  CHECK(f.recorder.dropped() == 1);
}

TEST_CASE("every event that will not be stored is told of") {
  EventFixture f;
  Heard heard(f.recorder);
  SUBCASE("invalid") {
    f.transport.on("POST", "/events").reply(422);
    f.start_with_working_server();
    f.send("m");
    CHECK(eventually(
        [&] { return heard.get() == std::vector<std::string>{"uid-data ProvisioningFailed m"}; }));
  }
  SUBCASE("one of a flood") {
    f.start_with_working_server();
    for (int i = 0; i < 25; ++i) f.sent("m");
    f.send("m");
    CHECK(eventually(
        [&] { return heard.get() == std::vector<std::string>{"uid-data ProvisioningFailed m"}; }));
  }
  SUBCASE("no place left") {
    for (int i = 0; i < 1001; ++i) f.send("m", claim_reference("c" + std::to_string(i)));
    f.start_with_working_server();
    CHECK(eventually(
        [&] { return heard.get() == std::vector<std::string>{"uid-c1000 ProvisioningFailed m"}; }));
  }
  SUBCASE("too many to tell them apart") {
    for (int i = 0; i < 1000 + 4001; ++i) f.send("m", claim_reference("c" + std::to_string(i)));
    f.start_with_working_server();
    CHECK(eventually([&] { return heard.get() == std::vector<std::string>{"  "}; }));
  }
  SUBCASE("but not what the newest one replaces") {
    f.send("begins", claim_reference(), EventType::kNormal);
    f.send("done", claim_reference(), EventType::kNormal);
    f.start_with_working_server();
    f.recorder.stop(1h);
    CHECK(heard.get().empty());
  }
}

TEST_CASE("a server in trouble is asked for all events together, less and less often") {
  EventFixture f;
  std::atomic<bool> in_trouble = true;
  f.transport.on("POST", "/events").always([&](const Request& request) {
    return Response{.status = in_trouble ? 503 : 201, .body = request.body};
  });
  for (int i = 0; i < 100; ++i) f.send("m", claim_reference("c" + std::to_string(i)));
  f.recorder.start();
  const auto end = f.clock.now() + 5min;
  CHECK(as_time_passes(f.clock, 1s, [&] { return f.clock.now() >= end; }));
  CHECK(f.transport.requests().size() <= 36);
  const std::size_t before = f.transport.requests().size();
  in_trouble = false;
  CHECK(as_time_passes(f.clock, 1s, [&] { return f.transport.requests().size() >= before + 100; }));
  f.recorder.stop(1h);
  CHECK(f.recorder.dropped() == 0);
}
