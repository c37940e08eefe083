// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>

#include "fakes/fake_clock.h"
#include "k8s/call_guard.h"
#include "k8s/client_pool.h"
#include "k8s/dial.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::FakeClock;
using namespace std::chrono_literals;

namespace {

struct Numbered {
  explicit Numbered(int n) : number(n) {}
  int number;
};

bool any_one(const Numbered& /*candidate*/) { return true; }

/// Two connected sockets; a thread that reads from the first waits until it is shut down.
struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
    mine.reset(fds[0]);
    theirs.reset(fds[1]);
  }
  std::future<ssize_t> read_later() {
    return std::async(std::launch::async, [this] {
      char byte = 0;
      return ::read(mine.get(), &byte, 1);
    });
  }
  UniqueFd mine;
  UniqueFd theirs;
};

}  // namespace

TEST_CASE("the connection used last is handed out first") {
  FakeClock clock;
  ClientPool<Numbered> pool(clock, 60s);
  CHECK(pool.take(any_one) == nullptr);
  for (int i = 1; i <= 3; ++i) pool.give_back(std::make_unique<Numbered>(i));
  CHECK(pool.take(any_one)->number == 3);
  CHECK(pool.take(any_one)->number == 2);
  pool.give_back(std::make_unique<Numbered>(4));
  CHECK(pool.take(any_one)->number == 4);
  CHECK(pool.size() == 1);
}

TEST_CASE("connections that were idle for long, or are not usable, are dropped") {
  FakeClock clock;
  ClientPool<Numbered> pool(clock, 60s);
  pool.give_back(std::make_unique<Numbered>(1));
  clock.advance(30s);
  pool.give_back(std::make_unique<Numbered>(2));
  clock.advance(30s);
  CHECK(pool.take(any_one)->number == 2);
  CHECK(pool.take(any_one) == nullptr);
  for (int i = 1; i <= 4; ++i) pool.give_back(std::make_unique<Numbered>(i));
  CHECK(pool.take([](const Numbered& one) { return one.number == 2; })->number == 2);
  CHECK(pool.size() == 1);
  pool.clear();
  CHECK(pool.size() == 0);
}

TEST_CASE("a guarded read ends at its deadline, not before") {
  FakeClock clock;
  CallGuard guard(clock);
  SocketPair sockets;
  CallGuard::Call call(guard, clock.now() + 10s, {});
  call.attach(sockets.mine.get());
  auto read = sockets.read_later();
  clock.advance(9s);
  CHECK(read.wait_for(30ms) == std::future_status::timeout);
  CHECK(call.ended() == CallGuard::Ended::kNo);
  clock.advance(1s);
  REQUIRE(read.wait_for(60s) == std::future_status::ready);
  CHECK(read.get() == 0);
  CHECK(call.detach() == CallGuard::Ended::kDeadline);
}

TEST_CASE("deadlines can be moved, and the earliest of many calls is kept") {
  FakeClock clock;
  CallGuard guard(clock);
  SocketPair early;
  SocketPair late;
  CallGuard::Call late_call(guard, clock.now() + 100s, {});
  late_call.attach(late.mine.get());
  CallGuard::Call early_call(guard, TimePoint::max(), {});
  early_call.attach(early.mine.get());
  early_call.set_deadline(clock.now() + 5s);
  auto early_read = early.read_later();
  auto late_read = late.read_later();
  clock.advance(5s);
  REQUIRE(early_read.wait_for(60s) == std::future_status::ready);
  CHECK(late_read.wait_for(20ms) == std::future_status::timeout);
  late_call.set_deadline(clock.now() + 1s);
  clock.advance(1s);
  CHECK(late_read.wait_for(60s) == std::future_status::ready);
}

TEST_CASE("a stop ends a guarded read at once, also one that begins after it") {
  FakeClock clock;
  CallGuard guard(clock);
  std::stop_source stop;
  SUBCASE("before") {
    SocketPair sockets;
    CallGuard::Call call(guard, TimePoint::max(), stop.get_token());
    call.attach(sockets.mine.get());
    auto read = sockets.read_later();
    CHECK(read.wait_for(20ms) == std::future_status::timeout);
    stop.request_stop();
    REQUIRE(read.wait_for(60s) == std::future_status::ready);
    CHECK(call.detach() == CallGuard::Ended::kStop);
  }
  SUBCASE("after") {
    stop.request_stop();
    SocketPair sockets;
    CallGuard::Call call(guard, TimePoint::max(), stop.get_token());
    CHECK(call.ended() == CallGuard::Ended::kStop);
    call.attach(sockets.mine.get());
    CHECK(sockets.read_later().get() == 0);
  }
}

TEST_CASE("a detached socket is left alone") {
  FakeClock clock;
  CallGuard guard(clock);
  std::stop_source stop;
  SocketPair sockets;
  CallGuard::Call call(guard, TimePoint::max(), stop.get_token());
  call.attach(sockets.mine.get());
  CHECK(call.detach() == CallGuard::Ended::kNo);
  stop.request_stop();
  auto read = sockets.read_later();
  CHECK(read.wait_for(20ms) == std::future_status::timeout);
  REQUIRE(::write(sockets.theirs.get(), "x", 1) == 1);
  CHECK(read.get() == 1);
}

TEST_CASE("hosts and ports are joined with brackets around IPv6 addresses") {
  CHECK(host_and_port("h", 1) == "h:1");
  CHECK(host_and_port("fd00::1", 443) == "[fd00::1]:443");
}
