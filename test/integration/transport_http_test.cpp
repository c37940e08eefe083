// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "fakes/eventually.h"
#include "integration/support/transport_fixture.h"

using namespace lpp;
using namespace lpp::testing;
using namespace std::chrono_literals;

TEST_CASE_FIXTURE(TransportFixture, "a call carries method, path, headers and body as given") {
  TestServer server(options(), answer_ok);
  auto cfg = config(server);
  cfg.base_path = "/prefix/cluster-1";
  cfg.token = "secret";
  cfg.user_agent = "lpp/1 (linux/test)";
  cfg.impersonate = {.user = "jane", .uid = "7", .groups = {"a", "b"}, .extra = {{"x/y", "z"}}};
  const auto client = transport(cfg);
  const auto response = client->round_trip({.method = "PATCH",
                                            .target = "/api/v1/pods/a%20b?labelSelector=a%3Db%2Cc",
                                            .body = R"({"a":1})",
                                            .content_type = "application/merge-patch+json"},
                                           {});
  REQUIRE(response.ok());
  CHECK(response->status == 200);
  CHECK(response->body == "{}");
  CHECK(response->content_type == "application/json");
  const auto seen = server.requests().at(0);
  CHECK(seen.method == "PATCH");
  CHECK(seen.target == "/prefix/cluster-1/api/v1/pods/a%20b?labelSelector=a%3Db%2Cc");
  CHECK(seen.body == R"({"a":1})");
  CHECK(seen.header("content-type") == "application/merge-patch+json");
  CHECK(seen.header("accept") == "application/json");
  CHECK(seen.header("user-agent") == "lpp/1 (linux/test)");
  CHECK(seen.header("authorization") == "Bearer secret");
  CHECK(seen.header("host") == "127.0.0.1:" + std::to_string(server.port()));
  CHECK(seen.header("accept-encoding").empty());
  CHECK(seen.headers.count("host") == 1);
  CHECK(seen.header("impersonate-user") == "jane");
  CHECK(seen.header("impersonate-uid") == "7");
  CHECK(seen.headers.count("impersonate-group") == 2);
  CHECK(seen.header("impersonate-extra-x%2fy") == "z");
}

TEST_CASE_FIXTURE(TransportFixture, "every verb and status comes through, redirects unfollowed") {
  std::atomic<int> status = 200;
  TestServer server(options(), [&](Exchange& exchange) {
    if (status == 204) return exchange.send("HTTP/1.1 204 No Content\r\n\r\n");
    return exchange.respond(status, R"({"kind":"Status"})",
                            {{"Retry-After", "7"}, {"Location", "/elsewhere"}});
  });
  const auto client = transport(server);
  for (const int code : {200, 201, 204, 302, 400, 404, 409, 429, 500, 503}) {
    status = code;
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
      CAPTURE(code);
      CAPTURE(method);
      k8s::Request request = method == std::string("GET") ? get() : post("{}");
      request.method = method;
      const auto response = client->round_trip(request, {});
      REQUIRE(response.ok());
      CHECK(response->status == code);
      if (code == 204) continue;
      CHECK(response->retry_after == 7s);
      CHECK(response->body == R"({"kind":"Status"})");
    }
  }
  CHECK(server.requests().size() == 50);
  CHECK(server.connections() == 1);
}

TEST_CASE_FIXTURE(TransportFixture, "calls reuse a connection, concurrent ones get their own") {
  TestServer server(options(), answer_ok);
  const auto client = transport(server);
  for (int i = 0; i < 20; ++i) {
    const auto response = client->round_trip(i % 2 == 0 ? get() : post("{}"), {});
    REQUIRE(response.ok());
    CHECK(response->sent_on_reused_connection == (i > 0));
  }
  CHECK(server.connections() == 1);

  std::vector<std::future<int>> calls;
  calls.reserve(8);
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      int good = 0;
      for (int k = 0; k < 25; ++k) good += client->round_trip(get(), {}).ok() ? 1 : 0;
      return good;
    }));
  }
  for (auto& call : calls) CHECK(call.get() == 25);
  CHECK(server.connections() <= 8);
  CHECK(server.requests().size() == 220);
}

