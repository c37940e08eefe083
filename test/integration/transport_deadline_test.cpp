// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "fakes/eventually.h"
#include "harness/acceptor.h"
#include "integration/support/transport_fixture.h"

using namespace lpp;
using namespace lpp::testing;
using namespace std::chrono_literals;

namespace {

// Far below the time limits of the calls, far above what a busy machine takes: it is for hangs.
constexpr long long kAtOnceMs = 9'000;
constexpr auto kNeverOver = 60s;  // a call that is to be ended before
// What a busy machine may need for a step: a limit that is tried ends nothing sooner.
constexpr auto kStall = 3s;

/// The places where a call can hang.
enum class Hang { kConnect, kHandshake, kHeaders, kSlowHeaders, kBody, kSlowBody };

/// A server (and, for kConnect, a network that is not there) where every call hangs at one place.
class HangingServer {
 public:
  HangingServer(TransportFixture& fixture, Hang where) : where_(where) {
    auto options = fixture.options();
    if (where == Hang::kHandshake) options.greeting = "";
    server_ = std::make_unique<TestServer>(options, [this](Exchange& exchange) {
      answer(exchange);
      return false;
    });
    config = fixture.config(*server_);
    // An address of a network that is not there: packets to it are dropped or refused.
    if (where == Hang::kConnect) config.host = "192.0.2.1";
  }

  /// Makes a call that hangs, and stops it then: the milliseconds until it has ended.
  template <typename Call>
  long long stop(const Call& call) {
    const int before = server_->connections();
    std::stop_source stop;
    auto made = std::async(std::launch::async, [&] { return call(stop.get_token()); });
    REQUIRE(eventually([&] {
      if (where_ == Hang::kHandshake) return server_->connections() > before;
      if (where_ == Hang::kConnect) return is_connecting() || made.wait_for(0s) != not_yet;
      return hanging_ > before;
    }));
    std::optional<Result<k8s::Response>> response;
    const auto took = milliseconds_of([&] {
      stop.request_stop();
      response = made.get();
    });
    REQUIRE_FALSE(response->ok());
    if (where_ != Hang::kConnect) CHECK(response->error().is(ErrorCode::kCancelled));
    return took;
  }

  k8s::RestConfig config;

 private:
  static constexpr auto not_yet = std::future_status::timeout;

  void answer(Exchange& exchange) {
    const int connection = exchange.request().connection;
    // A drop now and then: no single read ever waits for long.
    const auto drip = [&](const auto& send_drop) {
      for (int drops = 0; exchange.pause(20ms) && send_drop(); ++drops) {
        if (drops == 3) hanging_ = connection;
      }
    };
    switch (where_) {
      case Hang::kSlowHeaders:
        exchange.send("HTTP/1.1 200 OK\r\nX-Slow: ");
        return drip([&] { return exchange.send("x"); });
      case Hang::kSlowBody:
        exchange.begin_chunks();
        return drip([&] { return exchange.chunk("x"); });
      case Hang::kBody: exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"); break;
      default: break;
    }
    hanging_ = connection;
    exchange.wait_for_close();
  }

  /// Whether a connection to that network is being made.
  static bool is_connecting() {
    std::ifstream sockets("/proc/net/tcp");
    for (std::string line; std::getline(sockets, line);) {
      if (line.find(" 010200C0:") != std::string::npos) return true;
    }
    return false;
  }

  const Hang where_;
  std::atomic<int> hanging_ = 0;  // the newest connection on which a call does
  std::unique_ptr<TestServer> server_;
};

/// A clock that jumps for one thread, as if the process had slept there and no other thread had had
/// its turn yet.
class JumpingClock final : public Clock {
 public:
  /// After the next look at it.
  void jump() {
    looks_ = 1;
    thread_ = std::this_thread::get_id();
  }
  TimePoint now() const override {
    const bool jumped = std::this_thread::get_id() == thread_.load() && looks_-- <= 0;
    return clock_.now() + (jumped ? 1h : 0h);
  }
  std::chrono::system_clock::time_point wall_now() const override { return clock_.wall_now(); }
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex) {
    clock_.wait_until(cv, mutex, deadline);
  }

 private:
  SystemClock clock_;
  std::atomic<std::thread::id> thread_{};
  mutable int looks_ = 0;
};

Hang hang_of_subcase() {
  std::optional<Hang> hang;
  SUBCASE("in the handshake") { hang = Hang::kHandshake; }
  SUBCASE("before the headers") { hang = Hang::kHeaders; }
  SUBCASE("in headers that come drop by drop") { hang = Hang::kSlowHeaders; }
  SUBCASE("in the body") { hang = Hang::kBody; }
  SUBCASE("in a body that comes drop by drop") { hang = Hang::kSlowBody; }
  return hang.value_or(Hang::kHeaders);
}

