// SPDX-License-Identifier: Apache-2.0
#include "k8s/dial.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <atomic>
#include <cstring>
#include <future>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "k8s/transport.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::FakeClock;
using namespace std::chrono_literals;

namespace {

using Addresses = std::vector<Address>;

sockaddr_in ipv4(const char* text, int port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}

Address address(const char* text) {
  const sockaddr_in from = ipv4(text);
  Address made{.size = sizeof from};
  std::memcpy(&made.storage, &from, sizeof from);
  return made;
}

/// Listens; silent() makes it drop whoever else comes.
class Listener {
 public:
  /// `queue` = how many may come, but one, before one is accepted.
  explicit Listener(const char* where, int port = 0, int queue = 0)
      : where_(where), fd_(make_socket(0)) {
    const sockaddr_in at = ipv4(where, port);
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(fd_.get(), queue) == 0);
  }
  int port() const {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    REQUIRE(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    return ntohs(at.sin_port);
  }
  void silent() {
    const sockaddr_in at = ipv4(where_, port());
    for (int i = 0; i < 4; ++i) {
      waiting_.push_back(make_socket(SOCK_NONBLOCK));
      ::connect(waiting_.back().get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
    }
  }

 private:
  static UniqueFd make_socket(int flags) {
    return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  }
  const char* where_;
  UniqueFd fd_;
  std::vector<UniqueFd> waiting_;
};

/// A name service that answers when it is told to.
struct NameService {
  struct State {
    std::atomic<int> asked = 0;
    std::atomic<int> answers = 0;
    std::atomic<bool> fails = false;
  };
  Resolver::LookUp look_up() const {
    return [state = state](const std::string& /*host*/) -> Result<Addresses> {
      const int number = ++state->asked;
      testing::eventually([&] { return state->answers >= number; });
      if (state->fails) return invalid("no such name");
      return Addresses{address("192.0.2.1")};
    };
  }
  void wait_until_asked(int times) const {
    REQUIRE(testing::eventually([&] { return state->asked >= times; }));
  }
  ~NameService() { state->answers = 1000; }
  std::shared_ptr<State> state = std::make_shared<State>();
};

struct Names {
  FakeClock clock;
  NameService service;
  Resolver resolver{clock, service.look_up()};
  CallGuard guard{clock};

  /// resolve() with so much time, which passes until it returns.
  Result<Addresses> resolve(Duration time) {
    auto call = std::async(std::launch::async, [&, deadline = clock.now() + time] {
      CallGuard::Call guarded(guard, deadline, {});
      return resolver.resolve("name", guarded);
    });
    while (call.wait_for(2ms) != std::future_status::ready) clock.advance(100ms);
    return call.get();
  }
};

}  // namespace

TEST_CASE("silent addresses cost a call no more than a moment") {
  SystemClock clock;
  Listener good("127.0.0.4", 0, 8);
  Listener first("127.0.0.2", good.port());
  Listener second("127.0.0.3", good.port());
  first.silent();
  second.silent();
  Resolver resolver(clock, [](const std::string& /*host*/) -> Result<Addresses> {
    return Addresses{address("127.0.0.2"), address("127.0.0.3"), address("127.0.0.4")};
  });
  CallGuard guard(clock);
  const auto dial_soon = [&] {
    // Less than what one silent address is given.
    const CallGuard::Call call(guard, clock.now() + 2500ms, {});
    return dial({.host = "name", .port = good.port()}, resolver, clock, call);
  };
  auto fd = dial_soon();
  for (int i = 0; i < 2 && !fd.ok(); ++i) fd = dial_soon();  // a machine that is busy
  REQUIRE_MESSAGE(fd.ok(), (fd.ok() ? "" : fd.error().message));
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  REQUIRE(::getpeername(fd->get(), reinterpret_cast<sockaddr*>(&peer), &size) == 0);
  CHECK(peer.sin_addr.s_addr == ipv4("127.0.0.4").sin_addr.s_addr);
  CHECK((::fcntl(fd->get(), F_GETFL) & O_NONBLOCK) == 0);
  int limit = 0;
  size = sizeof limit;
  REQUIRE(::getsockopt(fd->get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &size) == 0);
  CHECK(limit == 30'000);
}

TEST_CASE_FIXTURE(Names, "a name service that hangs costs a call its own time only") {
  const TimePoint begin = clock.now();
  const auto late = resolve(5s);
  REQUIRE_FALSE(late.ok());
  CHECK(late.error().reason == kConnectFailed);
  CHECK(clock.now() - begin >= 5s);
  service.wait_until_asked(1);
  // The question that is on its way serves the next call.
  CHECK_FALSE(resolve(5s).ok());
  CHECK(service.state->asked == 1);
  service.state->answers = 1;
  CHECK(resolve(1h).ok());
  CHECK(service.state->asked <= 2);
}

TEST_CASE_FIXTURE(Names, "the last good answer serves when a new one is late or fails") {
  service.state->answers = 1;
  REQUIRE(resolve(1h).ok());
  SUBCASE("late") { CHECK(resolve(10s).ok()); }
  SUBCASE("failing") {
    service.state->fails = true;
    service.state->answers = 2;
    CHECK(resolve(1h).ok());
  }
  service.wait_until_asked(2);
}

TEST_CASE_FIXTURE(Names, "a name that does not exist is said to") {
  service.state->fails = true;
  service.state->answers = 1;
  const auto none = resolve(1h);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "cannot resolve name: no such name");
}

TEST_CASE("an address is not looked up") {
  SystemClock clock;
  Resolver resolver(clock, [](const std::string& host) -> Result<Addresses> {
    return invalid("asked for " + host);
  });
  CallGuard guard(clock);
  const CallGuard::Call call(guard, clock.now() + 10s, {});
  CHECK(resolver.resolve("127.0.0.1", call).ok());
  CHECK(resolver.resolve("fd00::1", call).ok());
}
