// SPDX-License-Identifier: Apache-2.0
#include "app/health_server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "fakes/eventually.h"
#include "fakes/needs.h"
#include "harness/loopback.h"

using namespace lpp;
using namespace lpp::app;
using lpp::testing::eventually;
using namespace std::chrono_literals;

namespace {

/// One TCP connection to the server under test. Of its own: RawClient has the whole process ignore
/// SIGPIPE, which must not be needed here.
class Connection {
 public:
  explicit Connection(int port, bool ipv6 = false)
      : socket_(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in6 address6{};
    address6.sin6_family = AF_INET6;
    address6.sin6_addr = in6addr_loopback;
    address6.sin6_port = htons(static_cast<std::uint16_t>(port));
    const sockaddr_in address4 = testing::loopback(port);
    connected_ =
        ipv6 ? connect(socket_, reinterpret_cast<sockaddr*>(&address6), sizeof address6) == 0
             : connect(socket_, reinterpret_cast<const sockaddr*>(&address4), sizeof address4) == 0;
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool connected() const { return connected_; }

  bool send(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  /// Everything until the server closes; "TIMEOUT" when it does not within the time.
  std::string read_all(std::chrono::milliseconds limit = 60s) {
    std::string out;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    char buffer[4096];
    while (true) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd poller{.fd = socket_, .events = POLLIN, .revents = 0};
      if (left <= 0ms || poll(&poller, 1, static_cast<int>(left.count())) <= 0) return "TIMEOUT";
      const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) return out;
      out.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  int socket_;
  bool connected_ = false;
};

struct Answer {
  int status = 0;
  std::string head{};
  std::string body{};
};

Answer parse(const std::string& text) {
  Answer out;
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos || !text.starts_with("HTTP/1.1 ")) return out;
  out.status = std::stoi(text.substr(9, 3));
  out.head = text.substr(0, end + 2);
  out.body = text.substr(end + 4);
  return out;
}

Answer ask(int port, const std::string& method, const std::string& target,
           const std::string& more = "\r\n") {
  Connection connection(port);
  REQUIRE(connection.connected());
  connection.send(method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + more);
  return parse(connection.read_all());
}

SystemClock& system_clock() {
  static SystemClock clock;
  return clock;
}

/// Connections have all the time that a busy machine takes, unless it is about that.
std::unique_ptr<HealthServer> serve(HealthEndpoints endpoints, Duration connection_time = 1h) {
  auto started = HealthServer::start({.connection_time = connection_time}, std::move(endpoints),
                                     system_clock());
  if (!started.ok()) FAIL(started.error().message);
  return *std::move(started);
}

std::unique_ptr<HealthServer> server(std::vector<HealthCheck> checks = {},
                                     Duration connection_time = 1h) {
  return serve({.ready = std::move(checks)}, connection_time);
}

HealthCheck passing(const std::string& name) {
  return {.name = name, .check = [] { return Result<void>{}; }};
}

HealthCheck failing(const std::string& name, const std::string& why) {
  return {.name = name, .check = [why] { return Result<void>{invalid(why)}; }};
}

}  // namespace

TEST_CASE("health answers OK to GET, HEAD and OPTIONS and 405 to everything else") {
  const auto s = server();
  CHECK(ask(s->port(), "GET", "/health").body == "OK");
  CHECK(ask(s->port(), "GET", "/health").head.find("text/plain") != std::string::npos);
  for (const std::string method : {"GET", "HEAD", "OPTIONS"}) {
    CAPTURE(method);
    CHECK(ask(s->port(), method, "/health").status == 200);
  }
  for (const std::string method : {"POST", "PUT", "PATCH", "DELETE", "TRACE"}) {
    CAPTURE(method);
    const Answer answer = ask(s->port(), method, "/health", "Content-Length: 3\r\n\r\nabc");
    CHECK(answer.status == 405);
    CHECK(answer.head.find("Allow: GET, HEAD, OPTIONS") != std::string::npos);
  }
  CHECK(ask(s->port(), "HEAD", "/health").body.empty());
}

TEST_CASE("ready answers Ready to any method when every check passes") {
  const auto s = server({passing("claims"), passing("lease")});
  for (const std::string method : {"GET", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}) {
    CAPTURE(method);
    const Answer answer = ask(s->port(), method, "/ready");
    CHECK(answer.status == 200);
    CHECK(answer.body == "Ready");
    CHECK(answer.head.find("text/plain") != std::string::npos);
  }
}

TEST_CASE("ready names the first check that fails and follows its changes") {
  std::atomic<bool> synced = false;
  const auto s = server({passing("claims"),
                         {.name = "volumes",
                          .check = [&]() -> Result<void> {
                            if (synced) return {};
                            return invalid("not synced");
                          }},
                         failing("lease", "not held")});
  const Answer first = ask(s->port(), "GET", "/ready");
  CHECK(first.status == 503);
  CHECK(first.body == "readiness check volumes failed: not synced");
  CHECK(ask(s->port(), "GET", "/health").status == 200);
  synced = true;
  CHECK(ask(s->port(), "GET", "/ready").body == "readiness check lease failed: not held");
}

TEST_CASE("health says which part does not live any more") {
  const auto s = serve({.live = {passing("informers"), failing("workers", "stuck for 301 s")}});
  const Answer answer = ask(s->port(), "GET", "/health");
  CHECK(answer.status == 503);
  CHECK(answer.body == "health check workers failed: stuck for 301 s");
  CHECK(ask(s->port(), "GET", "/ready").status == 200);
}

TEST_CASE("livez, readyz and healthz answer as Kubernetes' components do") {
  const auto s = serve({.live = {passing("workers")},
                        .ready = {passing("config"), failing("caches", "not listed yet: pods")}});
  CHECK(ask(s->port(), "GET", "/livez").body == "ok");
  CHECK(ask(s->port(), "GET", "/livez?verbose").body ==
        "[+]ping ok\n[+]workers ok\nlivez check passed\n");
  const Answer readyz = ask(s->port(), "GET", "/readyz");
  CHECK(readyz.status == 500);
  CHECK(readyz.body ==
        "[+]ping ok\n[+]config ok\n[-]caches failed: not listed yet: pods\nreadyz check failed\n");
  CHECK(ask(s->port(), "GET", "/readyz?exclude=caches").body == "ok");
  CHECK(ask(s->port(), "GET", "/readyz?verbose&exclude=caches&exclude=config").body ==
        "[+]ping ok\n[+]config excluded: ok\n[+]caches excluded: ok\nreadyz check passed\n");
  const Answer healthz = ask(s->port(), "GET", "/healthz");
  CHECK(healthz.status == 500);
  CHECK(healthz.body.find("[+]workers ok\n[+]config ok\n[-]caches") != std::string::npos);
  CHECK(ask(s->port(), "POST", "/readyz").status == 405);
  CHECK(ask(s->port(), "HEAD", "/livez").body.empty());
}

TEST_CASE("a page is answered in full with its type, however long, and only to readers") {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i) + "\n";
  const auto s = serve({.pages = {{.path = "/metrics",
                                   .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                   .render = [&] { return text; }}}});
  const Answer answer = ask(s->port(), "GET", "/metrics", "Accept-Encoding: gzip, br\r\n\r\n");
  CHECK(answer.status == 200);
  CHECK((answer.body == text));
  CHECK(answer.head.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n") !=
        std::string::npos);
  CHECK(answer.head.find("Content-Encoding") == std::string::npos);
  CHECK(answer.head.find("nosniff") != std::string::npos);
  const Answer posted = ask(s->port(), "POST", "/metrics");
  CHECK(posted.status == 405);
  CHECK(posted.head.find("Allow: GET, HEAD") != std::string::npos);
  CHECK(ask(s->port(), "GET", "/metrics/").status == 404);
}

