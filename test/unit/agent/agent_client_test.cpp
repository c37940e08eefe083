// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_client.h"

#include <doctest/doctest.h>

#include "agent_bed.h"
#include "fakes/skipping_clock.h"
#include "scripted_way.h"

using namespace lpp;
using namespace lpp::agent;
using namespace lpp::testing;
using operation::Kind;
using State = operation::Progress::State;

namespace {

/// An agent and its client, with controllers that a test scripts.
class Bed {
 public:
  explicit Bed(std::vector<FakeTransport*> controllers)
      : agent(kernel, agent_clock, {}),
        client(agent, clock,
               {.find =
                    [controllers](const std::stop_token&) {
                      std::vector<Way> ways;
                      for (auto* one : controllers) ways.push_back(way_to("controller", *one));
                      return Result<std::vector<Way>>(std::move(ways));
                    },
                .program = "test"}) {
    agent.start();
  }
  void run() {
    thread_ = std::jthread([this](const std::stop_token& stop) { client.run(stop); });
  }
  std::string welcome(const std::string& session = "s-1") const {
    return encode(Welcome{.session = session, .base_paths = {base.path()}});
  }

  BaseFolder base;
  node::Kernel kernel;
  FakeClock agent_clock;
  SkippingClock clock;
  Agent agent;
  AgentClient client;

 private:
  std::jthread thread_;
};

std::string orders(std::vector<Order> orders) {
  return encode(Orders{.orders = std::move(orders)});
}

Order numbered(std::int64_t number, Order order) {
  order.number = number;
  return order;
}

std::vector<Tell> tells_of(const FakeTransport& controller) {
  std::vector<Tell> tells;
  for (const auto& request : controller.requests()) {
    if (request.target != kTellTarget) continue;
    auto tell = decode_tell(request.body);
    REQUIRE_MESSAGE(tell.ok(), tell.error().message);
    tells.push_back(*std::move(tell));
  }
  return tells;
}

bool has_told(const FakeTransport& controller, const operation::Operation& operation, State state) {
  return eventually([&] {
    for (const auto& tell : tells_of(controller)) {
      for (const auto& work : tell.works) {
        if (work.operation.id() == operation.id() && work.progress.state == state) return true;
      }
    }
    return false;
  });
}

constexpr std::string_view kHello = kHelloTarget;

k8s::Response heard() { return {.status = 200, .body = "{}"}; }

}  // namespace

TEST_CASE("a session takes orders, tells what became of them, and says which it has taken") {
  FakeTransport controller;
  Bed bed({&controller});
  const auto make = operation_of(bed.base, Kind::kMake);
  controller.on("POST", std::string(kHello)).reply(200, bed.welcome());
  // The controller repeats what it does not know to be taken. Here it says something else, by which
  // it would be seen that it is taken once more.
  const auto again = operation_of(bed.base, Kind::kMake, "pvc-2");
  controller.on("POST", std::string(kPollTarget))
      .reply(200, orders({numbered(1, start(make))}))
      .run([&](const auto&, const auto*, const auto&) -> Result<k8s::Response> {
        CHECK(has_told(controller, make, State::kSucceeded));
        return k8s::Response{
            .status = 200, .body = orders({numbered(1, start(again)), numbered(2, forget(make))})};
      })
      .hang();
  controller.on("POST", std::string(kTellTarget)).always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}"};
  });
  bed.run();
  CHECK(has_told(controller, make, State::kSucceeded));
  CHECK(eventually([&] { return controller.count("POST", std::string(kPollTarget)) == 3; }));
  CHECK(bed.client.connected());
  const auto requests = controller.requests();
  CHECK(requests[0].target == kHello);
  CHECK(decode_hello(requests[0].body)->program == "test");
  const auto tells = tells_of(controller);
  CHECK(tells[0].everything);
  CHECK(tells[0].last);
  CHECK(tells[0].session == "s-1");
  CHECK(tells[0].bases->at(0).path == bed.base.path());
  std::vector<std::int64_t> taken;
  for (const auto& request : requests) {
    if (request.target == kPollTarget) taken.push_back(decode_poll(request.body)->taken);
  }
  CHECK(taken == std::vector<std::int64_t>{0, 1, 2});
  CHECK(bed.base.has("web/pvc-1"));
  CHECK(eventually([&] { return bed.agent.view().on_record == 0; }));
  CHECK_FALSE(bed.base.has("web/pvc-2"));
  CHECK(controller.unexpected() == 0);
}

