// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "k8s/leader_elector.h"
#include "unit/k8s/leader_elector_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;

TEST_CASE("on a stop the lease is released after leader work has ended") {
  ElectionFixture f;
  f.on_start = [&] {
    f.clock.advance(1s);
    f.stop.request_stop();
  };
  f.on_stop = [&] {
    CHECK(f.server.holder() == "me");
    CHECK(f.valid_when_stopped == f.clock.now() + 14s);
    f.server.forget_requests();
  };
  f.run();
  CHECK(f.server.methods() == "GET PUT ");
  const json spec = f.server.lease()["spec"];
  CHECK(spec["holderIdentity"] == "");
  CHECK(spec["leaseDurationSeconds"] == 1);
  CHECK(spec["leaseTransitions"] == 0);
  CHECK(spec["renewTime"] == spec["acquireTime"]);
  CHECK(f.elector->valid_until() < f.clock.now());
}

TEST_CASE("a release survives an edit in between and gives way to another holder") {
  ElectionFixture f;
  std::string holder;
  SUBCASE("still ours") { holder = "me"; }
  SUBCASE("of another") { holder = "other"; }
  f.on_start = [&] { f.stop.request_stop(); };
  f.on_stop = [&] {
    bool edited = false;
    f.server.before = [&,
                       edited](const Request& request) mutable -> std::optional<Result<Response>> {
      if (request.method == "PUT" && !std::exchange(edited, true)) f.server.edit(lease_of(holder));
      return std::nullopt;
    };
  };
  f.run();
  CHECK(f.server.holder() == (holder == "me" ? "" : "other"));
}

TEST_CASE("a release does not take long when the server is away") {
  ElectionFixture f;
  TimePoint stopped{};
  f.on_start = [&] { f.stop.request_stop(); };
  f.on_stop = [&] {
    stopped = f.clock.now();
    f.server.before = [&](const Request& request) -> std::optional<Result<Response>> {
      f.clock.advance(request.timeout);
      return Result<Response>(Error{.code = ErrorCode::kTimeout});
    };
  };
  f.run();
  CHECK(f.clock.now() - stopped <= 5s);
}

TEST_CASE("a lease that somebody else deleted or holds is not released") {
  ElectionFixture f;
  json replacement;
  SUBCASE("deleted") {}
  SUBCASE("held by another") { replacement = lease_of("other"); }
  f.on_start = [&] { f.stop.request_stop(); };
  f.on_stop = [&] {
    f.server.edit(replacement);
    f.server.forget_requests();
  };
  f.run();
  CHECK(f.server.methods() == "GET ");
}

TEST_CASE("an acquisition whose answer was lost is released when we stop") {
  ElectionFixture f;
  f.server.after = [&](const Request& request, int) -> std::optional<Result<Response>> {
    if (request.method != "POST") return std::nullopt;
    f.stop.request_stop();
    return Result<Response>(Error{.code = ErrorCode::kTimeout});
  };
  f.run();
  CHECK(f.log.find("start") == std::string::npos);
  CHECK(f.server.holder().empty());
}

TEST_CASE("an elector that is stopped before it leads never calls back") {
  ElectionFixture f;
  SUBCASE("before it runs") { f.stop.request_stop(); }
  SUBCASE("while another leads") {
    f.server.edit(lease_of("other"));
    f.stop_after_requests(1);
  }
  SUBCASE("while it acquires") { f.stop_after_requests(2); }
  f.run();
  CHECK(f.log.find("start") == std::string::npos);
  CHECK(f.log.find("stop") == std::string::npos);
  CHECK(f.server.holder() != "me");
  CHECK(f.elector->valid_until() < f.clock.now());
}

TEST_CASE("a stop ends a request in progress") {
  SystemClock clock;
  FakeTransport transport;
  transport.on_any().hang();
  ApiClient client(transport, clock, {});
  LeaderElector elector(client, clock, options_for("me"), {[] {}, [] {}});
  std::jthread thread([&](const std::stop_token& stop) { elector.run(stop); });
  REQUIRE(transport.wait_for_requests(1));
  thread.request_stop();
  thread.join();  // the request ends by nothing else
}

