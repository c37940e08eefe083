// SPDX-License-Identifier: Apache-2.0
// What is called off, and the record of what it may have left.

#include <doctest/doctest.h>

#include "fakes/helper_pod_scene.h"

using namespace lpp;
using namespace lpp::helperpod;
using namespace lpp::testing;
using nlohmann::json;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using When = operation::Executor::When;
using std::chrono::seconds;

namespace {

constexpr const char* kVolume = "pvc-1";
constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";

/// Where another node may make the directory meanwhile.
operation::Shape shared() { return {.has_affinity = false}; }

struct CancelScene : HelperPodScene {
  explicit CancelScene(Kind kind = Kind::kMake, std::string command = {},
                       std::optional<operation::Shape> shape = std::nullopt) {
    teardown_command = std::move(command);
    accept_posts();
    operation.kind = kind;
    operation.volume_name = kVolume;
    operation.owner_uid = "1";
    operation.node = "n1";
    operation.path = "/data/pvc-1";
    operation.shape = std::move(shape);
    start(operation);
    pod = posted();
  }
  Progress progress() { return only(kVolume).progress; }
  bool cancel() { return runner.cancel(operation.id()).ok(); }
  std::size_t removals() const { return transport.count("DELETE", ""); }
  json waiting(const std::string& reason) const {
    return with_state(pod, "Pending", {{"waiting", {{"reason", reason}}}});
  }

  Operation operation;
  json pod;
};

/// Whatever its kubelet tells of it, and however late.
void check_let_end(CancelScene& scene, std::size_t refused = 0) {
  CHECK(scene.cancel());
  CHECK(scene.removals() == refused);
  CHECK(scene.progress().state == Progress::State::kEnding);
  CHECK_FALSE(scene.progress().acts_no_more);
  CHECK(scene.progress().message.empty());
  CHECK(scene.cancel());
  scene.show(CancelScene::running(scene.pod));
  CHECK(scene.progress().state == Progress::State::kEnding);
  scene.clock.advance(seconds(150));
  CHECK(
      scene.progress().message ==
      "helper pod lps/helper-pod-create-pvc-1 is not needed any more, and has not ended for 150 s: "
      "is node n1 up?");
  CHECK(scene.progress().reason == "StuckEnding");
  CHECK(scene.removals() == refused);

  // What it has left is taken back by what it says.
  scene.show(CancelScene::ended(scene.pod, 0, "directory: made\n"));
  CHECK(scene.progress().state == Progress::State::kSucceeded);
  CHECK(scene.progress().directory == operation::Directory::kMade);
  scene.transport.on("DELETE", "/pods").reply(200);
  CHECK_FALSE(scene.runner.forget(scene.operation.id(), When::kNow).value());
  CHECK(scene.removals() == refused + 1);
}

}  // namespace

TEST_CASE("a make is let end when it is called off, and its record stays") {
  CancelScene scene;
  SUBCASE("it is late") {
    scene.show(CancelScene::running(scene.pod));
    scene.clock.advance(seconds(151));
    CHECK(scene.progress().state == Progress::State::kLate);
  }
  SUBCASE("it has started since that was decided") { scene.show(CancelScene::running(scene.pod)); }
  SUBCASE("its kubelet has it in hand, and may tell of its container later") {
    scene.show(scene.waiting("ContainerCreating"));
  }
  SUBCASE("its kubelet could not start it so far") { scene.show(scene.waiting("ErrImagePull")); }
  SUBCASE("its kubelet tells nothing of it so far") { scene.show(scene.pod); }
  SUBCASE("the cache does not show it so far") {}
  check_let_end(scene);
}

TEST_CASE(
    "a make that is called off and that nobody tells of until after its deadline is deleted") {
  CancelScene scene;
  const TimePoint overdue_at = scene.clock.now() + seconds(150);
  scene.show(scene.waiting("ErrImagePull"));
  bool starts = false;
  SUBCASE("it is overdue already") {}
  SUBCASE("as soon as it is overdue") {
    CHECK(scene.cancel());
    CHECK(scene.progress() ==
          Progress{.state = Progress::State::kEnding, .changes_at = overdue_at});
  }
  SUBCASE("it is late, and not overdue") {
    scene.clock.advance(seconds(120));
    CHECK(scene.progress().state == Progress::State::kLate);
    CHECK(scene.cancel());
    CHECK(scene.progress().state == Progress::State::kEnding);
  }
  SUBCASE("it has started, and the cache does not show that") {
    CHECK(scene.cancel());
    starts = true;
  }
  scene.clock.advance(overdue_at - scene.clock.now());
  CHECK(scene.progress().state == Progress::State::kLate);
  CHECK(scene.removals() == 0);
  auto& removes = scene.transport.on("DELETE", "/pods");
  if (starts) {
    removes.reply(409, kConflict);
    scene.transport.on("GET", "/pods").reply(200, CancelScene::running(scene.pod).dump());
    CHECK(scene.cancel());
    CHECK(scene.progress().state == Progress::State::kEnding);
    CHECK(scene.cancel());
    CHECK(scene.removals() == 1);
    return;
  }
  removes.reply(200);
  CHECK(scene.cancel());
  CHECK(scene.removals() == 1);
  CHECK(scene.last_body()["preconditions"]["resourceVersion"] == "1");
  CHECK(scene.progress().state == Progress::State::kEnding);
  CHECK(scene.cancel());
  CHECK(scene.removals() == 1);
  scene.hide("helper-pod-create-pvc-1");
  CHECK(scene.runner.recorded(kVolume).empty());
}

