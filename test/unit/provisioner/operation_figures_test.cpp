// SPDX-License-Identifier: Apache-2.0
#include "provisioner/operation_figures.h"

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using namespace std::chrono_literals;
using operation::Kind;
using operation::Operation;

namespace {

Operation an_operation(const std::string& volume, int attempt = 1) {
  Operation out;
  out.volume_name = volume;
  out.claim = {"app", "data"};
  out.node = "n1";
  out.attempt = attempt;
  return out;
}

/// "provision/queued 2.5s" of each step that was counted once.
std::vector<std::string> steps(const OperationFigures& figures) {
  std::vector<std::string> out;
  for (const auto* entry : figures.totals().steps.entries()) {
    out.push_back(entry->first[0] + "/" + entry->first[1] + " " +
                  std::to_string(static_cast<int>(entry->second.snapshot().sum_seconds)));
  }
  return out;
}

template <typename Value, std::size_t N>
std::map<std::string, std::uint64_t> counts(const ByLabels<Value, N>& values) {
  std::map<std::string, std::uint64_t> out;
  for (const auto* entry : values.entries()) {
    std::string labels;
    for (const std::string& label : entry->first) labels += (labels.empty() ? "" : "/") + label;
    out[labels] = entry->second.load();
  }
  return out;
}

using Counts = std::map<std::string, std::uint64_t>;
using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("work has begun when something is known to have begun") {
  CHECK(step_of({.state = operation::Progress::State::kWaiting}) == Step::kStart);
  // What no cache shows yet.
  CHECK(step_of({.state = operation::Progress::State::kRunning, .begins_unasked = true}) ==
        Step::kStart);
  CHECK(step_of({.state = operation::Progress::State::kRunning}) == Step::kScript);
}

TEST_CASE("each step of an operation is timed, waiting in the queue included") {
  FakeClock clock;
  OperationFigures figures(clock);
  const TimePoint queued = clock.now();
  clock.advance(2s);
  figures.progressed(operation::Kind::kMake, an_operation("v"), Step::kQueued, {}, queued);
  clock.advance(1s);
  figures.progressed(operation::Kind::kMake, an_operation("v"), Step::kStart);
  figures.progressed(operation::Kind::kMake, an_operation("v"), Step::kStart, "ErrImagePull");
  clock.advance(5s);
  figures.progressed(operation::Kind::kMake, an_operation("v"), Step::kScript);
  auto flying = figures.in_flight(10);
  REQUIRE(flying.size() == 1);
  CHECK(flying[0].age == 8s);
  CHECK(flying[0].step == Step::kScript);
  CHECK(flying[0].step_age == 0s);
  CHECK(flying[0].problem.empty());
  CHECK(flying[0].claim.to_string() == "app/data");
  clock.advance(7s);
  figures.progressed(operation::Kind::kMake, an_operation("v"), Step::kVolume);
  clock.advance(9s);
  figures.succeeded(operation::Kind::kMake, "v", "fast");
  CHECK(steps(figures) == Lines{"provision/pod_start 5", "provision/queued 3", "provision/script 7",
                                "provision/volume 9"});
  CHECK(figures.totals().provision_duration.entries().at(0)->second.snapshot().sum_seconds == 24);
  CHECK(figures.in_flight(10).empty());
}

TEST_CASE("what was begun before a restart is counted but not timed") {
  FakeClock clock;
  OperationFigures figures(clock);
  figures.progressed(operation::Kind::kRemove, an_operation("v"), Step::kScript);
  clock.advance(5s);
  figures.progressed(operation::Kind::kRemove, an_operation("v"), Step::kVolume);
  clock.advance(3s);
  figures.succeeded(operation::Kind::kRemove, "v", "fast");
  CHECK(steps(figures) == Lines{"delete/volume 3"});
  CHECK(counts(figures.totals().deleted) == Counts{{"fast", 1}});
  CHECK(figures.totals().delete_duration.entries().empty());
}

TEST_CASE("a failed operation waits, keeps its age and is timed from its last attempt") {
  FakeClock clock;
  OperationFigures figures(clock);
  figures.progressed(operation::Kind::kMake, an_operation("v"), Step::kQueued);
  clock.advance(10s);
  figures.failed({.kind = operation::Kind::kMake,
                  .volume = "v",
                  .storage_class = "fast",
                  .reason = "ScriptFailed",
                  .message = "exit code 1"});
  CHECK(figures.load().at(operation::Kind::kMake).waiting == 1);
  CHECK(figures.in_flight(1)[0].problem == "exit code 1");
  clock.advance(10s);
  figures.progressed(operation::Kind::kMake, an_operation("v", 2), Step::kQueued);
  clock.advance(1s);
  CHECK(figures.load().at(operation::Kind::kMake).waiting == 0);
  CHECK(figures.load().at(operation::Kind::kMake).oldest == 21s);
  figures.succeeded(operation::Kind::kMake, "v", "fast");
  CHECK(figures.totals().provision_duration.entries().at(0)->second.snapshot().sum_seconds == 1);
  CHECK(counts(figures.totals().provision_failed) == Counts{{"fast/", 1}});
  CHECK(counts(figures.totals().failures) == Counts{{"provision/ScriptFailed", 1}});
}

TEST_CASE("only the newest failures and a limited number of operations are kept") {
  FakeClock clock;
  OperationFigures figures(clock);
  for (std::size_t i = 0; i < OperationFigures::kMaxInFlight + 10; ++i) {
    figures.failed({.volume = std::to_string(i),
                    .claim = {i % 2 == 0 ? "even" : "odd", std::to_string(i)},
                    .message = std::string(5000, 'x')});
  }
  CHECK(figures.in_flight(100'000).size() == OperationFigures::kMaxInFlight);
  const auto failures = figures.recent_failures();
  REQUIRE(failures.size() == OperationFigures::kMaxFailures);
  CHECK(failures[0].failure.volume == std::to_string(OperationFigures::kMaxInFlight + 9));
  CHECK(failures[0].failure.message.size() == 1024);
  figures.forget_all();
  CHECK(figures.in_flight(10).empty());
}

TEST_CASE("a claim's steps leave their trace, and nothing stays when it is done or gone") {
  Scene scene;
  scene.put(claim("a").node("n1"));
  ClaimReconciler reconciler(scene.world, scene.memories);
  const ClaimKey key{{"default", "a"}, "uid-a"};
  (void)reconciler.step(key);
  CHECK(scene.figures.in_flight(1).at(0).step == Step::kStart);

  SUBCASE("success") {
    scene.executor.succeed(Kind::kMake, "pvc-uid-a");
    scene.transport.on("POST", "/persistentvolumes").reply(201);
    (void)reconciler.step(key);
    CHECK(counts(scene.figures.totals().provisioned) == Counts{{"local-path/", 1}});
    CHECK(scene.figures.recent_failures().empty());
  }
  SUBCASE("a failing script") {
    scene.executor.fail(Kind::kMake, "pvc-uid-a", "exit code 1");
    (void)reconciler.step(key);
    CHECK(scene.figures.in_flight(1).at(0).step == Step::kWaiting);
    CHECK(scene.figures.recent_failures().at(0).failure.message == "exit code 1");
    CHECK(scene.figures.recent_failures().at(0).failure.node == "n1");
    // Looked at again before its time: the same failure, not another.
    (void)reconciler.step(key);
    CHECK(counts(scene.figures.totals().provision_failed) == Counts{{"local-path/", 1}});
    scene.claims.erase({"default", "a"});
    scene.transport.on("GET", "/persistentvolumes").reply(404);
    (void)reconciler.step(key);
    CHECK(scene.figures.in_flight(2).size() == 1);
    CHECK(scene.figures.in_flight(1).at(0).kind == operation::Kind::kTakeBack);
    scene.executor.succeed(Kind::kTakeBack, "pvc-uid-a");
    (void)reconciler.step(key);
  }
  SUBCASE("an API server that does not want the volume") {
    scene.executor.succeed(Kind::kMake, "pvc-uid-a");
    scene.transport.on("POST", "/persistentvolumes").reply(403);
    (void)reconciler.step(key);
    CHECK(counts(scene.figures.totals().failures) == Counts{{"provision/ApiForbidden", 1}});
    scene.put(volume("pvc-uid-a").claim("default", "a").host_path("/data/pvc-uid-a_default_a"));
    (void)reconciler.step(key);
  }
  CHECK(scene.figures.in_flight(10).empty());
}

TEST_CASE("a volume that others keep from going is one deletion, however often we look") {
  Scene scene;
  scene.put(volume("pvc-1")
                .claim("default", "a")
                .released()
                .finalizer("external-provisioner.volume.kubernetes.io/finalizer")
                .host_path("/data/pvc-1")
                .node("n1"));
  scene.transport.on("DELETE", "/persistentvolumes").always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}", .content_type = "application/json"};
  });
  VolumeReconciler reconciler(scene.world, scene.memories);
  (void)reconciler.step("pvc-1");
  scene.executor.succeed(Kind::kRemove, "pvc-1");
  scene.transport.on("PATCH", "/persistentvolumes").always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}", .content_type = "application/json"};
  });
  for (int i = 0; i < 3; ++i) {
    (void)reconciler.step("pvc-1");
    scene.clock.advance(20s);
  }
  CHECK(counts(scene.figures.totals().deleted) == Counts{{"local-path", 1}});
}

