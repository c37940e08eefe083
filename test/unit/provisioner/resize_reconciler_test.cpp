// SPDX-License-Identifier: Apache-2.0
#include "provisioner/resize_reconciler.h"

#include <doctest/doctest.h>

#include "unit/provisioner/scene.h"

namespace lpp::provisioner::resize_steps {
namespace {

using nlohmann::json;
using operation::Kind;
using testing::claim;
using testing::ClaimBuilder;
using testing::volume;
using testing::VolumeBuilder;

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kStatus = "/namespaces/default/persistentvolumeclaims/a/status";
const ClaimKey kKey{{"default", "a"}, "uid-a"};

ClaimBuilder bound_claim() {
  return claim("a").volume(kVolume).request("3Gi").capacity("1Gi").resource_version("7");
}

VolumeBuilder bound_volume() {
  return volume(kVolume)
      .claim("default", "a")
      .host_path("/data/pvc-uid-a_default_a")
      .node("n1")
      .annotation("local.path.provisioner/selected-node", "n1")
      .resource_version("5");
}

struct ResizeBed : testing::Scene {
  ResizeBed() {
    put(bound_claim());
    put(bound_volume());
    transport.on("PATCH", kStatus).always([this](const auto& request) {
      k8s::Response response = answer;
      json body = json::parse(answer.body);
      if (answer.status == 200) body["status"] = json::parse(request.body)["status"];
      response.body = body.dump();
      return response;
    });
    transport.on("PATCH", "/persistentvolumes/pvc-uid-a").always([this](const auto&) {
      return answer;
    });
  }
  Action step() { return reconciler.step(kKey); }
  void refuse(int status, const std::string& reason) {
    answer = {.status = status,
              .body = json{{"kind", "Status"}, {"reason", reason}, {"code", status}}.dump(),
              .content_type = kJson};
  }
  /// The body of the last write, which must have gone there.
  json written(const std::string& target) {
    const auto all = transport.requests();
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      if (it->method != "PATCH") continue;
      CHECK(it->target.find(target) != std::string::npos);
      return json::parse(it->body);
    }
    return nullptr;
  }
  std::size_t writes() {
    const auto all = transport.requests();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const auto& request) { return request.method == "PATCH"; }));
  }

  k8s::Response answer{
      .status = 200, .body = R"({"metadata":{"name":"a","uid":"u"}})", .content_type = kJson};
  ResizeReconciler reconciler{world, memories};
};

TEST_CASE("a claim that has what it asks for costs nothing") {
  ResizeBed scene;
  scene.put(bound_claim().capacity("3Gi"));
  CHECK(scene.step() == Action::done());
  CHECK(scene.transport.requests().empty());
  CHECK(scene.memories.size() == 0);
}

TEST_CASE("another claim that names the volume changes nothing of what is known of its growth") {
  ResizeBed scene;
  scene.put(bound_claim().growing("3Gi").condition("Resizing"));
  (void)scene.step();
  scene.executor.fail(Kind::kResize, kVolume, "no space");
  (void)scene.step();
  REQUIRE(scene.told("VolumeResizeFailed") == 1);
  for (const char* capacity : {"1Gi", "3Gi"}) {
    scene.put(claim("theirs").volume(kVolume).request("3Gi").capacity(capacity).set(
        "/metadata/uid", "uid-of-a-stranger"));
    (void)scene.reconciler.step({{"default", "theirs"}, "uid-of-a-stranger"});
    (void)scene.step();
    CHECK(scene.memories.get(kVolume).retry.number == 1);
  }
  CHECK(scene.told("VolumeResizeFailed") == 1);
}

