// SPDX-License-Identifier: Apache-2.0
// Growing where the API server keeps neither status.allocatedResources nor
// allocatedResourceStatuses, as Kubernetes before 1.32 does.

#include <doctest/doctest.h>

#include <functional>
#include <set>

#include "provisioner/resize_reconciler.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::resize_unmarked {
namespace {

using nlohmann::json;
using operation::Kind;
using std::chrono::seconds;

constexpr const char* kVolume = "pvc-uid-a";
const ClaimKey kKey{{"default", "a"}, "uid-a"};

/// Applies what it is told to, but drops both fields, and shows it to the cache.
struct OldServer : testing::Scene {
  OldServer() {
    transport.on("PATCH", "/namespaces/default/persistentvolumeclaims/a/status")
        .always([this](const auto& sent) { return patch_claim(sent); });
    transport.on("PATCH", "/persistentvolumes/pvc-uid-a").always([this](const auto& sent) {
      ++volume_patches;
      volume_capacity = json::parse(sent.body)["spec"]["capacity"]["storage"];
      show();
      return k8s::Response{.status = 200, .body = "{\"metadata\":{}}", .content_type = kJson};
    });
    show();
  }

  testing::ClaimBuilder claim() const {
    auto builder = testing::claim("a").volume(kVolume).request(request).capacity(capacity);
    builder.resource_version(std::to_string(version));
    for (const std::string& type : conditions) builder.condition(type);
    return builder;
  }
  void show() {
    put(claim());
    put(testing::volume(kVolume)
            .claim("default", "a")
            .host_path("/data/pvc-uid-a_default_a")
            .capacity(volume_capacity)
            .node("n1")
            .annotation("local.path.provisioner/selected-node", "n1"));
  }
  void ask(const std::string& size) {
    request = size;
    ++version;
    show();
  }
  k8s::Response patch_claim(const k8s::Request& sent) {
    ++claim_patches;
    const json body = json::parse(sent.body);
    last_patch = body["status"];
    if (body["metadata"]["resourceVersion"] != std::to_string(version)) {
      return {.status = 409, .body = R"({"kind":"Status","reason":"Conflict","code":409})"};
    }
    const json before = claim().json();
    if (last_patch.contains("capacity")) capacity = last_patch["capacity"]["storage"];
    for (const json& condition : last_patch.value("conditions", json::array())) {
      const std::string type = condition["type"];
      conditions.erase(type);
      if (!condition.contains("$patch")) conditions.insert(type);
    }
    if (claim().json() != before) ++version;
    show();
    json answer = claim().json();
    if (sent.accept.find("PartialObjectMetadata") != std::string::npos) answer.erase("status");
    return {.status = 200, .body = answer.dump(), .content_type = kJson};
  }

  /// A second each. What is on record by the executor ends as `end` says.
  void pass(int steps, const std::function<void()>& end = {}) {
    for (int i = 0; i < steps; ++i) {
      (void)reconciler.step(kKey);
      if (end && executor.has(Kind::kResize, kVolume)) end();
      clock.advance(seconds(1));
    }
  }
  void succeed() { executor.succeed(Kind::kResize, kVolume); }
  void fail(bool infeasible) {
    auto& last = executor.last(Kind::kResize, kVolume).progress;
    if (last.over()) return;
    last = {.state = operation::Progress::State::kFailed,
            .message = "no room",
            .infeasible = infeasible};
  }
  int count_events(const std::string& part) const {
    int count = 0;
    for (const std::string& line : events.lines) {
      if (line.find(part) != std::string::npos) ++count;
    }
    return count;
  }
  void restart() { memories.erase(kVolume); }

