// SPDX-License-Identifier: Apache-2.0
#include "k8s/reflector.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "unit/k8s/reflector_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;

TEST_CASE("the reflector lists the newest state in pages and watches from the list's version") {
  ReflectorFixture f;
  f.transport.on("GET", kList)
      .reply(200, list_of("100", {"a", "b"}, "token 1"))
      .reply(200, list_of("100", {"c"}));
  f.transport.on("GET", kWatch).stream({frame("ADDED", "d", "101")});
  CHECK(f.step() == 0s);
  CHECK(std::holds_alternative<Reflector::Listing>(f.reflector.state()));
  CHECK(f.step() == 0s);
  CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
  CHECK(f.sink.take() == Calls{"begin", "item a", "item b", "item c", "end"});
  CHECK(parameter(f.transport, 0, "resourceVersion") == "<none>");
  CHECK(parameter(f.transport, 0, "limit") == "250");
  CHECK(parameter(f.transport, 1, "continue") == "token%201");
  CHECK(parameter(f.transport, 1, "resourceVersion") == "<none>");

  CHECK(f.step() == 0s);
  CHECK(parameter(f.transport, 2, "resourceVersion") == "100");
  CHECK(parameter(f.transport, 2, "allowWatchBookmarks") == "true");
  CHECK(f.sink.take() == Calls{"applied d"});
  CHECK(f.reflector.stats().lists == 1);
  CHECK(f.reflector.stats().watches == 1);
  CHECK(f.reflector.stats().events == 1);
  CHECK(f.reflector.stats().failures == 0);
}

TEST_CASE("watch timeouts are spread over 300 to 600 seconds") {
  ReflectorFixture f;
  f.list_at("1");
  auto& script = f.transport.on("GET", kWatch);
  int lowest = 1000;
  int highest = 0;
  for (int i = 0; i < 200; ++i) {
    script.stream({frame("BOOKMARK", "", "2")});
    f.step();
    const int timeout = std::stoi(f.last("timeoutSeconds"));
    lowest = std::min(lowest, timeout);
    highest = std::max(highest, timeout);
  }
  CHECK(lowest >= 300);
  CHECK(lowest < 350);
  CHECK(highest <= 600);
  CHECK(highest > 550);
}

TEST_CASE("selectors, namespace and metadata mode are asked for in lists and watches") {
  ReflectorFixture f({.resource = kNodes,
                      .label_selector = "app=x,!y",
                      .field_selector = "spec.unschedulable=false",
                      .metadata_only = true,
                      .page_size = 7});
  f.transport.on("GET", "limit=7").reply(200, list_of("5", {}, "t")).reply(200, list_of("5"));
  f.transport.on("GET", kWatch).stream({frame("BOOKMARK", "", "6")});
  f.step();
  f.step();
  f.step();
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(parameter(f.transport, i, "labelSelector") == "app%3Dx%2C%21y");
    CHECK(parameter(f.transport, i, "fieldSelector") == "spec.unschedulable%3Dfalse");
    CHECK(f.transport.requests()[i].accept.find("PartialObjectMetadata") != std::string::npos);
  }
  ReflectorFixture namespaced({.resource = kPods, .ns = "team"});
  namespaced.transport.on("GET", "/api/v1/namespaces/team/pods").reply(200, list_of("1"));
  namespaced.step();
  CHECK(namespaced.transport.unexpected() == 0);
}

TEST_CASE("events arrive in order, and the next watch goes on from the last version") {
  ReflectorFixture f;
  f.list_at("10");
  f.transport.on("GET", kWatch)
      .stream(
          {frame("ADDED", "a", "11"), frame("MODIFIED", "a", "12") + frame("DELETED", "a", "13")})
      .stream({frame("BOOKMARK", "", "20")})
      .stream({frame("ADDED", "b", "21")});
  CHECK(f.step() == 0s);
  CHECK(f.sink.take() == Calls{"applied a", "applied a", "deleted a"});
  CHECK(f.step() == 0s);
  CHECK(f.last("resourceVersion") == "13");
  CHECK(f.sink.take().empty());
  CHECK(f.step() == 0s);
  CHECK(f.last("resourceVersion") == "20");
  CHECK(f.reflector.stats().lists == 1);
  CHECK(f.reflector.stats().events == 4);
}

TEST_CASE("frames are put together from chunks that are cut anywhere") {
  ReflectorFixture f;
  f.list_at("10");
  const std::string bytes = frame("ADDED", "größe-日本", "11") + frame("DELETED", "b", "12");
  std::vector<std::string> chunks;
  for (const char c : bytes) chunks.emplace_back(1, c);
  f.transport.on("GET", kWatch).stream(chunks);
  f.step();
  CHECK(f.sink.take() == Calls{"applied größe-日本", "deleted b"});
}