TEST_CASE("a make on a shared filesystem is let end if it is known to have started") {
  CancelScene scene(Kind::kMake, {}, shared());
  const json running = CancelScene::running(scene.pod);
  auto& reads = scene.transport.on("GET", "/pods");
  std::size_t refused = 0;
  SUBCASE("the cache shows that") { scene.show(running); }
  SUBCASE("the cache shows an earlier state") {
    scene.show(scene.pod);
    scene.transport.on("DELETE", "/pods").reply(409, kConflict);
    reads.reply(200, running.dump());
    refused = 1;
  }
  SUBCASE("the cache does not show it at all") { reads.reply(200, running.dump()); }
  check_let_end(scene, refused);
}

TEST_CASE("a make on a shared filesystem is deleted as long as it is not known to have started") {
  CancelScene scene(Kind::kMake, {}, shared());
  SUBCASE("its kubelet has it in hand") { scene.show(scene.waiting("ContainerCreating")); }
  SUBCASE("the cache does not show it") {
    scene.transport.on("GET", "/pods").reply(200, scene.pod.dump());
  }
  scene.transport.on("DELETE", "/pods").reply(200);
  CHECK(scene.cancel());
  CHECK(scene.removals() == 1);
  CHECK(scene.progress().state == Progress::State::kEnding);
}

TEST_CASE("whether a make has started is asked, and without an answer its pod stays") {
  CancelScene scene(Kind::kMake, {}, shared());
  scene.transport.on("GET", "/pods").fail(ErrorCode::kTimeout);
  SUBCASE("the cache does not show it") {}
  SUBCASE("the cache shows an earlier state") {
    scene.show(scene.pod);
    scene.transport.on("DELETE", "/pods").reply(409, kConflict);
  }
  const auto removals = scene.removals();
  CHECK_FALSE(scene.cancel());
  CHECK(scene.removals() <= removals + 1);
  CHECK(scene.progress().state != Progress::State::kEnding);
}

TEST_CASE("a make that has ended is not removed by calling it off") {
  for (const bool is_shared : {true, false}) {
    for (const bool is_shown : {true, false}) {
      CancelScene scene(Kind::kMake, {}, is_shared ? std::optional(shared()) : std::nullopt);
      const json ended = CancelScene::ended(scene.pod, 0, "directory: made\n");
      if (is_shown) scene.show(ended);
      if (!is_shown && is_shared) scene.transport.on("GET", "/pods").reply(200, ended.dump());
      CHECK(scene.cancel());
      CHECK(scene.removals() == 0);
      scene.show(ended);
      CHECK(scene.progress().state == Progress::State::kSucceeded);
    }
  }
}

TEST_CASE("what takes away is stopped though it has started") {
  for (const Kind kind : {Kind::kRemove, Kind::kTakeBack}) {
    CancelScene scene(kind);
    scene.show(CancelScene::running(scene.pod));
    scene.transport.on("DELETE", "/pods").reply(200);
    CHECK(scene.cancel());
    CHECK(scene.removals() == 1);
    CHECK(scene.progress().state == Progress::State::kEnding);
    CHECK_FALSE(scene.progress().acts_no_more);
  }
}

TEST_CASE("a removal by our own program has time to put back what is left when it is called off") {
  const auto grace_of = [](Kind kind, const std::string& command) {
    CancelScene scene(kind, command);
    scene.show(CancelScene::running(scene.pod));
    scene.transport.on("DELETE", "/pods").reply(200);
    CHECK(scene.cancel());
    return scene.last_body()["gracePeriodSeconds"].get<int>();
  };
  CHECK(grace_of(Kind::kRemove, "/usr/bin/local-path-node") == 10);
  // A shell goes on until it is killed, and nothing else is as long.
  CHECK(grace_of(Kind::kRemove, "/bin/mine") == 1);
  CHECK(grace_of(Kind::kRemove, "") == 1);
  CHECK(grace_of(Kind::kTakeBack, "/usr/bin/local-path-node") == 1);
}

TEST_CASE("a pod that is removed after its end acts no more, also when the cache has lost it") {
  CancelScene scene(Kind::kTakeBack);
  const json ended = CancelScene::ended(scene.pod, 0);
  scene.show(ended);
  scene.transport.on("DELETE", "/pods").reply(200);
  CHECK_FALSE(scene.runner.forget(scene.operation.id(), When::kNow).value());
  CHECK(scene.progress().state == Progress::State::kEnding);
  CHECK(scene.progress().acts_no_more);
  scene.show(CancelScene::leaving(CancelScene::running(scene.pod)));  // an older state
  CHECK(scene.progress().acts_no_more);
}