TEST_CASE("a query is ignored and other paths are not found") {
  const auto s = server();
  CHECK(ask(s->port(), "GET", "/health?full=1").status == 200);
  for (const std::string path : {"/", "/metrics", "/statusz", "/health/", "//health", "/HEALTH"}) {
    CAPTURE(path);
    CHECK(ask(s->port(), "GET", path).status == 404);
  }
}

TEST_CASE("both IPv4 and IPv6 reach the server" * testing::NeedsIpv6()) {
  const auto s = server();
  CHECK(ask(s->port(), "GET", "/health").status == 200);
  Connection connection(s->port(), /*ipv6=*/true);
  REQUIRE(connection.connected());
  connection.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(parse(connection.read_all()).status == 200);
}

TEST_CASE("a port that is taken is an error that names it") {
  const auto s = server();
  const auto second = HealthServer::start({.port = s->port()}, {}, system_clock());
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().is(ErrorCode::kUnavailable));
  CHECK(second.error().message.find("port " + std::to_string(s->port())) != std::string::npos);
  CHECK(second.error().message.find("in use") != std::string::npos);
}

TEST_CASE("on one address nobody reaches it at another one") {
  for (const std::string address : {"127.0.0.2", "::1"}) {
    CAPTURE(address);
    std::unique_ptr<HealthServer> only;
    UniqueFd bound;  // so that no other process listens on that port at 127.0.0.1
    REQUIRE(eventually([&] {
      auto started = HealthServer::start({.address = address}, {}, system_clock());
      REQUIRE_MESSAGE(started.ok(), started.error().message);
      only = *std::move(started);
      bound.reset(::socket(AF_INET, SOCK_STREAM, 0));
      const sockaddr_in at = testing::loopback(only->port());
      return ::bind(bound.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    }));
    const int port = only->port();
    CHECK_FALSE(Connection(port).connected());
    CHECK(Connection(port, /*ipv6=*/true).connected() == (address == "::1"));
  }
  const auto none = HealthServer::start({.address = "192.0.2.1"}, {}, system_clock());
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message.find("of 192.0.2.1") != std::string::npos);
}

