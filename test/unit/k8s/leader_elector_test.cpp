#include "k8s/leader_elector.h"

#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_transport.h"
#include "fakes/skipping_clock.h"

using namespace lpp;           // NOLINT(google-build-using-namespace): a test file
using namespace lpp::k8s;      // NOLINT(google-build-using-namespace): a test file
using namespace lpp::testing;  // NOLINT(google-build-using-namespace): a test file
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr const char* kPath = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";

LeaderElectorOptions options_for(const std::string& identity) {
  return {.ns = "ns", .lease_name = "lock", .identity = identity};
}

json lease_of(const std::string& holder, int seconds = 15, int transitions = 3) {
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", "lock"}, {"namespace", "ns"}}},
          {"spec",
           {{"holderIdentity", holder},
            {"leaseDurationSeconds", seconds},
            {"acquireTime", "2020-01-01T00:00:00.000000Z"},
            {"renewTime", "2020-01-01T00:00:00.000000Z"},
            {"leaseTransitions", transitions}}}};
}

/// An API server with one Lease in memory. Thread-safe. Hooks stand in for faults and for other
/// people; they run without the lock and may use the server.
class LeaseServer final : public Transport {
 public:
  /// Called before a request is handled; an answer replaces the handling.
  std::function<std::optional<Result<Response>>(const Request&)> before;
  /// Called after a request was handled, with its status; may replace the answer.
  std::function<std::optional<Result<Response>>(const Request&, int status)> after;

  /// As somebody with kubectl would: a new version each time; null deletes.
  void edit(json lease) {
    MutexLock lock(mutex_);
    if (!lease.is_null()) lease["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease_ = std::move(lease);
  }
  json lease() const {
    MutexLock lock(mutex_);
    return lease_;
  }
  std::string holder() const {
    const json lease = this->lease();
    return lease.is_null() ? "" : lease["spec"]["holderIdentity"].get<std::string>();
  }
  std::vector<Request> requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }
  std::string methods() const {
    std::string text;
    for (const auto& request : requests()) text += request.method + " ";
    return text;
  }
  void forget_requests() {
    MutexLock lock(mutex_);
    requests_.clear();
  }

  Result<Response> round_trip(const Request& request, const std::stop_token&) override {
    {
      MutexLock lock(mutex_);
      requests_.push_back(request);
    }
    if (before) {
      if (auto answer = before(request)) return *std::move(answer);
    }
    const Response response = handle(request);
    if (after) {
      if (auto answer = after(request, response.status)) return *std::move(answer);
    }
    return response;
  }
  Result<Response> stream(const Request&, const ChunkSink&, const std::stop_token&) override {
    return cancelled();
  }

 private:
  Response handle(const Request& request) {
    MutexLock lock(mutex_);
    const bool collection = request.target == kPath;
    if (!collection && request.target != std::string(kPath) + "/lock") return {.status = 400};
    if (request.method == "POST" && collection) {
      if (!lease_.is_null())
        return {.status = 409, .body = R"({"kind":"Status","reason":"AlreadyExists"})"};
      return store(json::parse(request.body), 201);
    }
    if (lease_.is_null()) return {.status = 404};
    if (request.method == "GET") return {.status = 200, .body = lease_.dump()};
    if (request.method != "PUT") return {.status = 405};
    json lease = json::parse(request.body);
    if (lease["metadata"].value("resourceVersion", "") != lease_["metadata"]["resourceVersion"]) {
      return {.status = 409, .body = R"({"kind":"Status","reason":"Conflict"})"};
    }
    return store(std::move(lease), 200);
  }
  Response store(json lease, int status) LPP_REQUIRES(mutex_) {
    lease["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease_ = std::move(lease);
    return {.status = status, .body = lease_.dump()};
  }

  mutable Mutex mutex_;
  json lease_ LPP_GUARDED_BY(mutex_);
  int version_ LPP_GUARDED_BY(mutex_) = 0;
  std::vector<Request> requests_ LPP_GUARDED_BY(mutex_);
};

bool is_write(const Request& request) { return request.method != "GET"; }

/// One elector on the test's own thread; time passes when it sleeps. Hooks end the run.
struct Fixture {
  Fixture() {
    callbacks.started_leading = [this] {
      log += "start ";
      leading_in_callback = elector->leading();
      if (on_start) on_start();
    };
    callbacks.stopped_leading = [this] {
      log += "stop ";
      stopped_at = clock.now();
      valid_when_stopped = elector->valid_until();
      CHECK_FALSE(elector->leading());
      if (on_stop) on_stop();
    };
    callbacks.new_leader = [this](const std::string& identity) { log += "(" + identity + ") "; };
    elector.emplace(client, clock, options_for("me"), callbacks);
  }

  void run() { elector->run(stop.get_token()); }
  /// Stops after n requests have been handled, the release's not counted.
  void stop_after_requests(std::size_t n) {
    server.after = [this, n](const Request&, int) -> std::optional<Result<Response>> {
      if (server.requests().size() == n) stop.request_stop();
      return std::nullopt;
    };
  }

