// SPDX-License-Identifier: Apache-2.0
#include "k8s/api_client.h"

#include <doctest/doctest.h>

#include <future>
#include <nlohmann/json.hpp>

#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "fakes/time_passes.h"
#include "k8s/rate_limiter.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::as_time_passes;
using lpp::testing::FakeClock;
using lpp::testing::FakeTransport;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

struct ApiClientFixture {
  FakeClock clock;
  FakeTransport transport;
  std::stop_source stop;
  ApiClient client{transport, clock, {.stop = stop.get_token()}};

  /// Runs a call on another thread and lets time pass until it returns.
  template <typename Call>
  auto run(const Call& call) {
    auto future = std::async(std::launch::async, call);
    const auto is_done = [&] { return future.wait_for(0s) == std::future_status::ready; };
    REQUIRE(as_time_passes(clock, 50ms, is_done));
    return future.get();
  }
};

std::string status_body(const std::string& reason, const std::string& message) {
  return json{{"kind", "Status"}, {"reason", reason}, {"message", message}}.dump();
}

}  // namespace

TEST_CASE_FIXTURE(ApiClientFixture, "each verb makes the request the API expects") {
  transport.on_any().always([](const auto&) { return Response{.status = 200, .body = "{}"}; });
  const json object = {{"a", 1}};
  CHECK(client.get(kPods, {"n", "p"}).ok());
  CHECK(client.create(kPersistentVolumes, "", object).ok());
  CHECK(client.update(kPersistentVolumeClaims, {"n", "c"}, object, "status").ok());
  CHECK(client.patch(kPods, {"n", "p"}, PatchType::kMerge, object).ok());
  CHECK(client.patch(kPods, {"n", "p"}, PatchType::kStrategicMerge, object).ok());
  CHECK(client.patch(kPods, {"n", "p"}, PatchType::kJson, json::array()).ok());
  CHECK(client.remove(kPods, {"n", "p"}).ok());
  CHECK(transport.lines() ==
        std::vector<std::string>{
            "GET /api/v1/namespaces/n/pods/p", "POST /api/v1/persistentvolumes",
            "PUT /api/v1/namespaces/n/persistentvolumeclaims/c/status",
            "PATCH /api/v1/namespaces/n/pods/p", "PATCH /api/v1/namespaces/n/pods/p",
            "PATCH /api/v1/namespaces/n/pods/p", "DELETE /api/v1/namespaces/n/pods/p"});
  const auto requests = transport.requests();
  CHECK(requests[0].body.empty());
  CHECK(requests[1].body == R"({"a":1})");
  CHECK(requests[1].content_type == "application/json");
  CHECK(requests[3].content_type == "application/merge-patch+json");
  CHECK(requests[4].content_type == "application/strategic-merge-patch+json");
  CHECK(requests[5].content_type == "application/json-patch+json");
  CHECK(requests[6].body.empty());
  CHECK(requests[0].timeout == 10s);
}

TEST_CASE_FIXTURE(ApiClientFixture, "a delete carries preconditions and the grace period") {
  transport.on("DELETE", "").reply(200).reply(202).reply(404);
  CHECK(client
            .remove(kPods, {"n", "p"},
                    {.uid = "u", .resource_version = "7", .grace_period_seconds = 0})
            .ok());
  CHECK(json::parse(transport.requests()[0].body) ==
        json{{"apiVersion", "v1"},
             {"kind", "DeleteOptions"},
             {"gracePeriodSeconds", 0},
             {"preconditions", {{"uid", "u"}, {"resourceVersion", "7"}}}});
  CHECK(client.remove(kPods, {"n", "p"}, {.uid = "u"}).ok());
  CHECK(json::parse(transport.requests()[1].body)["preconditions"] == json{{"uid", "u"}});
  CHECK(client.remove(kPods, {"n", "p"}).error().is(ErrorCode::kNotFound));
}

