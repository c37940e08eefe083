// SPDX-License-Identifier: Apache-2.0
#include "app/health_checks.h"

#include <doctest/doctest.h>

#include "unit/app/subjects_fixture.h"

using namespace lpp;
using namespace lpp::app;
using namespace lpp::testing;
using namespace std::chrono_literals;

namespace {

/// "name: error" of the checks that fail.
std::vector<std::string> failing(const std::vector<HealthCheck>& checks) {
  std::vector<std::string> out;
  for (const HealthCheck& check : checks) {
    if (const auto result = check.check(); !result.ok()) {
      out.push_back(check.name + ": " + result.error().message);
    }
  }
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the daemon is alive while nothing is stuck, however long nothing happens") {
  SubjectsFixture fixture;
  const Subjects subjects = fixture.subjects();
  const auto checks = live_checks(subjects);
  CHECK(failing(checks) == Lines{});  // not begun yet
  fixture.controller.start_working();
  fixture.cache_stats.last_progress = fixture.clock.now();
  for (int i = 0; i < 14; ++i) fixture.clock.advance(1min);
  CHECK(failing(checks) == Lines{});
  fixture.controller.stop_working();
}

TEST_CASE("an informer that does not come back from a handler or a call is not alive") {
  SubjectsFixture fixture;
  const Subjects subjects = fixture.subjects();
  const auto checks = live_checks(subjects);
  fixture.cache_stats.last_progress = fixture.clock.now();
  fixture.cache_stats.in_sink_since = fixture.clock.now();
  fixture.clock.advance(60s);
  CHECK(failing(checks) == Lines{});
  fixture.clock.advance(1s);
  CHECK(
      failing(checks) ==
      Lines{"informers: informer persistentvolumes has been busy with what it received for 61 s"});
  fixture.cache_stats.in_sink_since = TimePoint::max();
  CHECK(failing(checks) == Lines{});
  fixture.clock.advance(14min);
  CHECK(failing(checks) == Lines{"informers: informer persistentvolumes has neither listed nor "
                                 "watched anything for 901 s"});
}

TEST_CASE("readiness says what is missing") {
  SubjectsFixture fixture;
  fixture.synced = false;
  const Subjects subjects = fixture.subjects();
  const auto checks = ready_checks(subjects);
  CHECK(failing(checks) ==
        Lines{"config: no configuration yet", "caches: not listed yet: persistentvolumes"});
  REQUIRE(fixture.config.start().ok());
  CHECK(failing(checks) == Lines{"caches: not listed yet: persistentvolumes"});
  fixture.synced = true;
  CHECK(failing(checks) == Lines{});
  fixture.stopping = true;
  CHECK(failing(checks) == Lines{"shutdown: stopping"});
}

TEST_CASE("a lease that is refused is said with what to do, and a standby is ready") {
  SubjectsFixture fixture;
  REQUIRE(fixture.config.start().ok());
  k8s::LeaderElector elector(fixture.client, fixture.clock,
                             {.ns = "ns", .lease_name = "lease", .identity = "me"},
                             {.started_leading = [] {}, .stopped_leading = [] {}});
  Subjects subjects = fixture.subjects();
  subjects.elector = &elector;
  const auto checks = ready_checks(subjects);
  CHECK(failing(checks) == Lines{});
  std::stop_source stop;
  fixture.server.on("GET", "/leases/").run([&](const auto&, const auto*, const auto&) {
    stop.request_stop();
    return Result<k8s::Response>(k8s::Response{
        .status = 403,
        .body = R"({"kind":"Status","message":"leases is forbidden","reason":"Forbidden"})",
        .content_type = "application/json"});
  });
  elector.run(stop.get_token());
  const auto lines = failing(checks);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("leader-election: lease ns/lease: get failed: leases is forbidden"));
  CHECK(lines[0].find("Role in deploy/local-path-storage.yaml") != std::string::npos);
}
