// SPDX-License-Identifier: Apache-2.0
// What a step does when a cache is minutes behind, an answer was lost, or a record went.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "provisioner/volume_reconciler.h"
#include "scene.h"

namespace lpp::testing {

using operation::Directory;
using operation::Kind;
using provisioner::ClaimKey;
using provisioner::ClaimReconciler;
using provisioner::VolumeReconciler;
using State = operation::Progress::State;

namespace {

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kPath = "/data/pvc-uid-a_default_a";
constexpr const char* kPatternPath = "/data/default/a";
const ClaimKey kKey{{"default", "a"}, "uid-a"};
const ClaimKey kNext{{"default", "a"}, "uid-b"};

VolumeBuilder our_volume(const char* path, const char* node = "n1") {
  return volume(kVolume)
      .claim("default", "a")
      .host_path(path)
      .node(node)
      .annotation("local.path.provisioner/selected-node", node)
      .finalizer("external-provisioner.volume.kubernetes.io/finalizer");
}

operation::Operation an_operation(Kind kind, const char* node) {
  operation::Operation operation;
  operation.kind = kind;
  operation.volume_name = kVolume;
  operation.owner_uid = "uid-a";
  operation.claim = kKey.claim;
  operation.node = node;
  operation.base_path = "/data";
  operation.path = kPath;
  return operation;
}

struct LateScene : Scene {
  LateScene() {
    put(storage_class("pattern").parameter("pathPattern", "{{ .PVC.Namespace }}/{{ .PVC.Name }}"));
  }
  void make(const ClaimBuilder& claim, Directory directory) {
    put(claim);
    (void)claims_step.step(kKey);
    executor.succeed(Kind::kMake, kVolume, directory);
  }
  void record(const operation::Operation& operation, operation::Progress progress) {
    executor.records.push_back({operation, std::move(progress)});
  }
  void claim_goes() {
    claims.erase(kKey.claim);
    api_shows_no_claim();
  }
  void api_has_no_volume() {
    transport.on("GET", std::string("/persistentvolumes/") + kVolume).always([](const auto&) {
      return k8s::Response{.status = 404};
    });
  }
  int started(Kind kind) const {
    return static_cast<int>(
        std::count_if(executor.started.begin(), executor.started.end(),
                      [&](const auto& operation) { return operation.kind == kind; }));
  }