TEST_CASE("an expired version leads to a relist at once") {
  ReflectorFixture f;
  f.list_at("10");
  SUBCASE("as HTTP 410") { f.transport.on("GET", kWatch).reply(410, status(410, "Expired")); }
  SUBCASE("as HTTP 410 without a Status") { f.transport.on("GET", kWatch).reply(410, "gone"); }
  SUBCASE("as an ERROR frame") {
    f.transport.on("GET", kWatch).stream({error_frame(410, "Expired")});
  }
  SUBCASE("as an ERROR frame after events") {
    f.transport.on("GET", kWatch).stream({frame("ADDED", "a", "11"), error_frame(410, "Gone")});
  }
  SUBCASE("as an ERROR frame that only has the reason") {
    f.transport.on("GET", kWatch).stream({error_frame(0, "Expired")});
  }
  CHECK(f.step() == 0s);
  CHECK(std::holds_alternative<Reflector::Empty>(f.reflector.state()));
  CHECK(f.reflector.stats().failures == 1);
  f.sink.calls.clear();
  f.transport.on("GET", kList).reply(200, list_of("50", {"x"}));
  CHECK(f.step() == 0s);
  CHECK(f.last("resourceVersion") == "<none>");
  CHECK(f.last("limit") == "250");
  CHECK(f.sink.take() == Calls{"begin", "item x", "end"});
}

TEST_CASE("a server that keeps saying expired is not hammered") {
  ReflectorFixture f;
  f.list_at("10");
  f.transport.on("GET", kWatch)
      .reply(410)
      .reply(410)
      .stream({frame("ADDED", "a", "60")})
      .reply(410);
  f.transport.on("GET", kList).reply(200, list_of("50")).reply(200, list_of("51"));
  CHECK(f.step() == 0s);     // watch: expired, at once
  CHECK(f.step() == 0s);     // list
  CHECK(f.step() >= 800ms);  // watch: expired again
  CHECK(f.step() == 0s);
  CHECK(f.step() == 0s);  // watch with an event
  CHECK(f.step() == 0s);  // expired again, after progress: at once
}

TEST_CASE("a list is never asked for at a version, whatever led to it") {
  ReflectorFixture f;
  f.list_at("900");
  auto& script = f.transport.on("GET", kWatch);
  SUBCASE("a failure") { script.reply(401); }
  SUBCASE("a version that the server has not reached") {
    script.reply_retry_after(504, 1s, status(504, "Timeout", "ResourceVersionTooLarge"));
  }
  SUBCASE("a version that the server does not understand") { script.reply(400); }
  f.step();
  f.transport.on("GET", kList)
      .reply_retry_after(504, 1s, status(504, "Timeout", "ResourceVersionTooLarge"))
      .reply(200, list_of("40"));
  CHECK(f.step() > 0s);
  CHECK(f.last("resourceVersion") == "<none>");
  CHECK(f.step() == 0s);
  CHECK(f.last("resourceVersion") == "<none>");
  CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
}

TEST_CASE("an expired continue token drops what was collected and lists once without pages") {
  ReflectorFixture f;
  json expired = json::parse(status(410, "Expired"));
  expired["metadata"]["continue"] = "inconsistent";
  f.transport.on("GET", kList)
      .reply(200, list_of("100", {"a", "b"}, "t1"))
      .reply(410, expired.dump());
  CHECK(f.step() == 0s);
  CHECK(f.step() == 0s);
  CHECK(std::holds_alternative<Reflector::Empty>(f.reflector.state()));
  f.transport.on("GET", "/pods").reply(200, list_of("120", {"b", "c"}));
  CHECK(f.step() == 0s);
  CHECK(f.last("limit") == "<none>");
  CHECK(f.last("continue") == "<none>");
  CHECK(f.sink.take() == Calls{"begin", "item a", "item b", "begin", "item b", "item c", "end"});

  // Later lists are in pages again.
  f.transport.on("GET", kWatch).reply(410);
  f.transport.on("GET", kList).reply(200, list_of("130"));
  f.step();
  f.step();
  CHECK(f.last("limit") == "250");
}