  SkippingClock clock;
  LeaseServer server;
  ApiClient client{server, clock, {}};
  LeaderElector::Callbacks callbacks;
  std::string log;
  std::function<void()> on_start;
  std::function<void()> on_stop;
  bool leading_in_callback = false;
  TimePoint stopped_at{};
  TimePoint valid_when_stopped{};
  std::stop_source stop;
  std::optional<LeaderElector> elector;
};

}  // namespace

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
  Fixture f;
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
  Fixture f;
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

TEST_CASE("a dead holder is given a full lease duration from when we first saw its record") {
  Fixture f;
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
  for (const auto& [seconds, least, most] :
       {std::tuple{60, 60s, 65s}, std::tuple{1, 1s, 6s}, std::tuple{0, 0s, 1s}}) {
    CAPTURE(seconds);
    Fixture f;
    f.server.edit(lease_of("other", seconds));
    const TimePoint begun = f.clock.now();
    f.on_start = [&] {
      CHECK(f.clock.now() - begun >= least);
      CHECK(f.clock.now() - begun < most);
      f.stop.request_stop();
    };
    f.run();
    CHECK(f.log.ends_with("start stop "));
  }
}

TEST_CASE("a holder whose record changes is never taken over, however old its times are") {
  Fixture f;
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
  Fixture f;
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
    Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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

TEST_CASE("on a stop the lease is released after leader work has ended") {
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  Fixture f;
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
  const auto asked = std::chrono::steady_clock::now();
  thread.request_stop();
  thread.join();
  CHECK(std::chrono::steady_clock::now() - asked < 2s);
}

namespace {

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

  Candidate(const std::string& identity, Transport& server, Clock& clock)
      : line(server),
        client(line, clock, {}),
        elector(client, clock, options_for(identity),
                {.started_leading = [this] { working = true; },
                 .stopped_leading = [this] { working = false; }}) {}
  void start() {
    thread = std::jthread([this](const std::stop_token& stop) { elector.run(stop); });
  }

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
  // Whenever the server makes one of them the holder, the other must not believe to be it.
  server.after = [&](const Request& request, int status) -> std::optional<Result<Response>> {
    if (!is_write(request) || status >= 300) return std::nullopt;
    const std::string holder = json::parse(request.body)["spec"]["holderIdentity"];
    if (holder == "a" && (b.elector.valid_until() > clock.now() || b.working)) ++violations;
    if (holder == "b" && (a.elector.valid_until() > clock.now() || a.working)) ++violations;
    return std::nullopt;
  };
  // Time goes on only when the leader's thread has kept up: renewed in time, or given up when cut.
  const auto kept_up = [&](const Candidate& candidate) {
    const TimePoint now = clock.now();
    const TimePoint until = candidate.elector.valid_until();
    return !candidate.working ||
           (candidate.line.cut ? now < until - 5s + 100ms : now + 12s <= until);
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

TEST_CASE("a fenced transport passes reads and refuses writes outside the lease") {
  FakeClock clock;
  FakeTransport inner;
  inner.on_any().always([](const Request&) { return Response{.status = 200}; });
  TimePoint valid_until = TimePoint::min();
  FencedTransport fenced(inner, clock, [&] { return valid_until; });
  const auto ask = [&](const std::string& method, std::chrono::milliseconds timeout = 10s) {
    return fenced.round_trip({.method = method, .target = "/x", .timeout = timeout}, {});
  };
  SUBCASE("never held") {}
  SUBCASE("over now") { valid_until = clock.now(); }
  SUBCASE("less than can be given to a request") { valid_until = clock.now() + 999us; }
  CHECK(ask("GET").ok());
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    CAPTURE(method);
    const auto refused = ask(method);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().is(ErrorCode::kUnavailable));
    CHECK(refused.error().reason == kNotLeader);
    CHECK(refused.error().message.find("lease") != std::string::npos);
  }
  CHECK(inner.requests().size() == 1);
  const auto sink = [](std::string_view) { return true; };
  CHECK(fenced.stream({.method = "GET", .target = "/x"}, sink, {}).ok());
  CHECK_FALSE(fenced.stream({.method = "POST", .target = "/x"}, sink, {}).ok());
}

TEST_CASE("a fenced transport lets no write outlive the lease") {
  FakeClock clock;
  FakeTransport inner;
  inner.on_any().always([](const Request&) { return Response{.status = 200}; });
  TimePoint valid_until = clock.now() + 3s;
  FencedTransport fenced(inner, clock, [&] { return valid_until; });
  const auto timeout_of = [&](const std::string& method, std::chrono::milliseconds timeout) {
    CHECK(fenced.round_trip({.method = method, .target = "/x", .body = "b", .timeout = timeout}, {})
              .ok());
    CHECK(inner.requests().back().body == "b");
    return inner.requests().back().timeout;
  };
  CHECK(timeout_of("POST", 10s) == 3s);
  CHECK(timeout_of("PUT", 2s) == 2s);
  CHECK(timeout_of("GET", 10s) == 10s);
  clock.advance(2s);
  CHECK(timeout_of("DELETE", 2s) == 1s);
  valid_until = TimePoint::max();
  CHECK(timeout_of("PATCH", 10s) == 10s);
}