TEST_CASE("each write says from what it was decided") {
  ResizeBed scene;
  scene.put(bound_claim().condition("NodeResizeError").condition("Somebody"));
  (void)scene.step();
  json patch = scene.written(kStatus);
  CHECK(patch["metadata"]["uid"] == "uid-a");
  CHECK(patch["metadata"]["resourceVersion"] == "7");
  const std::string note = "volume.kubernetes.io/node-expansion-not-required";
  CHECK(patch["metadata"]["annotations"] == json{{note, nullptr}});
  CHECK(patch["status"]["allocatedResources"]["storage"] == "3Gi");
  CHECK(patch["status"]["allocatedResourceStatuses"]["storage"] == "ControllerResizeInProgress");
  REQUIRE(patch["status"]["conditions"].size() == 2);
  CHECK(patch["status"]["conditions"][0] ==
        json{{"$patch", "delete"}, {"type", "NodeResizeError"}});
  CHECK(patch["status"]["conditions"][1]["type"] == "Resizing");
  CHECK(patch["status"]["conditions"][1]["status"] == "True");
  CHECK(patch["status"]["conditions"][1].contains("lastTransitionTime"));
  CHECK(scene.told("Normal Resizing: External resizer is resizing volume pvc-uid-a") == 1);

  scene.put(bound_claim().resource_version("8").growing("3Gi").condition("Resizing"));
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  CHECK(scene.executor.started[0].kind == Kind::kResize);
  CHECK(scene.executor.started[0].node == "n1");
  CHECK(scene.writes() == 1);

  scene.executor.succeed(Kind::kResize, kVolume);
  (void)scene.step();
  patch = scene.written("/persistentvolumes/pvc-uid-a");
  CHECK(patch["metadata"] == json{{"uid", "uid-pvc-uid-a"}, {"resourceVersion", "5"}});
  CHECK(patch["spec"] == json{{"capacity", {{"storage", "3Gi"}}}});

  scene.put(bound_volume().capacity("3Gi").resource_version("6"));
  (void)scene.step();
  patch = scene.written(kStatus);
  CHECK(patch["metadata"]["resourceVersion"] == "8");
  CHECK(patch["metadata"]["annotations"] == json{{note, "true"}});
  CHECK(patch["status"]["capacity"]["storage"] == "3Gi");
  CHECK(patch["status"]["allocatedResourceStatuses"] == json{{"storage", nullptr}});
  CHECK_FALSE(patch["status"].contains("allocatedResources"));
  CHECK(patch["status"]["conditions"] ==
        json::array({{{"$patch", "delete"}, {"type", "Resizing"}}}));
  CHECK(scene.told("Normal VolumeResizeSuccessful: Resize volume succeeded") == 1);
  CHECK(scene.told("SizeNotEnforced") == 0);

  scene.put(bound_claim().capacity("3Gi").resource_version("9"));
  CHECK(scene.step() == Action::done());
  CHECK(scene.executor.records.empty());
  CHECK(scene.memories.size() == 0);
}

TEST_CASE("without a way to limit directories no work is begun, and that is told once") {
  ResizeBed scene;
  scene.executor.has_way = false;
  scene.put(bound_claim().growing("3Gi").condition("Resizing"));
  (void)scene.step();
  scene.put(bound_volume().capacity("3Gi"));
  (void)scene.step();
  CHECK(scene.executor.started.empty());
  CHECK(scene.told("Warning SizeNotEnforced: ") == 1);
}

TEST_CASE("a resize that waits for word goes on while its volume has no more than that") {
  ResizeBed scene;
  scene.put(bound_claim().growing("3Gi").condition("Resizing"));
  (void)scene.step();
  auto& progress = scene.executor.last(Kind::kResize, kVolume).progress;
  progress.state = operation::Progress::State::kRunning;
  progress.outdated = true;
  SUBCASE("it has") {
    scene.put(bound_volume());
    (void)scene.step();
    CHECK_FALSE(scene.executor.last(Kind::kResize, kVolume).progress.outdated);
    CHECK(scene.executor.started.size() == 1);
  }
  SUBCASE("it has grown since, and the cache does not show it") {
    scene.served[kVolume] = bound_volume().capacity("5Gi").json().dump();
    (void)scene.step();
    CHECK(scene.executor.last(Kind::kResize, kVolume).progress.outdated);
  }
  SUBCASE("it is not there any more") {
    scene.served[kVolume] = bound_volume().released().json().dump();
    (void)scene.step();
    CHECK(scene.executor.last(Kind::kResize, kVolume).progress.outdated);
  }
}

TEST_CASE("a condition that is there already keeps its time") {
  ResizeBed scene;
  scene.put(bound_claim().growing("2Gi", "").condition("Resizing"));
  (void)scene.step();
  CHECK(scene.written(kStatus)["status"]["conditions"] ==
        json::array({{{"type", "Resizing"}, {"status", "True"}}}));
}

TEST_CASE("a cache that is behind is waited for without a word") {
  ResizeBed scene;
  scene.refuse(409, "Conflict");
  CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
  CHECK(scene.events.lines.empty());
}