TEST_CASE_FIXTURE(TransportFixture, "an idle connection closed by the server costs no call") {
  for (const bool tls : {true, false}) {
    CAPTURE(tls);
    auto opts = options();
    opts.tls = tls;
    TestServer server(opts, answer_ok);
    auto cfg = config(server);
    cfg.https = tls;
    const auto client = transport(cfg);
    REQUIRE(client->round_trip(get(), {}).ok());
    server.close_connections();
    const auto write = client->round_trip(post("{}"), {});
    REQUIRE(write.ok());
    CHECK_FALSE(write->sent_on_reused_connection);
    CHECK(server.connections() == 2);
  }
}

TEST_CASE_FIXTURE(TransportFixture, "what comes after an answer is never taken for the next one") {
  for (const bool tls : {true, false}) {
    CAPTURE(tls);
    auto opts = options();
    opts.tls = tls;
    // An answer and another one that nobody asked for, in one piece.
    TestServer server(opts, [](Exchange& exchange) {
      return exchange.send(
          "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nours"
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nalien");
    });
    auto cfg = config(server);
    cfg.https = tls;
    const auto client = transport(cfg);
    for (int i = 0; i < 2; ++i) {
      const auto answer = client->round_trip(get(), {});
      REQUIRE(answer.ok());
      CHECK(answer->body == "ours");
      CHECK_FALSE(answer->sent_on_reused_connection);
    }
  }
}

TEST_CASE_FIXTURE(TransportFixture,
                  "a connection that the server says it closes is not used again") {
  for (const bool tls : {true, false}) {
    CAPTURE(tls);
    auto opts = options();
    opts.tls = tls;
    // It says so and leaves it open.
    TestServer server(opts, [](Exchange& exchange) {
      return exchange.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
    });
    auto cfg = config(server);
    cfg.https = tls;
    const auto client = transport(cfg);
    for (int i = 0; i < 2; ++i) {
      const auto answer = client->round_trip(post("{}"), {});
      REQUIRE(answer.ok());
      CHECK(answer->body == "{}");
      CHECK_FALSE(answer->sent_on_reused_connection);
    }
    CHECK(server.connections() == 2);
  }
}

TEST_CASE_FIXTURE(TransportFixture, "a reused connection cut at the next request: reads repeat") {
  // The server takes the second request of each connection and closes without an answer.
  TestServer server(options(), [](Exchange& exchange) {
    return exchange.request().target == "/first" && exchange.respond(200, "{}");
  });
  SUBCASE("a read is sent again on a fresh connection, once") {
    const auto client = transport(server);
    REQUIRE(client->round_trip(get("/first"), {}).ok());
    const auto read = client->round_trip(get("/second"), {});
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().is(ErrorCode::kUnavailable));
    CHECK(read.error().reason != k8s::kConnectFailed);
    CHECK(server.requests().size() == 3);
    CHECK(server.connections() == 2);
  }
  SUBCASE("a write is not: it may have been applied") {
    const auto client = transport(server);
    REQUIRE(client->round_trip(get("/first"), {}).ok());
    const auto write = client->round_trip(post("{}", "/second"), {});
    REQUIRE_FALSE(write.ok());
    CHECK(write.error().is(ErrorCode::kUnavailable));
    CHECK(server.requests().size() == 2);
  }
}

TEST_CASE_FIXTURE(TransportFixture,
                  "a connection cut inside the answer is an error, not an answer") {
  std::string bytes;
  SUBCASE("in the status line") { bytes = "HTTP/1.1 20"; }
  SUBCASE("in the headers") { bytes = "HTTP/1.1 200 OK\r\nContent-Le"; }
  SUBCASE("in a body of known length") {
    bytes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":";
  }
  SUBCASE("in a chunk") {
    bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{\"a\":";
  }
  SUBCASE("between chunks") {
    bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n";
  }
  SUBCASE("garbage") { bytes = "SSH-2.0-OpenSSH_9.2\r\n"; }
  TestServer server(options(), [&](Exchange& exchange) {
    exchange.send(bytes);
    return false;
  });
  const auto client = transport(server);
  const auto response = client->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kUnavailable));
  std::string received;
  const auto streamed = client->stream(get(),
                                       [&](std::string_view chunk) {
                                         received += chunk;
                                         return true;
                                       },
                                       {});
  REQUIRE_FALSE(streamed.ok());
  CHECK(streamed.error().is(ErrorCode::kUnavailable));
}