  std::string request = "3Gi";
  std::string capacity = "1Gi";
  std::string volume_capacity = "1Gi";
  std::set<std::string> conditions;
  int version = 7;
  int claim_patches = 0;
  int volume_patches = 0;
  json last_patch;
  ResizeReconciler reconciler{world, memories};
};

TEST_CASE("a claim grows though its status keeps no marks, with two writes") {
  OldServer scene;
  SUBCASE("with a limit") { scene.executor.has_way = true; }
  SUBCASE("in numbers") { scene.executor.has_way = false; }
  scene.pass(30, [&] { scene.succeed(); });
  CHECK(scene.capacity == "3Gi");
  CHECK(scene.volume_capacity == "3Gi");
  CHECK(scene.claim_patches == 2);
  CHECK(scene.volume_patches == 1);
  CHECK(scene.conditions.empty());
  CHECK_FALSE(scene.last_patch.contains("allocatedResourceStatuses"));
  CHECK(scene.executor.started.size() == (scene.executor.has_way ? 1 : 0));
  CHECK(scene.count_events("Normal Resizing: ") == 1);
  CHECK(scene.count_events("VolumeResizeSuccessful") == 1);
  CHECK(scene.executor.records.empty());
  CHECK(scene.memories.size() == 0);
}

TEST_CASE("what takes long is written down and told once") {
  OldServer scene;
  scene.pass(60, [&] { scene.executor.run(Kind::kResize, kVolume); });
  CHECK(scene.claim_patches == 1);
  CHECK(scene.executor.started.size() == 1);
  CHECK(scene.count_events("Normal Resizing: ") == 1);
  CHECK(scene.conditions == std::set<std::string>{"Resizing"});
}

TEST_CASE("a process that ends at any step leaves the next one enough to go on from") {
  for (int steps = 1; steps <= 8; ++steps) {
    CAPTURE(steps);
    OldServer scene;
    scene.pass(steps, [&] { scene.succeed(); });
    scene.restart();
    scene.pass(30, [&] { scene.succeed(); });
    CHECK(scene.capacity == "3Gi");
    CHECK(scene.volume_capacity == "3Gi");
    CHECK(scene.claim_patches <= 3);
    CHECK(scene.volume_patches == 1);
    CHECK(scene.executor.started.size() <= 2);
    CHECK(scene.conditions.empty());
    CHECK(scene.executor.records.empty());
  }
}

TEST_CASE("a failure is told with a back-off where there are no marks") {
  OldServer scene;
  scene.pass(60, [&] { scene.fail(false); });
  CHECK(scene.claim_patches == 1);
  CHECK(scene.executor.started.size() >= 4);
  CHECK(scene.executor.started.size() <= 8);
  CHECK(scene.count_events("no room") >= 4);
  CHECK(scene.count_events("no room") <= 8);
  CHECK(scene.count_events("Normal Resizing: ") == 1);
  scene.pass(120, [&] { scene.succeed(); });
  CHECK(scene.capacity == "3Gi");
  CHECK(scene.conditions.empty());
}

TEST_CASE("what the node cannot have is told and tried again slowly where there are no marks") {
  OldServer scene;
  scene.pass(60, [&] { scene.fail(true); });
  CHECK(scene.claim_patches == 2);
  CHECK(scene.executor.started.size() == 1);
  CHECK(scene.conditions == std::set<std::string>{"ControllerResizeError"});
  CHECK(scene.count_events("no room") == 1);
  CHECK(scene.count_events("ask for less") == 0);
  scene.clock.advance(Memories::kResync);
  scene.pass(60, [&] { scene.succeed(); });
  CHECK(scene.capacity == "3Gi");
  CHECK(scene.claim_patches == 4);
  CHECK(scene.conditions.empty());
}

TEST_CASE("an expansion that has begun is finished before a larger one where there are no marks") {
  OldServer scene;
  scene.pass(5, [&] { scene.executor.run(Kind::kResize, kVolume); });
  scene.ask("4Gi");
  scene.pass(5, [&] { scene.executor.run(Kind::kResize, kVolume); });
  CHECK(scene.executor.cancelled.empty());
  scene.pass(30, [&] { scene.succeed(); });
  CHECK(scene.capacity == "4Gi");
  REQUIRE(scene.executor.started.size() == 2);
  CHECK(scene.executor.started[0].size_bytes == 3LL << 30U);
  CHECK(scene.executor.started[1].size_bytes == 4LL << 30U);
  CHECK(scene.conditions.empty());
  CHECK(scene.memories.size() == 0);
}

}  // namespace
}  // namespace lpp::provisioner::resize_unmarked
