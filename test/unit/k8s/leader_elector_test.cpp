// SPDX-License-Identifier: Apache-2.0
#include "k8s/leader_elector.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "k8s/rate_limiter.h"
#include "unit/k8s/leader_elector_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;

TEST_CASE("the times of an election must leave room for each other") {
  const auto with = [](std::chrono::seconds lease, std::chrono::seconds renew,
                       std::chrono::seconds retry) {
    auto options = options_for("me");
    options.lease_duration = lease;
    options.renew_deadline = renew;
    options.retry_period = retry;
    return LeaderElector::validate(options).ok();
  };
  CHECK(with(15s, 10s, 2s));
  CHECK(with(11s, 10s, 8s));
  CHECK_FALSE(with(10s, 10s, 2s));
  CHECK_FALSE(with(15s, 12s, 10s));
  CHECK(with(15s, 13s, 10s));
  CHECK_FALSE(with(15s, 2s, 2s));
  CHECK_FALSE(with(15s, 10s, 0s));
  CHECK_FALSE(with(-1s, -2s, -3s));
  for (const auto& member : {&LeaderElectorOptions::ns, &LeaderElectorOptions::lease_name,
                             &LeaderElectorOptions::identity}) {
    auto options = options_for("me");
    options.*member = "";
    CHECK_FALSE(LeaderElector::validate(options).ok());
  }
}

TEST_CASE("without a lease an elector creates it and leads") {
  ElectionFixture f;
  json created;
  f.on_start = [&] {
    created = f.server.lease();
    CHECK(f.elector->valid_until() == f.clock.now() + 15s);
    f.stop.request_stop();
  };
  CHECK_FALSE(f.elector->leading());
  CHECK(f.elector->valid_until() < f.clock.now());
  f.run();
  CHECK(f.log == "(me) start stop ");
  CHECK(f.leading_in_callback);
  const json& spec = created["spec"];
  CHECK(spec["holderIdentity"] == "me");
  CHECK(spec["leaseDurationSeconds"] == 15);
  CHECK(spec["leaseTransitions"] == 0);
  CHECK(spec["acquireTime"] == spec["renewTime"]);
  CHECK(spec["renewTime"].get<std::string>().size() ==
        std::string_view("2026-11-20T09:15:16.148207Z").size());
  CHECK(created["metadata"]["name"] == "lock");
}

TEST_CASE("a leader renews every retry period with one write and keeps what others put there") {
  ElectionFixture f;
  std::vector<TimePoint> times;
  f.on_start = [&] {
    json lease = f.server.lease();
    lease["metadata"]["labels"]["team"] = "x";
    lease["spec"]["strategy"] = "OldestEmulationVersion";
    f.server.edit(std::move(lease));
    f.server.forget_requests();
    f.server.after = [&](const Request&, int) -> std::optional<Result<Response>> {
      times.push_back(f.clock.now());
      if (times.size() == 6) f.stop.request_stop();
      return std::nullopt;
    };
  };
  json last;
  f.on_stop = [&] { last = f.server.lease(); };
  f.run();
  // The edit costs a conflict, a read and a second write, once.
  CHECK(f.server.methods().starts_with("PUT GET PUT PUT PUT PUT "));
  CHECK(times[3] - times[2] == 2s);
  CHECK(times[4] - times[3] == 2s);
  CHECK(times[5] - times[4] == 2s);
  CHECK(f.log == "(me) start stop ");
  CHECK(last["metadata"]["labels"]["team"] == "x");
  CHECK(last["spec"]["strategy"] == "OldestEmulationVersion");
  CHECK(last["spec"]["leaseTransitions"] == 0);
  CHECK(last["spec"]["acquireTime"] < last["spec"]["renewTime"]);
  CHECK(f.valid_when_stopped == times[5] + 15s);
}

TEST_CASE("a client-side limit that others have used up does not cost the lease") {
  ElectionFixture f;
  RateLimiter limiter(f.clock, 0.0001, 1);
  ApiClient client(f.server, f.clock, {.rate_limiter = &limiter});
  f.elector.emplace(client, f.clock, options_for("me"), f.callbacks);
  f.on_start = [&] {
    limiter.acquire(TimePoint::max(), {});
    f.server.forget_requests();
    f.stop_after_requests(20);
  };
  f.run();
  CHECK(f.log == "(me) start stop ");
  CHECK(f.server.holder().empty());
}