TEST_CASE("a list in one piece that fails is asked for in pages again") {
  ReflectorFixture f;
  f.transport.on("GET", kList).reply(200, list_of("100", {"a"}, "t1")).reply(410);
  f.step();
  f.step();
  f.transport.on("GET", "/pods").fail(ErrorCode::kTimeout).reply(200, list_of("120"));
  CHECK(f.step() >= 800ms);
  CHECK(f.last("limit") == "<none>");
  CHECK(f.step() == 0s);
  CHECK(f.last("limit") == "250");
}

TEST_CASE("a page that could not be had is asked for again, not the whole list") {
  ReflectorFixture f;
  auto& script = f.transport.on("GET", kList);
  script.reply(200, list_of("100", {"a"}, "t1"));
  SUBCASE("timeout") { script.fail(ErrorCode::kTimeout); }
  SUBCASE("refused") {
    script.run([](const auto&, const auto*, const auto&) -> Result<Response> {
      return Error{.code = ErrorCode::kUnavailable, .reason = std::string(kConnectFailed)};
    });
  }
  SUBCASE("500") { script.reply(500); }
  SUBCASE("429") { script.reply(429); }
  SUBCASE("not JSON") { script.reply(200, "<html>"); }
  script.reply(200, list_of("100", {"b"}));
  CHECK(f.step() == 0s);
  CHECK(f.step() >= 800ms);
  CHECK(f.step() == 0s);
  CHECK(f.last("continue") == "t1");
  CHECK(f.sink.take() == Calls{"begin", "item a", "item b", "end"});
}

TEST_CASE("a first list that fails is repeated with back-off") {
  ReflectorFixture f;
  auto& script = f.transport.on("GET", kList);
  SUBCASE("timeout") { script.fail(ErrorCode::kTimeout); }
  SUBCASE("unauthorized") { script.reply(401); }
  SUBCASE("forbidden") { script.reply(403, status(403, "Forbidden")); }
  SUBCASE("not found") { script.reply(404); }
  SUBCASE("500") { script.reply(500); }
  SUBCASE("429 without a time") { script.reply(429); }
  SUBCASE("not JSON") { script.reply(200, "<html>"); }
  SUBCASE("no version") { script.reply(200, R"({"items":[]})"); }
  SUBCASE("an empty version") { script.reply(200, list_of("")); }
  SUBCASE("version 0, from which a watch would be another thing") {
    script.reply(200, list_of("0"));
  }
  SUBCASE("metadata of a wrong type") { script.reply(200, R"({"metadata":7,"items":[]})"); }
  SUBCASE("items of a wrong type") {
    script.reply(200, R"({"metadata":{"resourceVersion":"5"},"items":{}})");
  }
  script.reply(200, list_of("7"));
  const Duration wait = f.step();
  CHECK(wait >= 800ms);
  CHECK(wait < 1600ms);
  CHECK(std::holds_alternative<Reflector::Empty>(f.reflector.state()));
  CHECK(f.step() == 0s);
  CHECK(f.sink.take() == Calls{"begin", "end"});
  CHECK(f.reflector.stats().failures == 1);
}

TEST_CASE("a list without items is an empty list") {
  ReflectorFixture f;
  f.transport.on("GET", kList).reply(200, R"({"metadata":{"resourceVersion":"5"},"items":null})");
  CHECK(f.step() == 0s);
  CHECK(f.sink.take() == Calls{"begin", "end"});
}

TEST_CASE(
    "a watch that does not start for want of a server or of capacity starts again unchanged") {
  ReflectorFixture f;
  f.list_at("10");
  auto& script = f.transport.on("GET", kWatch);
  SUBCASE("refused") {
    script.run([](const auto&, const auto*, const auto&) -> Result<Response> {
      return Error{.code = ErrorCode::kUnavailable, .reason = std::string(kConnectFailed)};
    });
  }
  SUBCASE("reset") { script.fail(ErrorCode::kUnavailable); }
  SUBCASE("timeout") { script.fail(ErrorCode::kTimeout); }
  SUBCASE("429") { script.reply(429, status(429, "TooManyRequests")); }
  SUBCASE("429 as an ERROR frame") { script.stream({error_frame(429, "TooManyRequests")}); }
  SUBCASE("ended at once, without an event") { script.stream({}); }
  script.stream({frame("ADDED", "a", "11")});
  CHECK(f.step() >= 800ms);
  CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
  CHECK(f.step() == 0s);
  CHECK(f.last_was_watch());
  CHECK(f.last("resourceVersion") == "10");
  CHECK(f.reflector.stats().lists == 1);
  CHECK(f.reflector.stats().failures == 1);
}