TEST_CASE_FIXTURE(ApiClientFixture, "a list's further pages carry no resource version") {
  transport.on_any().always([](const auto&) { return Response{.status = 200, .body = "{}"}; });
  (void)client.list(kPods, "n", {.label_selector = "a=b,c", .limit = 250, .resource_version = "0"});
  (void)client.list(kPods, "n", {.limit = 250, .continue_token = "t/+=", .resource_version = "0"});
  (void)client.list(kNodes, "", {.metadata_only = true});
  (void)client.list(kPods, "", {.field_selector = "metadata.name=x"});
  CHECK(transport.lines() ==
        std::vector<std::string>{
            "GET /api/v1/namespaces/n/pods?labelSelector=a%3Db%2Cc&limit=250&resourceVersion=0",
            "GET /api/v1/namespaces/n/pods?limit=250&continue=t%2F%2B%3D", "GET /api/v1/nodes",
            "GET /api/v1/pods?fieldSelector=metadata.name%3Dx"});
  CHECK(transport.requests()[0].accept == "application/json");
  CHECK(transport.requests()[2].accept ==
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
}

TEST_CASE_FIXTURE(ApiClientFixture,
                  "a write is answered with who the object is, in either format") {
  const json identity = {{"metadata", {{"name", "p"}, {"namespace", "n"}, {"uid", "u"}}}};
  json whole = identity;
  whole["metadata"]["labels"] = {{"a", "b"}};
  whole["spec"] = json::object();
  // The same in protobuf: PartialObjectMetadata, within what says so.
  const std::string bytes("k8s\0\x0a\x00\x12\x0b\x0a\x09\x0a\x01p\x1a\x01n\x2a\x01u", 19);
  transport.on("POST", "")
      .reply(201, whole.dump())
      .reply(201, bytes)
      .reply(201, bytes.substr(0, 18));
  const auto create = [&] { return client.create(kPods, "n", json::object(), Answer::kIdentity); };
  CHECK(create().value() == identity);
  CHECK(create().value()["metadata"] == identity["metadata"]);
  CHECK(create().error().is(ErrorCode::kInternal));
  CHECK(transport.requests()[0].accept ==
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
}

TEST_CASE_FIXTURE(ApiClientFixture, "text that is not UTF-8 is sent, replaced, not thrown") {
  transport.on_any().reply(201);
  CHECK(client
            .create(kEvents, "n",
                    {{"message",
                      "a\xff"
                      "b"}})
            .ok());
  CHECK(transport.requests()[0].body ==
        "{\"message\":\"a\xef\xbf\xbd"
        "b\"}");
}

TEST_CASE_FIXTURE(ApiClientFixture, "an answer that is no JSON object is an error with its begin") {
  for (const char* body : {"", "<html>login</html>", "[1]", "\"text\"", "{\"a\":", "null"}) {
    CAPTURE(body);
    transport.on_any().reply(200, body);
    const auto result = client.get(kPods, {"n", "p"});
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().is(ErrorCode::kInternal));
    CHECK(result.error().message.find("/api/v1/namespaces/n/pods/p") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(ApiClientFixture, "answers with Retry-After are repeated for every verb") {
  for (const int status : {429, 500, 503, 504}) {
    CAPTURE(status);
    transport.on_any().reply_retry_after(status, 1s).reply_retry_after(status, 1s).reply(201);
    const auto begin = clock.now();
    CHECK(run([&] { return client.create(kPods, "n", json::object()); }).ok());
    CHECK(clock.now() - begin >= 2s);
  }
  CHECK(transport.requests().size() == 12);
  // The time spent waiting is not given to the next try.
  CHECK(transport.requests()[1].timeout < 9100ms);
}

TEST_CASE_FIXTURE(ApiClientFixture, "answers without Retry-After, and 4xx with it, are not") {
  transport.on_any().reply(429).reply(503).reply_retry_after(409, 1s).reply_retry_after(404, 1s);
  CHECK(client.get(kPods, {"n", "p"}).error().is(ErrorCode::kTooManyRequests));
  CHECK(client.get(kPods, {"n", "p"}).error().is(ErrorCode::kUnavailable));
  CHECK(client.get(kPods, {"n", "p"}).error().is(ErrorCode::kConflict));
  CHECK(client.get(kPods, {"n", "p"}).error().is(ErrorCode::kNotFound));
  CHECK(transport.requests().size() == 4);
}

TEST_CASE_FIXTURE(ApiClientFixture, "a wait that passes the deadline is not begun") {
  transport.on_any().reply_retry_after(429, 30s, status_body("TooManyRequests", "slow down"));
  const auto result = client.create(kPods, "n", json::object());
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().is(ErrorCode::kTooManyRequests));
  CHECK(result.error().retry_after == 30s);
  CHECK(result.error().message == "slow down");
  CHECK(transport.requests().size() == 1);
}

TEST_CASE_FIXTURE(ApiClientFixture, "a server that always says later ends in its last answer") {
  transport.on_any().always(
      [](const auto&) { return Response{.status = 503, .body = "busy", .retry_after = 0s}; });
  const auto result = run([&] { return client.get(kPods, {"n", "p"}); });
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().is(ErrorCode::kUnavailable));
  CHECK(transport.requests().size() == 11);
}

TEST_CASE_FIXTURE(ApiClientFixture, "a cut connection is repeated for reads only") {
  SUBCASE("read") {
    transport.on("GET", "").fail(ErrorCode::kUnavailable).fail(ErrorCode::kUnavailable).reply(200);
    CHECK(run([&] { return client.get(kPods, {"n", "p"}); }).ok());
    CHECK(transport.requests().size() == 3);
  }
  SUBCASE("read, cut for good") {
    transport.on("GET", "").always(
        [](const auto&) { return Error{.code = ErrorCode::kUnavailable}; });
    CHECK_FALSE(run([&] { return client.get(kPods, {"n", "p"}); }).ok());
    CHECK(transport.requests().size() == 4);
  }
  SUBCASE("read, nobody listening: the caller shall know at once") {
    transport.on("GET", "").always([](const auto&) {
      return Error{.code = ErrorCode::kUnavailable, .reason = std::string(kConnectFailed)};
    });
    CHECK(client.get(kPods, {"n", "p"}).error().is(ErrorCode::kUnavailable));
    CHECK(transport.requests().size() == 1);
  }
  SUBCASE("read, timed out: the deadline has passed") {
    transport.on("GET", "").fail(ErrorCode::kTimeout);
    CHECK(client.get(kPods, {"n", "p"}).error().is(ErrorCode::kTimeout));
    CHECK(transport.requests().size() == 1);
  }
  SUBCASE("writes") {
    transport.on_any().always([](const auto&) { return Error{.code = ErrorCode::kUnavailable}; });
    CHECK(client.create(kPods, "n", json::object()).error().is(ErrorCode::kUnavailable));
    CHECK(client.update(kPods, {"n", "p"}, json::object()).error().is(ErrorCode::kUnavailable));
    CHECK(client.patch(kPods, {"n", "p"}, PatchType::kMerge, json::object())
              .error()
              .is(ErrorCode::kUnavailable));
    CHECK(client.remove(kPods, {"n", "p"}).error().is(ErrorCode::kUnavailable));
    CHECK(transport.requests().size() == 4);
  }
}

TEST_CASE_FIXTURE(ApiClientFixture,
                  "a stop ends a call in flight, a wait between tries, any call after") {
  SUBCASE("in flight") { transport.on_any().hang(); }
  SUBCASE("between tries") { transport.on_any().reply_retry_after(503, 5s); }
  auto call = std::async(std::launch::async, [&] { return client.get(kPods, {"n", "p"}); });
  REQUIRE(transport.wait_for_requests(1));
  CHECK(call.wait_for(20ms) == std::future_status::timeout);
  stop.request_stop();
  REQUIRE(call.wait_for(60s) == std::future_status::ready);
  CHECK(call.get().error().is(ErrorCode::kCancelled));
  CHECK(client.create(kPods, "n", json::object()).error().is(ErrorCode::kCancelled));
  CHECK(transport.requests().size() == 1);
}

TEST_CASE_FIXTURE(ApiClientFixture, "the rate limiter holds calls back but not watches") {
  RateLimiter limiter(clock, 0.001, 1);
  ApiClient slow(transport, clock, {.stop = stop.get_token(), .rate_limiter = &limiter});
  transport.on_any().always([](const auto&) { return Response{.status = 200, .body = "{}"}; });
  CHECK(slow.get(kPods, {"n", "p"}).ok());
  const auto held = slow.get(kPods, {"n", "p"});
  CHECK(held.error().is(ErrorCode::kTimeout));
  CHECK(slow.watch(kPods, "n", {}, [](std::string_view) { return true; }, {}).ok());
  CHECK(transport.requests().size() == 2);
}

TEST_CASE_FIXTURE(ApiClientFixture,
                  "a pod's log is asked for by lines and bytes and cut to its end") {
  transport.on("GET", "/log").reply(200, "0123456789", "text/plain").reply(400);
  CHECK(client.pod_log({"n", "p"}, "c", 20, 4).value() == "6789");
  CHECK(transport.lines()[0] ==
        "GET /api/v1/namespaces/n/pods/p/log?container=c&tailLines=20&limitBytes=4");
  CHECK(client.pod_log({"n", "p"}, "c", 20, 4).error().is(ErrorCode::kInvalid));
}

TEST_CASE_FIXTURE(ApiClientFixture, "a watch asks for bookmarks and bounds its silence") {
  transport.on("GET", "").stream({"{\"a\":1}\n{\"b\"", ":2}\n"});
  std::vector<std::string> lines;
  const WatchOptions options{
      .label_selector = "app=x", .resource_version = "42", .timeout = 300s, .metadata_only = true};
  CHECK(client
            .watch(kNodes, "", options,
                   [&](std::string_view line) {
                     lines.emplace_back(line);
                     return true;
                   },
                   {})
            .ok());
  CHECK(lines == std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"});
  const auto request = transport.requests()[0];
  CHECK(request.target ==
        "/api/v1/nodes?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=42"
        "&labelSelector=app%3Dx");
  CHECK(request.accept ==
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
  CHECK(request.timeout == 10s);
  CHECK(request.idle_timeout == 305s);
}

TEST_CASE_FIXTURE(ApiClientFixture, "a watch's end is told apart from its cut") {
  std::vector<std::string> lines;
  const auto watch = [&](bool more = true) {
    return client.watch(kPods, "n", {.resource_version = "1"},
                        [&](std::string_view line) {
                          lines.emplace_back(line);
                          return more;
                        },
                        {});
  };
  SUBCASE("a last frame without newline counts when it is whole") {
    transport.on_any().stream({"{\"a\":1}\n{\"b\":2}"});
    CHECK(watch().ok());
    CHECK(lines == std::vector<std::string>{"{\"a\":1}", "{\"b\":2}"});
  }
  SUBCASE("half a frame at the end is a cut") {
    transport.on_any().stream({"{\"a\":1}\n{\"b\":"});
    CHECK(watch().error().is(ErrorCode::kUnavailable));
    CHECK(lines.size() == 1);
  }
  SUBCASE("a cut connection") {
    transport.on_any().stream_and_fail({"{\"a\":1}\n"}, ErrorCode::kUnavailable);
    CHECK(watch().error().is(ErrorCode::kUnavailable));
    CHECK(lines.size() == 1);
  }
  SUBCASE("the consumer has enough") {
    transport.on_any().stream_and_hang({"{\"a\":1}\n{\"b\":2}\n"});
    CHECK(watch(false).ok());
    CHECK(lines.size() == 1);
  }
  SUBCASE("refused: not repeated, the code says why") {
    transport.on_any().reply(410, status_body("Expired", "too old resource version"));
    const auto result = watch();
    CHECK(result.error().is(ErrorCode::kExpired));
    CHECK(result.error().reason == "Expired");
    CHECK(transport.requests().size() == 1);
  }
  SUBCASE("429 at the start") {
    transport.on_any().reply_retry_after(429, 3s);
    const auto result = watch();
    CHECK(result.error().is(ErrorCode::kTooManyRequests));
    CHECK(result.error().retry_after == 3s);
    CHECK(transport.requests().size() == 1);
  }
}

TEST_CASE_FIXTURE(ApiClientFixture, "either stop ends a silent watch") {
  transport.on_any().stream_and_hang({"{\"a\":1}\n"});
  std::stop_source own;
  auto watching = std::async(std::launch::async, [&] {
    return client.watch(
        kPods, "n", {}, [](std::string_view) { return true; }, own.get_token());
  });
  REQUIRE(transport.wait_for_requests(1));
  SUBCASE("the caller's") { own.request_stop(); }
  SUBCASE("the process's") { stop.request_stop(); }
  REQUIRE(watching.wait_for(60s) == std::future_status::ready);
  CHECK(watching.get().error().is(ErrorCode::kCancelled));
}

TEST_CASE("HTTP statuses become codes a caller can act on") {
  const std::vector<std::pair<int, ErrorCode>> codes{
      {400, ErrorCode::kInvalid},     {401, ErrorCode::kUnauthorized},
      {403, ErrorCode::kForbidden},   {404, ErrorCode::kNotFound},
      {405, ErrorCode::kInternal},    {408, ErrorCode::kUnavailable},
      {409, ErrorCode::kConflict},    {410, ErrorCode::kExpired},
      {413, ErrorCode::kInvalid},     {415, ErrorCode::kInvalid},
      {422, ErrorCode::kInvalid},     {429, ErrorCode::kTooManyRequests},
      {500, ErrorCode::kUnavailable}, {502, ErrorCode::kUnavailable},
      {503, ErrorCode::kUnavailable}, {504, ErrorCode::kTimeout},
      {302, ErrorCode::kInternal},    {418, ErrorCode::kInternal}};
  for (const auto& row : codes) {
    const int status = row.first;
    const ErrorCode code = row.second;
    CAPTURE(status);
    const Error error = error_from_response({.status = status});
    CHECK(error.code == code);
    CHECK(error.http_status == status);
    CHECK(error.message.find(std::to_string(status)) != std::string::npos);
  }
}

TEST_CASE("a Status body gives message, reason and Retry-After") {
  const auto of = [](int status, const json& body) {
    return error_from_response({.status = status, .body = body.dump()});
  };
  const json exists = {
      {"kind", "Status"}, {"message", "pods \"p\" already exists"}, {"reason", "AlreadyExists"}};
  CHECK(of(409, exists).code == ErrorCode::kAlreadyExists);
  CHECK(of(409, exists).message == "pods \"p\" already exists");
  CHECK(of(409, exists).reason == "AlreadyExists");
  const json too_large = {
      {"kind", "Status"},
      {"message", "Timeout: Too large resource version: 9, current: 5"},
      {"reason", "Timeout"},
      {"details",
       {{"causes", {{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large"}}}},
        {"retryAfterSeconds", 1}}}};
  CHECK(of(504, too_large).code == ErrorCode::kExpired);
  CHECK(of(504, too_large).reason == "ResourceVersionTooLarge");
  CHECK(of(504, too_large).retry_after == 1s);
  CHECK(of(500, {{"kind", "Status"}, {"reason", "InternalError"}}).message ==
        "HTTP 500 InternalError");
  // The header was meant for us; the body's value is a hint.
  CHECK(error_from_response({.status = 504, .body = too_large.dump(), .retry_after = 5s})
            .retry_after == 5s);
}

TEST_CASE_FIXTURE(ApiClientFixture,
                  "a version the server has not reached is not waited for in vain") {
  const json body = {{"kind", "Status"},
                     {"reason", "Timeout"},
                     {"details", {{"causes", {{{"reason", "ResourceVersionTooLarge"}}}}}}};
  transport.on_any().reply_retry_after(504, 1s, body.dump());
  const auto result = client.list(kPods, "n", {.resource_version = "99"});
  CHECK(result.error().is(ErrorCode::kExpired));
  CHECK(transport.requests().size() == 1);
}

TEST_CASE("odd Status bodies and foreign texts become short readable messages") {
  const auto message = [](const std::string& body) {
    return error_from_response({.status = 502, .body = body}).message;
  };
  CHECK(message("") == "HTTP 502");
  CHECK(message("  upstream\n\n connect \t error ") == "HTTP 502: upstream connect error");
  CHECK(message("<html><head><style>p {color: red}</style><title>Bad gateway</title></head>"
                "<body><h1>Sorry</h1><script>alert(1)</script></body></html>") ==
        "HTTP 502: Bad gateway Sorry");
  CHECK(message("<never closed") == "HTTP 502");
  CHECK(message("{\"kind\":\"Other\",\"message\":\"x\"}") ==
        "HTTP 502: {\"kind\":\"Other\",\"message\":\"x\"}");
  CHECK(message("{\"kind\":\"Status\",\"message\":5,\"reason\":[],\"details\":7}") == "HTTP 502");
  CHECK(message(
            "{\"kind\":\"Status\",\"details\":{\"causes\":[1,{}],\"retryAfterSeconds\":\"x\"}}") ==
        "HTTP 502");
  CHECK(message(std::string(1'000'000, 'x')).size() < 400);
  CHECK(message(std::string(1'000'000, '<')).size() < 400);
  CHECK(message("\x01\x02 binary \xff") == "HTTP 502: binary \xff");
}

TEST_CASE_FIXTURE(ApiClientFixture,
                  "a list that broke off is repeated only if nothing of it was handed out") {
  const std::string page = R"({"metadata":{"resourceVersion":"5"},"items":[{"a":1},{"a":2}]})";
  const std::string begin = page.substr(0, page.find(",{\"a\":2"));
  int items = 0;
  const auto list = [&] {
    items = 0;
    return run([&] { return client.list_each(kPods, "", {}, [&](Value) { ++items; }); });
  };
  auto& script = transport.on("GET", "/pods");
  script.stream_and_fail({begin.substr(0, 50)}, ErrorCode::kUnavailable)
      .stream({begin, page.substr(begin.size())});
  const auto whole = list();
  REQUIRE(whole.ok());
  CHECK(items == 2);
  CHECK(whole->items == 2);
  CHECK(whole->bytes == page.size());
  CHECK(transport.requests().size() == 2);

  script.stream_and_fail({begin}, ErrorCode::kUnavailable);
  const auto cut = list();
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().is(ErrorCode::kUnavailable));
  CHECK(items == 1);
  CHECK(transport.requests().size() == 3);

  script.stream({begin});
  const auto half = list();
  REQUIRE_FALSE(half.ok());
  CHECK(half.error().is(ErrorCode::kInternal));
}