TEST_CASE("a dead holder is given a full lease duration from when we first saw its record") {
  ElectionFixture f;
  f.server.edit(lease_of("other", 15));
  const TimePoint begun = f.clock.now();
  TimePoint won{};
  json lease;
  f.on_start = [&] {
    won = f.clock.now();
    lease = f.server.lease();
    f.stop.request_stop();
  };
  f.run();
  CHECK(won - begun >= 15s);
  CHECK(won - begun < 15s + 4400ms);
  CHECK(f.log == "(other) (me) start stop ");
  CHECK(lease["spec"]["leaseTransitions"] == 4);
  CHECK(lease["spec"]["acquireTime"] != "2020-01-01T00:00:00.000000Z");
}

TEST_CASE("the duration of the holder's record counts, not ours") {
  struct Row {
    int seconds;
    std::chrono::seconds least;
    std::chrono::seconds most;
  };
  for (const Row& row : {Row{60, 60s, 65s}, Row{1, 1s, 6s}, Row{0, 0s, 1s}}) {
    CAPTURE(row.seconds);
    ElectionFixture f;
    f.server.edit(lease_of("other", row.seconds));
    const TimePoint begun = f.clock.now();
    f.on_start = [&] {
      CHECK(f.clock.now() - begun >= row.least);
      CHECK(f.clock.now() - begun < row.most);
      f.stop.request_stop();
    };
    f.run();
    CHECK(f.log.ends_with("start stop "));
  }
}

TEST_CASE("a holder whose record changes is never taken over, however old its times are") {
  ElectionFixture f;
  f.server.edit(lease_of("other"));
  int reads = 0;
  std::vector<TimePoint> times;
  f.server.before = [&](const Request& request) -> std::optional<Result<Response>> {
    CHECK_FALSE(is_write(request));
    times.push_back(f.clock.now());
    json lease = lease_of("other");
    lease["spec"]["renewTime"] = "2020-01-01T00:00:00.00000" + std::to_string(reads / 3 % 10) + "Z";
    f.server.edit(lease);
    if (++reads == 100) f.stop.request_stop();
    return std::nullopt;
  };
  f.run();
  CHECK(f.log == "(other) ");
  CHECK(f.server.holder() == "other");
  for (std::size_t i = 1; i < times.size(); ++i) {
    CHECK(times[i] - times[i - 1] >= 2s);
    CHECK(times[i] - times[i - 1] < 4400ms);
  }
}

TEST_CASE("a lease that nobody holds is taken at once") {
  ElectionFixture f;
  json lease;
  SUBCASE("released") { lease = lease_of("", 1); }
  SUBCASE("never held") {
    lease = lease_of("");
    lease["spec"] = json::object();
  }
  SUBCASE("without a spec") {
    lease = lease_of("");
    lease.erase("spec");
  }
  SUBCASE("with a null spec") {
    lease = lease_of("");
    lease["spec"] = nullptr;
  }
  SUBCASE("with nulls") {
    lease = lease_of("");
    for (auto& field : lease["spec"]) field = nullptr;
  }
  SUBCASE("with fields of wrong types") {
    lease = lease_of("");
    lease["spec"] = {{"holderIdentity", 7},
                     {"leaseDurationSeconds", "x"},
                     {"leaseTransitions", -4},
                     {"acquireTime", json::array()}};
  }
  SUBCASE("with as many transitions as fit") { lease = lease_of("", 1, 2147483647); }
  f.server.edit(lease);
  const TimePoint begun = f.clock.now();
  json taken;
  f.on_start = [&] {
    CHECK(f.clock.now() == begun);
    taken = f.server.lease();
    f.stop.request_stop();
  };
  f.run();
  CHECK(f.log == "(me) start stop ");
  CHECK(taken["spec"]["holderIdentity"] == "me");
  CHECK(taken["spec"]["leaseDurationSeconds"] == 15);
  CHECK(taken["spec"]["leaseTransitions"] > 0);
  CHECK(taken["spec"]["leaseTransitions"] <= 2147483647);
}