TEST_CASE("Retry-After is honoured up to a bound") {
  ReflectorFixture f;
  f.list_at("10");
  f.transport.on("GET", kWatch).reply_retry_after(429, 17s).reply_retry_after(429, 3600s);
  CHECK(f.step() == 17s);
  CHECK(f.step() == 120s);
}

TEST_CASE("a watch that is refused for another reason leads to a list") {
  ReflectorFixture f;
  f.list_at("10");
  auto& script = f.transport.on("GET", kWatch);
  SUBCASE("unauthorized") { script.reply(401); }
  SUBCASE("forbidden") { script.reply(403); }
  SUBCASE("not found") { script.reply(404); }
  SUBCASE("bad request") { script.reply(400); }
  f.transport.on("GET", kList).reply(200, list_of("20"));
  CHECK(f.step() >= 800ms);
  CHECK(std::holds_alternative<Reflector::Empty>(f.reflector.state()));
  CHECK(f.step() == 0s);
  CHECK_FALSE(f.last_was_watch());
  CHECK(f.last("resourceVersion") == "<none>");
  CHECK(f.last("limit") == "250");
}

TEST_CASE("a server in trouble is asked for a watch again, and for everything only if that lasts") {
  ReflectorFixture f;
  f.list_at("10");
  int code = 0;
  std::string frame;
  SUBCASE("500") { code = 500; }
  SUBCASE("503") { code = 503; }
  SUBCASE("ERROR frame 500") { frame = error_frame(500, "InternalError"); }
  SUBCASE("ERROR frame without a code") {
    frame = R"({"type":"ERROR","object":{"kind":"Status"}})"
            "\n";
  }
  auto& script = f.transport.on("GET", kWatch);
  for (int i = 0; i < 6; ++i) {
    if (code != 0) {
      script.reply(code, "<html>bad gateway</html>", "text/html");
    } else {
      script.stream({frame});
    }
  }
  for (int i = 0; i < 5; ++i) {
    CHECK(f.step() >= 800ms);
    CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
    CHECK(f.last("resourceVersion") == "10");
  }
  CHECK(f.step() >= 800ms);
  CHECK(std::holds_alternative<Reflector::Empty>(f.reflector.state()));
}

TEST_CASE("a cut stream goes on from its last event") {
  ReflectorFixture f;
  f.list_at("10");
  const auto cut_after = [&](Duration lived, std::vector<std::string> frames, ErrorCode code) {
    f.transport.on("GET", kWatch)
        .run([&f, lived, frames = std::move(frames), code](const auto&, const ChunkSink* sink,
                                                           const auto&) -> Result<Response> {
          for (const auto& bytes : frames) (*sink)(bytes);
          f.clock.advance(lived);
          return Error{.code = code, .message = "cut"};
        });
  };
  SUBCASE("after a while: at once") {
    cut_after(90s, {frame("ADDED", "a", "15")}, ErrorCode::kUnavailable);
    CHECK(f.step() == 0s);
  }
  SUBCASE("within a second: after a back-off") {
    cut_after(500ms, {frame("ADDED", "a", "15")}, ErrorCode::kUnavailable);
    CHECK(f.step() >= 800ms);
  }
  SUBCASE("silent for longer than the idle limit") {
    cut_after(400s, {frame("ADDED", "a", "15")}, ErrorCode::kTimeout);
    CHECK(f.step() == 0s);
  }
  SUBCASE("in the middle of a frame") {
    const auto half = frame("ADDED", "b", "16").substr(0, 20);
    cut_after(90s, {frame("ADDED", "a", "15"), half}, ErrorCode::kUnavailable);
    CHECK(f.step() == 0s);
  }
  CHECK(f.sink.take() == Calls{"applied a"});
  f.transport.on("GET", kWatch).stream({frame("ADDED", "b", "16")});
  f.step();
  CHECK(f.last_was_watch());
  CHECK(f.last("resourceVersion") == "15");
}

TEST_CASE("an idle limit bounds silent watches") {
  ReflectorFixture f;
  f.list_at("10");
  f.transport.on("GET", kWatch).stream({frame("BOOKMARK", "", "11")});
  f.step();
  const auto request = f.transport.requests().back();
  const auto timeout = std::chrono::seconds(std::stoi(f.last("timeoutSeconds")));
  CHECK(request.idle_timeout > timeout);
  CHECK(request.idle_timeout < timeout + 30s);
}