TEST_CASE("what stands in the place of the work is told") {
  ResizeBed scene;
  scene.put(bound_claim().growing("3Gi"));
  scene.executor.error = Error{.code = ErrorCode::kConflict, .message = "a pod is in the way"};
  CHECK(scene.step() == Action::retry());
  CHECK(scene.told("Warning VolumeResizeFailed: ") == 1);
}

TEST_CASE("a right that is missing is told once") {
  ResizeBed scene;
  scene.refuse(403, "Forbidden");
  for (int i = 0; i < 5; ++i) CHECK(scene.step() == Action::retry());
  CHECK(scene.told("Warning VolumeResizeFailed: ") == 1);
  CHECK(scene.told("lacks a permission") == 1);
}

TEST_CASE("a volume that is not the claim's any more is left alone") {
  ResizeBed scene;
  scene.put(bound_claim().growing("3Gi"));
  scene.served[kVolume] = bound_volume().released().json().dump();
  (void)scene.step();
  CHECK(scene.executor.started.empty());
}

TEST_CASE("a failure is told with its cause and tried again for the same size") {
  ResizeBed scene;
  scene.put(bound_claim().growing("3Gi"));
  (void)scene.step();
  scene.executor.fail(Kind::kResize, kVolume, "no room");
  (void)scene.step();
  CHECK(scene.told("Warning VolumeResizeFailed: failed to resize volume pvc-uid-a: no room") == 1);
  CHECK(scene.executor.started.size() == 1);
  scene.clock.advance(std::chrono::seconds(2));
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 2);
  CHECK(scene.executor.started[1].attempt == 2);
  CHECK(scene.executor.started[1].size_bytes == 3LL << 30U);
}

TEST_CASE("what the newest resize has told of the directory counts, in whatever order they stand") {
  constexpr std::int64_t kGiB = 1LL << 30U;
  const auto ended = [&](int attempt, std::int64_t size, std::optional<std::int64_t> used) {
    testing::FakeExecutor::Record record;
    record.operation = {.kind = Kind::kResize,
                        .volume_name = kVolume,
                        .owner_uid = "uid-a",
                        .attempt = attempt,
                        .node = "n1",
                        .path = "/data/pvc-uid-a_default_a",
                        .size_bytes = size};
    record.progress.state = operation::Progress::State::kSucceeded;
    if (used) record.progress.usage = operation::Usage{.bytes = *used, .limit_bytes = size};
    return record;
  };
  std::optional<std::int64_t> of_first;
  SUBCASE("the older one has told, too") { of_first = 5; }
  SUBCASE("the older one has told nothing") {}
  std::vector records{ended(1, 2 * kGiB, of_first), ended(2, 3 * kGiB, 9), ended(3, kGiB, {})};
  records[2].progress.state = operation::Progress::State::kRunning;
  SUBCASE("oldest first") {}
  SUBCASE("newest first") { std::reverse(records.begin(), records.end()); }
  ResizeBed scene;
  scene.put(bound_claim().capacity("3Gi"));
  scene.executor.records = records;
  for (int i = 0; i < 6; ++i) (void)scene.step();
  CHECK(scene.executor.forgotten.size() == 2);
  const auto uses = scene.uses.all();
  REQUIRE(uses.size() == 1);
  CHECK(uses[0].usage.bytes == 9);
  CHECK(uses[0].usage.limit_bytes == 3 * kGiB);
}

TEST_CASE("a size that the node cannot have is marked") {
  ResizeBed scene;
  scene.put(bound_claim().growing("3Gi").condition("Resizing"));
  (void)scene.step();
  scene.executor.fail(Kind::kResize, kVolume, "too large");
  scene.executor.last(Kind::kResize, kVolume).progress.infeasible = true;
  (void)scene.step();
  const json patch = scene.written(kStatus);
  CHECK(patch["status"]["allocatedResourceStatuses"]["storage"] == "ControllerResizeInfeasible");
  REQUIRE(patch["status"]["conditions"].size() == 2);
  CHECK(patch["status"]["conditions"][1]["type"] == "ControllerResizeError");
  CHECK(patch["status"]["conditions"][1]["message"] == "too large");
  CHECK_FALSE(patch["metadata"].contains("annotations"));
  CHECK(scene.told("too large") == 1);
  scene.put(bound_claim()
                .resource_version("9")
                .growing("3Gi", "ControllerResizeInfeasible")
                .condition("ControllerResizeError"));
  CHECK(scene.step() == Action::await_change(Memories::kResync));
  CHECK(scene.executor.started.size() == 1);
}

}  // namespace
}  // namespace lpp::provisioner::resize_steps