TEST_CASE("a holder that does not say for how long is given our own lease duration") {
  for (const json& duration : {json(nullptr), json("x"), json(-5), json(1e9), json(99999999999)}) {
    ElectionFixture f;
    json lease = lease_of("other");
    lease["spec"]["leaseDurationSeconds"] = duration;
    f.server.edit(lease);
    const TimePoint begun = f.clock.now();
    f.on_start = [&] {
      CHECK(f.clock.now() - begun >= 15s);
      CHECK(f.clock.now() - begun < 20s);
      f.stop.request_stop();
    };
    f.run();
  }
}

TEST_CASE("a lease that already names us is ours without a transition") {
  ElectionFixture f;
  f.server.edit(lease_of("me"));
  json lease;
  f.on_start = [&] {
    lease = f.server.lease();
    f.stop.request_stop();
  };
  f.run();
  CHECK(lease["spec"]["leaseTransitions"] == 3);
  CHECK(lease["spec"]["acquireTime"] == "2020-01-01T00:00:00.000000Z");
}

TEST_CASE("validity is counted from before the request was sent") {
  ElectionFixture f;
  const TimePoint sent = f.clock.now();
  f.server.after = [&](const Request&, int) -> std::optional<Result<Response>> {
    f.clock.advance(1s);  // the answer takes its time
    return std::nullopt;
  };
  f.on_start = [&] {
    // One second for the read, then the create was sent.
    CHECK(f.elector->valid_until() == sent + 1s + 15s);
    f.stop.request_stop();
  };
  f.run();
}

TEST_CASE("leadership is given up in time when the lease cannot be renewed, and won again later") {
  ElectionFixture f;
  TimePoint last_renewal{};
  bool broken = false;
  std::function<Result<Response>(const Request&)> fault;
  SUBCASE("500") {
    fault = [](const Request&) { return Response{.status = 500}; };
  }
  SUBCASE("429") {
    fault = [](const Request&) { return Response{.status = 429}; };
  }
  SUBCASE("429 with Retry-After") {
    fault = [](const Request&) { return Response{.status = 429, .retry_after = 1s}; };
  }
  SUBCASE("forbidden") {
    fault = [](const Request&) { return Response{.status = 403}; };
  }
  SUBCASE("refused") {
    fault = [](const Request&) -> Result<Response> {
      return Error{.code = ErrorCode::kUnavailable, .reason = std::string(kConnectFailed)};
    };
  }
  SUBCASE("cut") {
    fault = [](const Request&) -> Result<Response> {
      return Error{.code = ErrorCode::kUnavailable};
    };
  }
  SUBCASE("silent") {
    fault = [&f](const Request& request) -> Result<Response> {
      f.clock.advance(request.timeout);
      return Error{.code = ErrorCode::kTimeout};
    };
  }
  SUBCASE("no JSON") {
    fault = [](const Request&) { return Response{.status = 200, .body = "?"}; };
  }
  int starts = 0;
  f.on_start = [&] {
    if (++starts == 2) {
      f.stop.request_stop();
      return;
    }
    last_renewal = f.clock.now();
    f.clock.advance(500ms);
    broken = true;
  };
  f.on_stop = [&] {
    if (starts == 2) return;
    broken = false;
    CHECK(f.clock.now() - last_renewal > 9s);
    CHECK(f.clock.now() - last_renewal <= 10s + 1ms);
    CHECK(f.clock.now() < f.valid_when_stopped);
    CHECK(f.valid_when_stopped == last_renewal + 15s);
    // Leader work that takes this long still ends before anybody else can lead.
    f.clock.advance(4s);
    CHECK(f.clock.now() < f.elector->valid_until());
  };
  f.server.before = [&](const Request& request) -> std::optional<Result<Response>> {
    CHECK(request.timeout <= 5s);
    if (!broken) return std::nullopt;
    return fault(request);
  };
  f.run();
  CHECK(f.log == "(me) start stop start stop ");
}

TEST_CASE("between two lives as a leader nothing is valid") {
  ElectionFixture f;
  bool broken = false;
  int starts = 0;
  f.on_start = [&] {
    broken = true;
    if (++starts == 2) f.stop.request_stop();
  };
  f.server.before = [&](const Request&) -> std::optional<Result<Response>> {
    if (!broken) return std::nullopt;
    if (f.log.ends_with("stop ")) {
      CHECK(f.elector->valid_until() < f.clock.now());
      CHECK_FALSE(f.elector->leading());
      broken = false;
    }
    return Response{.status = 500};
  };
  f.run();
  CHECK(starts == 2);
}