TEST_CASE("a frame that makes no sense leads to a relist, never further") {
  ReflectorFixture f;
  f.list_at("10");
  std::string bad;
  SUBCASE("not JSON") { bad = "{nonsense"; }
  SUBCASE("not UTF-8") { bad = "{\"type\":\"ADDED\",\"object\":{\"x\":\"\xff\"}}"; }
  SUBCASE("not an object") { bad = "[1,2]"; }
  SUBCASE("no type") { bad = R"({"object":{"metadata":{"resourceVersion":"12"}}})"; }
  SUBCASE("type is no text") {
    bad = R"({"type":1,"object":{"metadata":{"resourceVersion":"12"}}})";
  }
  SUBCASE("no object") { bad = R"({"type":"ADDED"})"; }
  SUBCASE("object is null") { bad = R"({"type":"ADDED","object":null})"; }
  SUBCASE("no version") { bad = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"; }
  SUBCASE("version is a number") {
    bad = R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":12}}})";
  }
  SUBCASE("unknown type") {
    bad = R"({"type":"RENAMED","object":{"metadata":{"name":"a","resourceVersion":"12"}}})";
  }
  SUBCASE("an ERROR that is no Status") { bad = R"({"type":"ERROR","object":"boom"})"; }
  SUBCASE("deep nesting") { bad = std::string(100'000, '[') + std::string(100'000, ']'); }
  f.transport.on("GET", kWatch)
      .stream({frame("ADDED", "a", "11"), bad + "\n", frame("ADDED", "b", "13")});
  f.transport.on("GET", kList).reply(200, list_of("20", {"a", "b"}));
  CHECK(f.step() >= 800ms);
  CHECK(f.sink.take() == Calls{"applied a"});
  CHECK(f.reflector.stats().events == 1);  // the one that made sense
  CHECK(f.step() == 0s);
  CHECK(f.sink.take() == Calls{"begin", "item a", "item b", "end"});
}

TEST_CASE(
    "back-off doubles from 0.8 s to 30 s with jitter and is forgotten after two quiet minutes") {
  ReflectorFixture f;
  f.transport.on("GET", kList).always([](const auto&) { return Response{.status = 500}; });
  for (const Duration base : {800ms, 1600ms, 3200ms, 6400ms, 12800ms, 25600ms, 30000ms, 30000ms}) {
    const Duration wait = f.step();
    CHECK(wait >= base);
    CHECK(wait < 2 * base);
    f.clock.advance(wait);
  }
  f.clock.advance(121s);
  CHECK(f.step() < 1600ms);
}

TEST_CASE("running ends soon after the stop, whatever is under way") {
  SystemClock clock;
  FakeTransport transport;
  ApiClient client(transport, clock, {});
  RecordingSink sink;
  Reflector reflector(client, clock, {.resource = kPods}, sink);
  std::size_t requests = 1;
  SUBCASE("a list") { transport.on("GET", kList).hang(); }
  SUBCASE("a further page") {
    transport.on("GET", kList).reply(200, list_of("1", {"a"}, "t")).hang();
    requests = 2;
  }
  SUBCASE("a watch") {
    transport.on("GET", kList).reply(200, list_of("1"));
    transport.on("GET", kWatch).stream_and_hang({frame("ADDED", "a", "2")});
    requests = 2;
  }
  SUBCASE("a back-off") { transport.on("GET", kList).reply_retry_after(401, 60s); }
  std::stop_source stop;
  auto done = std::async(std::launch::async, [&] { reflector.run(stop.get_token()); });
  REQUIRE(transport.wait_for_requests(requests));
  stop.request_stop();
  // A hang does not end at all, nor the back-off so early.
  REQUIRE(done.wait_for(40s) == std::future_status::ready);
  CHECK(transport.requests().size() == requests);
}

TEST_CASE("the figures tell when the server was last heard, and what the sink is busy with") {
  ReflectorFixture f;
  const auto& stats = f.reflector.stats();
  CHECK(stats.last_contact.load() == TimePoint::min());
  f.transport.on("GET", kList).reply(200, list_of("10"));
  f.transport.on("GET", kWatch)
      .stream({frame("BOOKMARK", "", "11"), frame("ADDED", "a", "12")})
      .fail(ErrorCode::kUnavailable);
  f.step();
  CHECK(stats.last_contact.load() == f.clock.now());
  f.clock.advance(50s);
  f.step();
  const TimePoint heard = f.clock.now();
  CHECK(stats.last_contact.load() == heard);
  CHECK(stats.events == 1);
  f.clock.advance(20s);
  f.step();  // no answer: nothing heard, but the thread gets on
  CHECK(stats.last_contact.load() == heard);
  CHECK(stats.last_progress.load() == heard + 20s);
  CHECK(stats.in_sink_since.load() == TimePoint::max());
}