/// A listener on loopback whose connections hold little until they are read.
struct SlowReader {
  SlowReader() {
    constexpr int kLittle = 4096;  // what comes takes it from the listener
    REQUIRE(::setsockopt(listening.socket.get(), SOL_SOCKET, SO_RCVBUF, &kLittle, sizeof kLittle) ==
            0);
  }
  const Listener listening = listen_on().value();
};

bool accept_all(std::string_view /*chunk*/) { return true; }

}  // namespace

TEST_CASE_FIXTURE(TransportFixture, "the deadline ends a call wherever it hangs") {
  HangingServer hanging(*this, hang_of_subcase());
  const auto client = transport(hanging.config);
  std::optional<Result<k8s::Response>> response;
  const auto took = milliseconds_of([&] { response = client->round_trip(get("/api", 300ms), {}); });
  REQUIRE_FALSE(response->ok());
  CHECK(response->error().is(ErrorCode::kTimeout));
  CHECK(took >= 290);
  CHECK(took < 300 + kAtOnceMs);
}

TEST_CASE_FIXTURE(TransportFixture, "a stop ends a call wherever it hangs") {
  HangingServer hanging(*this, hang_of_subcase());
  const auto client = transport(hanging.config);
  CHECK(hanging.stop([&](const std::stop_token& stop) {
    return client->stream(get("/api", kNeverOver), accept_all, stop);
  }) < kAtOnceMs);
  CHECK(hanging.stop([&](const std::stop_token& stop) {
    return client->round_trip(get("/api", kNeverOver), stop);
  }) < kAtOnceMs);
}

TEST_CASE_FIXTURE(TransportFixture, "connecting is bounded and can be stopped") {
  HangingServer hanging(*this, Hang::kConnect);
  const auto client = transport(hanging.config);
  CHECK(hanging.stop([&](const std::stop_token& stop) {
    return client->round_trip(get("/api", kNeverOver), stop);
  }) < kAtOnceMs);
  CHECK(milliseconds_of([&] { CHECK_FALSE(client->round_trip(get("/api", 200ms), {}).ok()); }) <
        200 + kAtOnceMs);
}

TEST_CASE_FIXTURE(TransportFixture, "a stop before the call sends nothing") {
  TestServer server(options(), answer_ok);
  const auto client = transport(server);
  std::stop_source stop;
  stop.request_stop();
  const auto response = client->round_trip(get(), stop.get_token());
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kCancelled));
  CHECK(server.connections() == 0);
}

TEST_CASE_FIXTURE(TransportFixture, "a connection whose call was ended is not used again") {
  std::atomic<bool> hang = true;
  TestServer server(options(), [&](Exchange& exchange) {
    if (exchange.request().target == "/warm-up") return exchange.respond(200, "{}");
    if (hang) exchange.wait_for_close();
    return exchange.respond(200, "{}");
  });
  const auto client = transport(server);
  REQUIRE(client->round_trip(get("/warm-up"), {}).ok());
  bool by_stop = false;
  SUBCASE("at its deadline") {}
  SUBCASE("by a stop") { by_stop = true; }
  std::stop_source stop;
  auto ended = std::async(std::launch::async, [&] {
    return client->round_trip(get("/api", by_stop ? kNeverOver : kStall), stop.get_token());
  });
  REQUIRE(eventually([&] { return server.requests().size() == 2; }));
  if (by_stop) stop.request_stop();
  CHECK_FALSE(ended.get().ok());
  hang = false;
  const auto response = client->round_trip(get(), {});
  REQUIRE(response.ok());
  CHECK_FALSE(response->sent_on_reused_connection);
  CHECK(server.requests().size() == 3);
}

TEST_CASE_FIXTURE(TransportFixture,
                  "a write whose deadline passes while the process sleeps is never sent whole") {
  std::atomic<int> requests = 0;
  TestServer server(options(), [&](Exchange& exchange) {
    ++requests;
    return answer_ok(exchange);
  });
  JumpingClock jumping;
  const auto made = k8s::make_httplib_transport(config(server), jumping);
  REQUIRE(made.ok());
  REQUIRE((*made)->round_trip(post("{}"), {}).ok());  // leaves a connection that is open

  jumping.jump();
  const auto response = (*made)->round_trip(post("{}"), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kTimeout));
  CHECK(requests == 1);
}