TEST_CASE("a controller that does not lead, or is not there, is left for the next one") {
  FakeTransport standby;
  FakeTransport dead;
  FakeTransport leader;
  Bed bed({&standby, &dead, &leader});
  standby.on_any().always([](const auto&) { return k8s::Response{.status = 503}; });
  dead.on_any().always([](const auto&) -> Result<k8s::Response> {
    return Error{.code = ErrorCode::kUnavailable, .message = "refused"};
  });
  leader.on("POST", std::string(kHello)).reply(200, bed.welcome());
  leader.on("POST", std::string(kTellTarget)).always([](const auto&) { return heard(); });
  leader.on("POST", std::string(kPollTarget)).hang();
  bed.run();
  CHECK(eventually([&] { return bed.client.connected(); }));
  CHECK(standby.count("POST", "") == 1);
  CHECK(dead.count("POST", "") == 1);
}

TEST_CASE("a session that is over begins anew with all there is, whatever ended it") {
  for (const int status : {410, 401, 403, 400, 503}) {
    for (const bool by_tell : {false, true}) {
      CAPTURE(status);
      CAPTURE(by_tell);
      FakeTransport controller;
      Bed bed({&controller});
      const auto make = operation_of(bed.base, Kind::kMake);
      controller.on("POST", std::string(kHello))
          .reply(200, bed.welcome("s-1"))
          .reply(200, bed.welcome("s-2"));
      auto& polls = controller.on("POST", std::string(kPollTarget))
                        .reply(200, orders({numbered(1, start(make))}));
      controller.on("POST", std::string(kTellTarget)).always([&](const auto& request) {
        const auto tell = decode_tell(request.body);
        const bool ends = by_tell && tell->session == "s-1" && !tell->works.empty();
        return ends ? k8s::Response{.status = status} : heard();
      });
      if (by_tell) {
        polls.hang().hang();
      } else {
        polls.run([&](const auto&, const auto*, const auto&) -> Result<k8s::Response> {
          CHECK(has_told(controller, make, State::kSucceeded));
          return k8s::Response{.status = status};
        });
        polls.hang();
      }
      bed.run();
      REQUIRE(eventually([&] {
        const auto told = tells_of(controller);
        return std::any_of(told.begin(), told.end(),
                           [](const Tell& tell) { return tell.session == "s-2"; });
      }));
      const auto told = tells_of(controller);
      const auto again = std::find_if(told.begin(), told.end(),
                                      [](const Tell& tell) { return tell.session == "s-2"; });
      CHECK(again->everything);
      CHECK(again->bases.has_value());
      REQUIRE(again->works.size() == 1);
      // The numbers of orders begin anew, too.
      CHECK(eventually([&] {
        const auto requests = controller.requests();
        return std::any_of(requests.begin(), requests.end(), [](const k8s::Request& request) {
          if (request.target != kPollTarget) return false;
          const auto poll = decode_poll(request.body);
          return poll->session == "s-2" && poll->taken == 0;
        });
      }));
      CHECK(has_told(controller, make, State::kSucceeded));
      CHECK(controller.unexpected() == 0);
    }
  }
}

TEST_CASE("what was told is told again until it has arrived") {
  FakeTransport controller;
  Bed bed({&controller});
  const auto make = operation_of(bed.base, Kind::kMake);
  controller.on("POST", std::string(kHello)).reply(200, bed.welcome());
  controller.on("POST", std::string(kPollTarget))
      .reply(200, orders({numbered(1, start(make))}))
      .hang();
  controller.on("POST", std::string(kTellTarget))
      .fail(ErrorCode::kUnavailable)
      .reply_retry_after(429, std::chrono::seconds(3))
      .reply(200)
      .reply(500)
      .fail(ErrorCode::kTimeout)
      .fail(ErrorCode::kUnavailable)
      .reply(502)
      .always([](const auto&) { return k8s::Response{.status = 200, .body = "{}"}; });
  bed.run();
  REQUIRE(has_told(controller, make, State::kSucceeded));
  REQUIRE(eventually([&] { return controller.count("POST", std::string(kTellTarget)) >= 8; }));
  const auto requests = controller.requests();
  std::vector<std::string> bodies;
  for (const auto& request : requests) {
    if (request.target == kTellTarget) bodies.push_back(request.body);
  }
  CHECK(bodies[1] == bodies[0]);
  CHECK(bodies[2] == bodies[0]);
  CHECK(bodies[3] != bodies[0]);
  for (const std::size_t again : {4U, 5U, 6U, 7U}) CHECK(bodies[again] == bodies[3]);
  CHECK(controller.count("POST", std::string(kHello)) == 1);
}