TEST_CASE_FIXTURE(TransportFixture, "a stream delivers chunks as they come and ends well") {
  std::atomic<int> seen = 0;
  TestServer server(options(), [&](Exchange& exchange) {
    exchange.begin_chunks();
    for (int i = 1; i <= 3; ++i) {
      exchange.chunk("line " + std::to_string(i) + "\n");
      // The next one only when this one has arrived: nothing is held back on the way.
      if (!eventually([&] { return seen == i; })) return false;
    }
    exchange.chunk(std::string(3'000'000, 'x'));
    return exchange.end_chunks();
  });
  const auto client = transport(server);
  std::string text;
  const auto response = client->stream(get(),
                                       [&](std::string_view chunk) {
                                         text += chunk;
                                         ++seen;
                                         return true;
                                       },
                                       {});
  REQUIRE(response.ok());
  CHECK(response->status == 200);
  CHECK(response->body.empty());
  CHECK(text.substr(0, 21) == "line 1\nline 2\nline 3\n");
  CHECK(text.size() == 21 + 3'000'000);
}

TEST_CASE_FIXTURE(TransportFixture, "a refused stream returns its body, the sink is not called") {
  TestServer server(options(), [](Exchange& exchange) {
    return exchange.respond(410, R"({"kind":"Status","reason":"Expired"})");
  });
  const auto client = transport(server);
  bool called = false;
  const auto response = client->stream(get(), [&](std::string_view) { return called = true; }, {});
  REQUIRE(response.ok());
  CHECK(response->status == 410);
  CHECK(response->body == R"({"kind":"Status","reason":"Expired"})");
  CHECK_FALSE(called);
}

TEST_CASE_FIXTURE(TransportFixture, "a sink that has enough ends its stream as a success") {
  TestServer server(options(), [](Exchange& exchange) {
    exchange.begin_chunks();
    exchange.chunk("a\n");
    exchange.wait_for_close();
    return false;
  });
  const auto client = transport(server);
  const auto response = client->stream(get(), [](std::string_view) { return false; }, {});
  REQUIRE(response.ok());
  CHECK(response->status == 200);
}

TEST_CASE_FIXTURE(TransportFixture, "nobody listening is a failure to connect that says where") {
  k8s::RestConfig cfg;
  {
    TestServer server(options(), answer_ok);
    cfg = config(server);
  }
  const auto client = transport(cfg);
  const auto response = client->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kUnavailable));
  CHECK(response.error().reason == k8s::kConnectFailed);
  CHECK(response.error().message.find("127.0.0.1:" + std::to_string(cfg.port)) !=
        std::string::npos);
  cfg.host = "no-such-host.invalid";
  const auto unknown = transport(cfg)->round_trip(get(), {});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message.find("cannot resolve no-such-host.invalid") != std::string::npos);
}

TEST_CASE_FIXTURE(TransportFixture, "credentials never travel over plain http") {
  auto opts = options();
  opts.tls = false;
  TestServer server(opts, answer_ok);
  auto cfg = config(server);
  cfg.https = false;
  SUBCASE("token") { cfg.token = "secret"; }
  SUBCASE("basic") {
    cfg.username = "jane";
    cfg.password = "secret";
  }
  const auto client = transport(cfg);
  REQUIRE(client->round_trip(get(), {}).ok());
  CHECK(server.requests().at(0).header("authorization").empty());
}

TEST_CASE_FIXTURE(TransportFixture, "basic authentication is sent") {
  TestServer server(options(), answer_ok);
  auto cfg = config(server);
  cfg.username = "jane";
  cfg.password = "a:b";
  REQUIRE(transport(cfg)->round_trip(get(), {}).ok());
  CHECK(server.requests().at(0).header("authorization") == "Basic amFuZTphOmI=");
}

TEST_CASE_FIXTURE(TransportFixture,
                  "a token file is read again after a 401, the old token until then") {
  const TempDir folder;
  TestServer server(options(), [](Exchange& exchange) {
    const bool good = exchange.request().header("authorization") == "Bearer new";
    return exchange.respond(good ? 200 : 401, "{}");
  });
  auto cfg = config(server);
  cfg.token_file = folder.write("token", "old\n");
  const auto client = transport(cfg);
  const auto first = client->round_trip(get(), {});
  REQUIRE(first.ok());
  CHECK(first->status == 401);
  folder.write("token", "new\n");
  CHECK(eventually([&] {
    const auto next = client->round_trip(get(), {});
    return next.ok() && next->status == 200;
  }));
}