TEST_CASE(
    "one namespace cannot keep what others do from being followed, nor push out its failures") {
  FakeClock clock;
  OperationFigures figures(clock);
  const auto fail = [&](const std::string& ns, int number) {
    figures.failed({.volume = ns + std::to_string(number),
                    .claim = {ns, std::to_string(number)},
                    .reason = "Refused"});
  };
  fail("quiet", 0);
  for (int i = 0; i < 6000; ++i) fail("loud", i);
  CHECK(figures.recent_failures().size() == OperationFigures::kMaxFailures);
  CHECK(figures.recent_failures().back().failure.claim.ns == "quiet");
  CHECK(figures.load()[operation::Kind::kMake].count == OperationFigures::kMaxOfNamespace + 1);
  Operation other = an_operation("v");
  figures.progressed(operation::Kind::kMake, other, Step::kQueued);
  CHECK(figures.load()[operation::Kind::kMake].count == OperationFigures::kMaxOfNamespace + 2);
  // What has ended makes room for more of its namespace.
  for (int i = 0; i < 10; ++i) figures.forget(operation::Kind::kMake, "loud" + std::to_string(i));
  for (int i = 7000; i < 7100; ++i) fail("loud", i);
  CHECK(figures.load()[operation::Kind::kMake].count == OperationFigures::kMaxOfNamespace + 2);
}