  provisioner::Memories of_volumes{
      clock, {.base = std::chrono::seconds(1), .cap = std::chrono::seconds(1000), .jitter = 0}, 15};
  ClaimReconciler claims_step{world, memories};
  VolumeReconciler volumes_step{world, of_volumes};
};

}  // namespace

TEST_CASE("a retained directory is safe from a cache of claims that is far behind") {
  for (const Directory said : {Directory::kFound, Directory::kUnknown}) {
    LateScene scene;
    scene.make(claim("a").node("n1"), Directory::kMade);
    scene.transport.on("POST", "/persistentvolumes").reply(201);
    (void)scene.claims_step.step(kKey);
    const auto retained = our_volume(kPath).reclaim_policy("Retain");
    scene.volumes.put(retained.build().meta.key(), retained.shared());
    (void)scene.claims_step.step(kKey);
    // Bound, used, the claim deleted, the volume too: of all this the claims' cache knows nothing.
    scene.volumes.erase({"", kVolume});
    scene.api_has_no_volume();
    SUBCASE("the API server says that the claim has gone") { scene.api_shows_no_claim(); }
    SUBCASE("the API server says that it is bound") {
      scene.api_shows(claim("a").node("n1").volume("pv-of-somebody"));
    }
    (void)scene.claims_step.step(kKey);
    CHECK(scene.started(Kind::kMake) == 1);
    // It is made again if the claim really waits: then what is there may be data.
    scene.api_shows(claim("a").node("n1"));
    (void)scene.claims_step.step(kKey);
    REQUIRE(scene.started(Kind::kMake) == 2);
    scene.executor.succeed(Kind::kMake, kVolume, said);
    scene.claim_goes();
    (void)scene.claims_step.step(kKey);
    REQUIRE(scene.started(Kind::kTakeBack) == 1);
    CHECK(scene.executor.started.back().only_if_empty);
  }
}

TEST_CASE("a claim that has lost its volume keeps the directory, and gives its record back") {
  LateScene scene;
  scene.make(claim("a").node("n1"), Directory::kMade);
  scene.api_has_no_volume();
  scene.put(claim("a").node("n1").volume(kVolume));
  (void)scene.claims_step.step(kKey);
  CHECK(scene.executor.records.empty());
  CHECK(scene.told("DirectoryKept") == 1);
  scene.claim_goes();
  (void)scene.claims_step.step(kKey);
  CHECK(scene.started(Kind::kTakeBack) == 0);
}

TEST_CASE("that a directory was made for a claim is forgotten when somebody else could have it") {
  LateScene scene;
  scene.put(storage_class("pattern")
                .parameter("pathPattern", "common")
                .parameter("allowUnsafePathPattern", "true"));
  scene.make(claim("a").storage_class("pattern").node("n1"), Directory::kMade);
  scene.put(volume("static").host_path("/data/common").node("n1").phase("Bound"));
  (void)scene.claims_step.step(kKey);  // cannot be shown: another volume has the directory
  scene.executor.vanish(Kind::kMake, kVolume);
  (void)scene.claims_step.step(kKey);
  scene.volumes.erase({"", "static"});
  scene.clock.advance(std::chrono::hours(1));
  (void)scene.claims_step.step(kKey);
  REQUIRE(scene.started(Kind::kMake) == 2);
  (void)scene.claims_step.step(kKey);
  scene.executor.succeed(Kind::kMake, kVolume, Directory::kFound);
  scene.api_has_no_volume();
  scene.claim_goes();
  (void)scene.claims_step.step(kKey);
  REQUIRE(scene.started(Kind::kTakeBack) == 1);
  CHECK(scene.executor.started.back().only_if_empty);
}

TEST_CASE("a claim waits for a removal under its volume's name") {
  LateScene scene;
  scene.record(an_operation(Kind::kRemove, "n1"), {.state = State::kRunning});
  scene.put(claim("a").node("n1"));
  CHECK(scene.claims_step.step(kKey) == provisioner::Action::await_change(provisioner::kRecheck));
  CHECK(scene.started(Kind::kMake) == 0);
}

TEST_CASE("the directory of a volume that the cache does not show yet is not free") {
  LateScene scene;
  scene.make(claim("a").storage_class("pattern").node("n1"), Directory::kMade);
  scene.transport.on("POST", "/persistentvolumes").fail(ErrorCode::kTimeout);  // yet it was done
  (void)scene.claims_step.step(kKey);
  const auto made = our_volume(kPatternPath);
  scene.transport.on("GET", std::string("/persistentvolumes/") + kVolume)
      .always([body = made.json().dump()](const auto&) {
        return k8s::Response{.status = 200, .body = body, .content_type = Scene::kJson};
      });
  SUBCASE("in the same process") {}
  SUBCASE("whose creation an earlier process asked for") {
    scene.ledger.release_all();
    scene.memories.erase(kVolume);
  }
  scene.claim_goes();
  (void)scene.claims_step.step(kKey);
  (void)scene.claims_step.step(kKey);
  // The claim is made again under its name.
  const auto again = claim("a").uid("uid-b").storage_class("pattern").node("n1");
  scene.put(again);
  scene.api_shows(again);
  (void)scene.claims_step.step(kNext);
  CHECK(scene.started(Kind::kMake) == 1);
  // The cache catches up: the volume goes first, then the other claim has its turn.
  scene.volumes.put(made.build().meta.key(), made.shared());
  (void)scene.claims_step.step(kKey);
  CHECK(scene.ledger.decisions() == 0);
  scene.volumes.erase({"", kVolume});
  (void)scene.claims_step.step(kKey);
  (void)scene.claims_step.step(kNext);
  CHECK(scene.started(Kind::kMake) == 2);
}

TEST_CASE(
    "a volume that is freed for another claim is not removed, though it still says Released") {
  LateScene scene;
  scene.api_shows_no_claim();
  SUBCASE("for any") { scene.put(our_volume(kPath).released().unset("/spec", "claimRef")); }
  SUBCASE("for one by name") {
    scene.put(our_volume(kPath).released().unset("/spec/claimRef", "uid"));
  }
  SUBCASE("for one by UID") {
    scene.put(our_volume(kPath).claim("default", "a", "uid-b").released());
    scene.api_shows(claim("a").uid("uid-b"));
    SUBCASE("that the cache shows") { scene.put(claim("a").uid("uid-b")); }
    SUBCASE("that the cache does not show yet") {}
  }
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.started(Kind::kRemove) == 0);
  CHECK(scene.transport.count("DELETE", "") == 0);
}