TEST_CASE("polls that are cut or time out are repeated, and given up after some") {
  FakeTransport controller;
  Bed bed({&controller});
  controller.on("POST", std::string(kHello))
      .reply(200, bed.welcome())
      .reply(200, bed.welcome("s-2"));
  controller.on("POST", std::string(kPollTarget))
      .fail(ErrorCode::kTimeout)
      .reply(500)
      .reply(200, orders({}))
      .reply_retry_after(429, std::chrono::seconds(1))
      .fail(ErrorCode::kUnavailable)
      .fail(ErrorCode::kUnavailable)
      .hang();
  controller.on("POST", std::string(kTellTarget)).always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}"};
  });
  bed.run();
  REQUIRE(eventually([&] { return controller.count("POST", std::string(kHello)) == 2; }));
  CHECK(eventually([&] { return controller.count("POST", std::string(kPollTarget)) == 7; }));
  CHECK(controller.unexpected() == 0);
}

TEST_CASE("a controller of whatever answers is asked again, and nothing is told to it") {
  FakeTransport controller;
  Bed bed({&controller});
  controller.on("POST", std::string(kHello))
      .reply(401)
      .reply(403)
      .reply(404, "<html>")
      .reply(429)
      .reply(200, "no JSON")
      .reply(200, encode(Welcome{.protocol = kProtocol + 1, .session = "s-0"}))
      .fail(ErrorCode::kTimeout)
      .reply(200, bed.welcome());
  controller.on("POST", std::string(kTellTarget)).always([](const auto&) { return heard(); });
  controller.on("POST", std::string(kPollTarget)).hang();
  bed.run();
  CHECK(eventually([&] { return bed.client.connected(); }));
  CHECK(controller.count("POST", std::string(kHello)) == 8);
  for (const auto& tell : tells_of(controller)) CHECK(tell.session == "s-1");
}

TEST_CASE("work goes on while nobody is there, and its outcome is told to whoever comes") {
  FakeTransport controller;
  Bed bed({&controller});
  const auto make = operation_of(bed.base, Kind::kMake);
  controller.on("POST", std::string(kHello))
      .reply(200, bed.welcome())
      .run([&](const auto&, const auto*, const auto&) -> Result<k8s::Response> {
        CHECK(eventually([&] { return bed.base.has("web/pvc-1"); }));
        return k8s::Response{.status = 200, .body = bed.welcome("s-2")};
      });
  controller.on("POST", std::string(kPollTarget))
      .reply(200, orders({numbered(1, start(make))}))
      .reply(410)
      .hang();
  controller.on("POST", std::string(kTellTarget)).always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}"};
  });
  bed.run();
  CHECK(has_told(controller, make, State::kSucceeded));
}

TEST_CASE("what ends sessions is counted by its class") {
  const auto label = [](ErrorCode code, int status = 0) {
    return label_of(Error{.code = code, .http_status = status});
  };
  CHECK(label(ErrorCode::kUnavailable, 503) == "not_leading");
  CHECK(label(ErrorCode::kUnavailable, 502) == "unreachable");
  CHECK(label(ErrorCode::kUnavailable) == "unreachable");
  CHECK(label(ErrorCode::kExpired, 410) == "expired");
  CHECK(label(ErrorCode::kUnauthorized, 401) == "refused");
  CHECK(label(ErrorCode::kForbidden, 403) == "refused");
  CHECK(label(ErrorCode::kTooManyRequests, 429) == "busy");
  CHECK(label(ErrorCode::kTimeout) == "timeout");
  CHECK(label(ErrorCode::kInvalid, 400) == "protocol");
  CHECK(label(ErrorCode::kCancelled) == "stopped");
  CHECK(label(ErrorCode::kInternal, 404) == "error");
}

TEST_CASE("delays double up to ten seconds and are never the same for all") {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto delay = delay_before(attempt);
    CHECK(delay >= std::chrono::milliseconds(100));
    CHECK(delay <= std::chrono::seconds(10));
    if (attempt > 6) CHECK(delay >= std::chrono::seconds(5));
  }
}