TEST_CASE("leadership is lost at once when somebody else is seen to hold the lease") {
  ElectionFixture f;
  const TimePoint begun = f.clock.now();
  f.on_start = [&] { f.server.edit(lease_of("thief")); };
  f.on_stop = [&] {
    CHECK(f.clock.now() - begun <= 2s);
    CHECK(f.elector->valid_until() < f.clock.now());
    f.stop.request_stop();
  };
  f.run();
  CHECK(f.log == "(me) start (thief) stop ");
  CHECK(f.server.holder() == "thief");  // and is not released by us
}

TEST_CASE("a lease that is deleted or emptied by hand is taken again without a break") {
  ElectionFixture f;
  bool deleted = false;
  SUBCASE("deleted") { deleted = true; }
  SUBCASE("emptied") {}
  f.on_start = [&] {
    f.server.edit(deleted ? json() : lease_of("", 1));
    f.server.forget_requests();
    f.stop_after_requests(4);
  };
  json last;
  f.on_stop = [&] { last = f.server.lease(); };
  f.run();
  CHECK(f.server.methods().starts_with(deleted ? "PUT GET POST PUT " : "PUT GET PUT PUT "));
  CHECK(f.log == (deleted ? "(me) start stop " : "(me) start (me) stop "));
  CHECK(last["spec"]["holderIdentity"] == "me");
  CHECK(last["spec"]["leaseTransitions"] == (deleted ? 0 : 4));
}

TEST_CASE("a lease that somebody else creates first is not ours") {
  ElectionFixture f;
  f.server.before = [&](const Request& request) -> std::optional<Result<Response>> {
    if (request.method == "POST") f.server.edit(lease_of("faster"));
    if (f.server.requests().size() == 3) f.stop.request_stop();
    return std::nullopt;
  };
  f.run();
  CHECK(f.log == "(faster) ");
  CHECK(f.server.methods() == "GET POST GET ");
  CHECK(f.server.holder() == "faster");
}

TEST_CASE("a renewal that was applied without an answer is recognised as ours") {
  ElectionFixture f;
  int lost = 0;
  f.on_start = [&] {
    f.server.forget_requests();
    f.server.after = [&](const Request& request, int status) -> std::optional<Result<Response>> {
      if (is_write(request) && status == 200 && ++lost <= 2) {
        f.clock.advance(1s);
        return Result<Response>(Error{.code = ErrorCode::kTimeout});
      }
      if (f.server.requests().size() == 6) f.stop.request_stop();
      return std::nullopt;
    };
  };
  json last;
  f.on_stop = [&] { last = f.server.lease(); };
  f.run();
  // Write lost; read shows us; write lost again; next time the old version conflicts, read, write.
  CHECK(f.server.methods().starts_with("PUT GET PUT PUT GET PUT "));
  CHECK(f.log == "(me) start stop ");
  CHECK(last["spec"]["leaseTransitions"] == 0);
}

TEST_CASE("a refusal that does not heal is told until something succeeds; an outage is not one") {
  ElectionFixture f;
  int answers = 0;
  f.server.before = [&](const Request&) -> std::optional<Result<Response>> {
    switch (++answers) {
      case 1: return Result<Response>(Response{.status = 500});
      case 2: CHECK_FALSE(f.elector->refused()); return Result<Response>(Response{.status = 403});
      case 3:
        REQUIRE(f.elector->refused());
        CHECK(f.elector->refused()->find("get, create and update on leases") != std::string::npos);
        return Result<Response>(Error{.code = ErrorCode::kUnavailable});
      case 4: CHECK(f.elector->refused()); return std::nullopt;
      default: return std::nullopt;
    }
  };
  f.on_start = [&] {
    CHECK_FALSE(f.elector->refused());
    CHECK(f.elector->leader() == "me");
    f.stop.request_stop();
  };
  f.run();
  CHECK(answers > 4);
}

TEST_CASE("a namespace that does not exist is a refusal with its own advice") {
  ElectionFixture f;
  f.server.before = [&](const Request& request) -> std::optional<Result<Response>> {
    if (request.method == "POST") f.stop.request_stop();
    return Result<Response>(Response{.status = 404});
  };
  f.run();
  REQUIRE(f.elector->refused());
  CHECK(f.elector->refused()->find("create that namespace") != std::string::npos);
}