TEST_CASE("a make on another node does not hold up a volume's removal") {
  LateScene scene;
  scene.put(our_volume(kPath, "n2").released());
  scene.api_shows_no_claim();
  SUBCASE("one that does not go") {
    scene.record(an_operation(Kind::kMake, "n1"),
                 {.state = State::kEnding, .message = "it does not go"});
  }
  SUBCASE("one whose directory is still to be taken back") {
    scene.record(an_operation(Kind::kMake, "n1"), {.state = State::kSucceeded});
  }
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.started(Kind::kRemove) == 1);
  CHECK(scene.executor.has(Kind::kMake, kVolume));
}

TEST_CASE("a make in the directory that does not go is told on the volume") {
  LateScene scene;
  scene.put(our_volume(kPath).released());
  scene.record(an_operation(Kind::kMake, "n1"),
               {.state = State::kEnding, .message = "it does not go"});
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.started(Kind::kRemove) == 0);
  CHECK(scene.told("it does not go") == 1);
}

TEST_CASE("a volume that is patched over and over gets no helper pod for each patch") {
  LateScene scene;
  scene.put(our_volume(kPath).released().deleting().resource_version("1"));
  scene.api_shows_no_claim();
  (void)scene.volumes_step.step(kVolume);
  scene.executor.fail(Kind::kRemove, kVolume, "exit code 1");
  for (int i = 2; i < 8; ++i) {
    scene.put(our_volume(kPath).released().deleting().resource_version(std::to_string(i)));
    (void)scene.volumes_step.step(kVolume);
  }
  CHECK(scene.started(Kind::kRemove) == 1);
  CHECK(scene.told("exit code 1") == 1);
  // What it depends on has changed: at once.
  scene.use(*scene.config.current());
  config::Config next = *scene.config.current();
  next.generation += 1;
  scene.use(std::move(next));
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.started(Kind::kRemove) == 2);
}

TEST_CASE("a directory that was not there when it was to be removed is told once") {
  LateScene scene;
  scene.put(our_volume(kPath).released());
  scene.transport.on("PATCH", std::string("/persistentvolumes/") + kVolume).reply(500);
  (void)scene.volumes_step.step(kVolume);
  scene.executor.succeed(Kind::kRemove, kVolume, Directory::kAbsent);
  (void)scene.volumes_step.step(kVolume);
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.told("Warning DirectoryMissing: directory /data/pvc-uid-a_default_a on node n1 was "
                   "not there") == 1);
}

TEST_CASE("a directory stays while the API server knows a claim that is bound to its volume") {
  for (const char* phase : {"Pending", "Available", "Failed"}) {
    CAPTURE(phase);
    LateScene scene;
    scene.put(our_volume(kPath).phase(phase).deleting());
    scene.api_shows(claim("a").node("n1").volume(kVolume));
    (void)scene.volumes_step.step(kVolume);
    CHECK(scene.started(Kind::kRemove) == 0);
    scene.api_shows_no_claim();
    (void)scene.volumes_step.step(kVolume);
    CHECK(scene.started(Kind::kRemove) == 1);
  }
}

TEST_CASE("what somebody deletes while our finalizer is not on it keeps its directory") {
  for (const char* phase : {"Released", "Failed", "Available", "Bound"}) {
    CAPTURE(phase);
    LateScene scene;
    scene.api_shows_no_claim();
    scene.put(volume(kVolume)
                  .claim("default", "a")
                  .host_path(kPath)
                  .node("n1")
                  .phase(phase)
                  .finalizer("kubernetes.io/pv-protection")
                  .deleting());
    (void)scene.volumes_step.step(kVolume);
    CHECK(scene.started(Kind::kRemove) == 0);
    CHECK(scene.transport.count("PATCH", "") == 0);
  }
}

TEST_CASE("a volume on its way out that never had our finalizer says that its directory stays") {
  LateScene scene;
  scene.put(
      volume(kVolume).claim("default", "a").host_path(kPath).node("n1").phase("Bound").deleting());
  (void)scene.volumes_step.step(kVolume);
  (void)scene.volumes_step.step(kVolume);
  CHECK(scene.told("stays when the volume goes") == 1);
}

TEST_CASE("causes that take turns are told once each") {
  LateScene scene;
  scene.put(claim("a").node("empty"));
  auto take_back = an_operation(Kind::kTakeBack, "n2");
  take_back.only_if_empty = true;
  scene.record(take_back, {.state = State::kEnding, .message = "one does not go"});
  scene.record(an_operation(Kind::kMake, "n1"),
               {.state = State::kEnding, .message = "another does not go"});
  for (int i = 0; i < 5; ++i) {
    (void)scene.claims_step.step(kKey);
    scene.clock.advance(std::chrono::seconds(15));
  }
  CHECK(scene.told("one does not go") == 1);
  CHECK(scene.told("another does not go") == 1);
}

}  // namespace lpp::testing