TEST_CASE_FIXTURE(TransportFixture, "idle connections that a partition has killed cost one call") {
  std::atomic<int> arrived = 0;
  std::array<std::atomic<int>, 8> asked{};
  TestServer server(options(), [&](Exchange& exchange) {
    const auto connection = static_cast<std::size_t>(exchange.request().connection);
    if (++asked.at(connection) == 1) {
      // Both of the first calls get a connection of their own.
      ++arrived;
      eventually([&] { return arrived >= 2; });
      return answer_ok(exchange);
    }
    exchange.wait_for_close();
    return false;
  });
  const auto client = transport(server);
  auto other = std::async(std::launch::async, [&] { return client->round_trip(get(), {}).ok(); });
  REQUIRE(client->round_trip(get(), {}).ok());
  REQUIRE(other.get());
  const auto lost = client->round_trip(get("/api", 200ms), {});
  REQUIRE_FALSE(lost.ok());
  CHECK(lost.error().is(ErrorCode::kTimeout));
  CHECK(client->round_trip(get("/api", 20s), {}).ok());
  CHECK(server.connections() == 3);
}

TEST_CASE_FIXTURE(TransportFixture, "a write cut at its deadline is not delivered afterwards") {
  const SlowReader server;
  k8s::RestConfig plain;
  plain.host = "127.0.0.1";
  plain.port = server.listening.port;
  plain.https = false;
  auto request = post(std::string(std::size_t{64} << 10U, 'x'));
  request.timeout = kStall;
  const auto answer = transport(plain)->round_trip(request, {});
  REQUIRE_FALSE(answer.ok());
  CHECK(answer.error().is(ErrorCode::kTimeout));
  pollfd connected{.fd = server.listening.socket.get(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&connected, 1, 0) == 1);  // else the accept would wait for ever
  const UniqueFd peer(::accept4(server.listening.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(peer.get() >= 0);
  std::array<char, 4096> buffer{};
  std::size_t total = 0;
  ssize_t got = 0;
  while ((got = ::recv(peer.get(), buffer.data(), buffer.size(), 0)) > 0) {
    total += static_cast<std::size_t>(got);
  }
  CHECK(got < 0);
  CHECK(errno == ECONNRESET);
  CHECK(total < request.body.size());
}

TEST_CASE_FIXTURE(TransportFixture, "the head of a stream's answer may come with its first data") {
  TestServer server(options(), [](Exchange& exchange) {
    if (!exchange.pause(kStall + 1s)) return false;  // real time is what is tried
    return exchange.begin_chunks() && exchange.chunk("x\n") && exchange.end_chunks();
  });
  auto request = get("/api", kStall);
  request.idle_timeout = 20s;
  std::string received;
  const auto answer = transport(server)->stream(request,
                                                [&](std::string_view chunk) {
                                                  received += chunk;
                                                  return true;
                                                },
                                                {});
  REQUIRE_MESSAGE(answer.ok(), (answer.ok() ? "" : answer.error().message));
  CHECK(received == "x\n");
}

TEST_CASE_FIXTURE(TransportFixture, "a stream may be silent up to its limit and no longer") {
  TestServer server(options(), [](Exchange& exchange) {
    exchange.begin_chunks();
    // Each pause is far below the limit, all together are above it.
    for (int i = 0; i < 8; ++i) {
      if (!exchange.pause(500ms) || !exchange.chunk("x\n")) return false;
    }
    exchange.wait_for_close();
    return false;
  });
  const auto client = transport(server);
  auto request = get("/api", kStall);
  request.idle_timeout = kStall;
  std::size_t received = 0;
  const auto took = milliseconds_of([&] {
    const auto response = client->stream(request,
                                         [&](std::string_view chunk) {
                                           received += chunk.size();
                                           return true;
                                         },
                                         {});
    REQUIRE_FALSE(response.ok());
    CHECK(response.error().is(ErrorCode::kTimeout));
  });
  CHECK(received == 16);
  CHECK(took >= 4000 + 2990);
  CHECK(took < 4000 + 3000 + kAtOnceMs);
}

TEST_CASE_FIXTURE(TransportFixture, "time spent in the sink does not count as silence") {
  TestServer server(options(), [](Exchange& exchange) {
    exchange.begin_chunks();
    exchange.chunk("a");
    exchange.chunk("b");
    return exchange.end_chunks();
  });
  const auto client = transport(server);
  auto request = get();
  request.idle_timeout = kStall;
  std::string received;
  const auto response = client->stream(request,
                                       [&](std::string_view chunk) {
                                         if (received.empty()) clock.sleep_for(kStall + 1s, {});
                                         received += chunk;
                                         return true;
                                       },
                                       {});
  CHECK(response.ok());
  CHECK(received == "ab");
}

TEST_CASE_FIXTURE(TransportFixture, "an answer above the limit is refused, not stored") {
  TestServer server(options(), [](Exchange& exchange) {
    exchange.begin_chunks(500);
    const std::string chunk(std::size_t{1} << 19U, 'x');
    while (exchange.chunk(chunk)) {
    }
    return false;
  });
  const auto response = transport(server)->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kInternal));
}