TEST_CASE("a port is free again after stop") {
  auto s = server();
  const int port = s->port();
  CHECK(ask(port, "GET", "/health").status == 200);
  s.reset();
  CHECK(HealthServer::start({.port = port}, {}, system_clock()).ok());
}

TEST_CASE("one connection carries one request") {
  const auto s = server();
  Connection connection(s->port());
  connection.send("GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\n");
  const std::string all = connection.read_all();
  CHECK(parse(all).head.find("Connection: close") != std::string::npos);
  CHECK(all.find("HTTP/1.1", 1) == std::string::npos);
}

TEST_CASE("clients that send slowly or nothing do not keep others out for long") {
  const auto s = server({}, 300ms);
  std::vector<std::unique_ptr<Connection>> idle;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(std::make_unique<Connection>(s->port()));
    idle.back()->send("GET /health HTTP/1.1\r\nX: ");
  }
  std::string answer;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (answer.empty() && std::chrono::steady_clock::now() < deadline) {
    for (const auto& connection : idle) connection->send("x");  // each byte is a sign of life
    Connection connection(s->port());
    connection.send("GET /health HTTP/1.1\r\n\r\n");
    answer = connection.read_all();
  }
  CHECK(parse(answer).status == 200);
  for (const auto& connection : idle) CHECK(parse(connection->read_all()).status != 200);
}

TEST_CASE("more connections than may wait are closed, and the server goes on") {
  const auto s = server({}, 300ms);
  {
    std::vector<std::unique_ptr<Connection>> many(200);
    for (auto& connection : many) connection = std::make_unique<Connection>(s->port());
    for (const auto& connection : many) CHECK(connection->read_all() != "TIMEOUT");
  }
  CHECK(eventually([&] { return ask(s->port(), "GET", "/health").status == 200; }));
}

TEST_CASE("malformed and oversized requests are refused, and the server goes on") {
  const auto s = server();
  const std::string requests[] = {
      "\r\n\r\n",
      "nonsense\r\n\r\n",
      std::string("\0\x01\xff\r\n\r\n", 7),
      "GET /health HTTP/9.9\r\n\r\n",
      "GET " + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n",
      "GET /health HTTP/1.1\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n",
      "GET /health HTTP/1.1\r\nRange: bytes=0-0" +
          [] {
            std::string ranges;
            for (int i = 0; i < 1'900; ++i) ranges += ",0-0";
            return ranges;
          }() +
          "\r\n\r\n",
      "GET /health HTTP/1.1\r\nRange: bytes=99999999999999999999-\r\n\r\n",
      "POST /ready HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST /ready HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
      "POST /ready HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
      "GET /%zz%00 HTTP/1.1\r\n\r\n",
      "POST /ready HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'),
  };
  for (const std::string& request : requests) {
    CAPTURE(request.substr(0, 60));
    {
      Connection connection(s->port());
      connection.send(request);
      CHECK(connection.read_all() != "TIMEOUT");
    }
    CHECK(ask(s->port(), "GET", "/health").status == 200);
  }
  // Without end: many headers.
  Connection connection(s->port());
  connection.send("GET /health HTTP/1.1\r\n");
  for (int i = 0; i < 5'000 && connection.send("A: b\r\n"); ++i) {
  }
  CHECK(connection.read_all() != "TIMEOUT");
  CHECK(ask(s->port(), "GET", "/health").status == 200);
}

TEST_CASE("a client that goes away at any point does no harm") {
  const auto s = server();
  const std::string request = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t cut = 0; cut <= request.size(); ++cut) {
    Connection connection(s->port());
    connection.send(request.substr(0, cut));
  }
  CHECK(ask(s->port(), "GET", "/health").status == 200);
}

TEST_CASE("stop is prompt while clients are connected, and may be repeated") {
  const auto s = server();
  Connection silent(s->port());
  Connection slow(s->port());
  slow.send("GET /he");
  Connection waiting(s->port());
  s->stop();  // long before the limit of what clients may take
  CHECK(parse(silent.read_all()).status != 200);
  s->stop();
  CHECK_FALSE(Connection(s->port()).connected());
}

TEST_CASE("a stop during many requests loses no thread and no connection") {
  for (int round = 0; round < 20; ++round) {
    const auto s = server({passing("claims")});
    std::vector<std::jthread> clients(4);
    for (auto& client : clients) {
      client = std::jthread([port = s->port()] {
        for (int n = 0; n < 20; ++n) {
          Connection connection(port);
          if (!connection.connected()) return;
          connection.send("GET /ready HTTP/1.1\r\n\r\n");
          if (connection.read_all() == "TIMEOUT") FAIL_CHECK("a connection was left open");
        }
      });
    }
    s->stop();
  }
}