namespace {

/// A candidate's time: that of the other clock. Knows until when its thread has slept last.
class SleepersClock final : public Clock {
 public:
  explicit SleepersClock(Clock& clock) : clock_(clock), awake_from_(clock.now()) {}
  TimePoint now() const override { return clock_.now(); }
  std::chrono::system_clock::time_point wall_now() const override { return clock_.wall_now(); }
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex) {
    awake_from_ = deadline;
    clock_.wait_until(cv, mutex, deadline);
  }
  TimePoint awake_from() const { return awake_from_; }

 private:
  Clock& clock_;
  std::atomic<TimePoint> awake_from_;
};

/// A candidate on its own thread, whose connection can be cut.
struct Candidate {
  /// Passes on to the server unless cut.
  struct Line final : Transport {
    explicit Line(Transport& server_in) : server(server_in) {}
    Result<Response> round_trip(const Request& request, const std::stop_token& stop) override {
      if (cut) return Error{.code = ErrorCode::kUnavailable, .reason = std::string(kConnectFailed)};
      return server.round_trip(request, stop);
    }
    Result<Response> stream(const Request& request, const ChunkSink& sink,
                            const std::stop_token& stop) override {
      return server.stream(request, sink, stop);
    }
    Transport& server;
    std::atomic<bool> cut = false;
  };

  Candidate(const std::string& identity, Transport& server, Clock& time)
      : clock(time),
        line(server),
        client(line, clock, {}),
        elector(client, clock, options_for(identity),
                {.started_leading = [this] { working = true; },
                 .stopped_leading = [this] { working = false; }}) {}
  void start() {
    thread = std::jthread([this](const std::stop_token& stop) { elector.run(stop); });
  }

  SleepersClock clock;
  Line line;
  ApiClient client;
  std::atomic<bool> working = false;
  LeaderElector elector;
  std::jthread thread;
};

}  // namespace

TEST_CASE("of two electors one leads at a time, through a cut, a return and a release") {
  FakeClock clock;
  LeaseServer server;
  Candidate a("a", server, clock);
  Candidate b("b", server, clock);
  std::atomic<int> violations = 0;
  // What the server does in their threads looks at both.
  const struct Ends {
    Candidate& one;
    Candidate& other;
    ~Ends() {
      one.thread = {};
      other.thread = {};
    }
  } ends{a, b};
  // Whenever the server makes one of them the holder, the other must not believe to be it.
  server.after = [&](const Request& request, int status) -> std::optional<Result<Response>> {
    if (!is_write(request) || status >= 300) return std::nullopt;
    const std::string holder = json::parse(request.body)["spec"]["holderIdentity"];
    if (holder == "a" && (b.elector.valid_until() > clock.now() || b.working)) ++violations;
    if (holder == "b" && (a.elector.valid_until() > clock.now() || a.working)) ++violations;
    return std::nullopt;
  };
  // Time goes on only when both threads have kept up, and what they slept for is not over yet.
  const auto kept_up = [&](const Candidate& candidate) {
    return !candidate.thread.joinable() || clock.now() <= candidate.clock.awake_from();
  };
  const auto tick = [&] {
    clock.advance(100ms);
    return eventually([&] { return kept_up(a) && kept_up(b); });
  };
  const auto eventually_leads = [&](const Candidate& candidate) {
    return eventually([&] { return candidate.working || (tick() && candidate.working); });
  };
  const auto pass = [&](Duration time) {
    for (Duration t = 0s; t < time; t += 100ms) REQUIRE(tick());
  };

  a.start();
  REQUIRE(eventually_leads(a));
  b.start();
  pass(60s);
  CHECK_FALSE(b.working);

  a.line.cut = true;
  REQUIRE(eventually_leads(b));
  CHECK_FALSE(a.working);
  CHECK_FALSE(a.elector.leading());

  a.line.cut = false;
  pass(60s);
  CHECK_FALSE(a.working);

  // A release hands over without waiting for the lease to end.
  b.thread.request_stop();
  b.thread.join();
  CHECK(server.holder() != "b");
  const TimePoint released = clock.now();
  REQUIRE(eventually_leads(a));
  CHECK(clock.now() - released < 10s);
  CHECK(server.holder() == "a");
  CHECK(violations == 0);
}
