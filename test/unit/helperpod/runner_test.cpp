// SPDX-License-Identifier: Apache-2.0
#include "helperpod/runner.h"

#include <doctest/doctest.h>

#include "fakes/captured_log.h"
#include "fakes/eventually.h"
#include "fakes/helper_pod_scene.h"
#include "fakes/operations.h"

namespace lpp::helperpod::runner_cases {

using namespace lpp;
using namespace lpp::helperpod;
using namespace lpp::testing;
using lpp::testing::pod;  // not that of outcome_test.cpp
using nlohmann::json;
using operation::Executor;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using State = Progress::State;
using Start = Executor::Start;
using When = Executor::When;
using std::chrono::seconds;

namespace {

constexpr const char* kVolume = "pvc-1";
constexpr const char* kPodName = "helper-pod-create-pvc-1";

Operation make_operation() {
  Operation operation;
  operation.volume_name = kVolume;
  operation.claim = {"default", "a"};
  operation.owner_uid = "1";
  operation.node = "n1";
  operation.base_path = "/data";
  operation.path = "/data/pvc-1_default_a";
  operation.size_bytes = 1024;
  return operation;
}

/// The API server takes every helper pod.
struct RunnerScene : HelperPodScene {
  RunnerScene() { accept_posts(); }

  Progress progress() { return only(kVolume).progress; }
  /// As the API server has it, written by another process.
  static json written(const Operation& operation) {
    RunnerScene other;
    other.start(operation);
    return other.posted();
  }
};

/// The name is taken by a pod that the cache does not show.
struct TakenScene : HelperPodScene {
  TakenScene() {
    transport.on("POST", "/pods")
        .reply(409, R"({"kind":"Status","reason":"AlreadyExists","code":409})");
  }
};

}  // namespace

TEST_CASE("nothing is done before an operation is started, and then it is on record") {
  RunnerScene scene;
  CHECK(scene.runner.recorded(kVolume).empty());
  CHECK(scene.transport.requests().empty());
  CHECK(scene.start(make_operation()) == Start::kRecorded);
  CHECK(same(*scene.only(kVolume).operation, make_operation()));
  CHECK(scene.runner.recorded("pvc-2").empty());
  CHECK(scene.transport.requests().size() == 1);
}

TEST_CASE("an operation's way from its record to its end, and what is known of it meanwhile") {
  RunnerScene scene;
  scene.start(make_operation());
  const TimePoint begun = scene.clock.now();
  // It may have started, for all we know; the cache is behind.
  CHECK(scene.progress() == Progress{.state = State::kRunning,
                                     .begins_unasked = true,
                                     .changes_at = begun + seconds(10)});
  const json pod = scene.posted();
  scene.show(pod);
  CHECK(scene.progress() == Progress{.state = State::kWaiting,
                                     .begins_unasked = true,
                                     .changes_at = begun + seconds(120)});
  scene.show(
      RunnerScene::with_state(pod, "Pending", {{"waiting", {{"reason", "ContainerCreating"}}}}));
  CHECK(scene.progress().state == State::kWaiting);
  scene.show(RunnerScene::with_state(pod, "Pending", {{"running", json::object()}}));
  CHECK(scene.progress().state == State::kRunning);
  scene.show(RunnerScene::running(pod));
  CHECK(scene.progress() == Progress{.state = State::kRunning, .changes_at = begun + seconds(150)});
  scene.show(RunnerScene::ended(pod, 0, "all is well\ndirectory: made\n"));
  CHECK(scene.progress() ==
        Progress{.state = State::kSucceeded, .directory = operation::Directory::kMade});
  CHECK(scene.transport.requests().size() == 1);

  scene.transport.on("DELETE", kPodName).reply(200);
  const auto id = make_operation().id();
  CHECK_FALSE(scene.runner.forget(id, When::kNow).value());
  CHECK_FALSE(scene.runner.forget(id, When::kNow).value());
  CHECK(scene.transport.count("DELETE", "") == 1);
  CHECK(scene.last_body()["preconditions"]["uid"] == kPodName);
  CHECK_FALSE(scene.last_body().contains("gracePeriodSeconds"));
  CHECK(scene.progress().state == State::kEnding);
  scene.hide(kPodName);
  CHECK(scene.runner.forget(id, When::kNow).value());
  CHECK(scene.runner.recorded(kVolume).empty());
  CHECK(scene.runner.size() == 0);
}

TEST_CASE("after a restart the pods that are there say what was under way") {
  RunnerScene restarted;
  restarted.show(RunnerScene::ended(RunnerScene::written(make_operation()), 0));
  CHECK(same(*restarted.only(kVolume).operation, make_operation()));
  CHECK(restarted.progress().state == State::kSucceeded);
  CHECK(restarted.transport.requests().empty());
}

TEST_CASE("everything recorded for a volume is told, each attempt and kind by itself") {
  RunnerScene scene;
  Operation again = make_operation();
  again.attempt = 2;
  Operation back = make_operation();
  back.kind = Kind::kTakeBack;
  back.attempt = 3;
  for (const auto& operation : {make_operation(), again, back}) scene.start(operation);
  CHECK(scene.runner.recorded(kVolume).size() == 3);
  CHECK(scene.transport.count("POST", "/pods") == 3);
  scene.transport.on("GET", "/pods").reply(200, scene.posted().dump());
  scene.transport.on("DELETE", "/pods").reply(200);
  REQUIRE(scene.runner.cancel(again.id()).ok());
  for (const auto& [operation, progress] : scene.runner.recorded(kVolume)) {
    CHECK((progress.state == State::kEnding) == (operation->id() == again.id()));
  }
}

TEST_CASE("a pod of the same name that the cache does not show is recognised") {
  TakenScene scene;
  auto& reads = scene.transport.on("GET", kPodName);
  SUBCASE("ours, for this operation") {
    reads.reply(200, RunnerScene::written(make_operation()).dump());
    CHECK(scene.start(make_operation()) == Start::kRecorded);
    CHECK(scene.state_of(kVolume) == State::kRunning);
  }
  SUBCASE("ours, recorded with another place: the record counts") {
    Operation begun = make_operation();
    begun.path = "/elsewhere/pvc-1_default_a";
    reads.reply(200, RunnerScene::written(begun).dump());
    CHECK(scene.start(make_operation()) == Start::kRecorded);
    CHECK(same(*scene.only(kVolume).operation, begun));
  }
  SUBCASE("ours, for another owner") {
    Operation other = make_operation();
    other.owner_uid = "another";
    reads.reply(200, RunnerScene::written(other).dump());
    CHECK(scene.start(make_operation()) == Start::kOtherFound);
    CHECK(same(*scene.only(kVolume).operation, other));
  }
  SUBCASE("ours, on its way out") {
    reads.reply(200, RunnerScene::leaving(RunnerScene::written(make_operation())).dump());
    CHECK(scene.start(make_operation()) == Start::kRecorded);
    CHECK(scene.state_of(kVolume) == State::kEnding);
  }
  SUBCASE("gone again") {
    reads.reply(404);
    CHECK(scene.start(make_operation()) == Start::kOtherFound);
    CHECK(scene.runner.recorded(kVolume).empty());
  }
  SUBCASE("it cannot be read") {
    reads.fail(ErrorCode::kTimeout);
    CHECK_FALSE(scene.runner.start(make_operation()).ok());
  }
  SUBCASE("not ours") {
    reads.reply(200, pod(kPodName).ns("lps").json().dump());
    const auto started = scene.runner.start(make_operation());
    REQUIRE_FALSE(started.ok());
    CHECK(started.error().is(ErrorCode::kConflict));
    CHECK(started.error().message.find("was not made by this provisioner") != std::string::npos);
  }
  CHECK(scene.transport.count("DELETE", "") == 0);
}

TEST_CASE("a pod that the program before us has left is removed first") {
  TakenScene scene;
  json left = pod(kPodName).ns("lps").json();
  left["spec"]["volumes"] =
      json::array({{{"name", "data"}, {"hostPath", {{"path", "/elsewhere/"}}}}});
  left["spec"]["containers"] = json::array(
      {{{"name", "helper-pod"}, {"args", {"-p", "/elsewhere/pvc-1_default_a", "-s", "1"}}}});
  bool deleting = false;
  SUBCASE("still there") {}
  SUBCASE("going already") {
    left = TakenScene::leaving(left);
    deleting = true;
  }
  scene.transport.on("GET", kPodName).reply(200, left.dump());
  scene.transport.on("DELETE", kPodName).reply(200);
  const auto started = scene.runner.start(make_operation());
  REQUIRE_FALSE(started.ok());
  CHECK(started.error().is(ErrorCode::kUnavailable));
  CHECK(scene.transport.count("DELETE", "") == (deleting ? 0 : 1));
}

TEST_CASE("starting meets refusals without keeping a record") {
  HelperPodScene scene;
  scene.transport.on("POST", "/pods")
      .reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"PodSecurity"})");
  const auto started = scene.runner.start(make_operation());
  REQUIRE_FALSE(started.ok());
  CHECK(started.error().is(ErrorCode::kForbidden));
  CHECK(started.error().message.find("PodSecurity") != std::string::npos);
  CHECK(scene.runner.size() == 0);
  scene.pod_template = nullptr;
  CHECK_FALSE(scene.runner.start(make_operation()).ok());
}

TEST_CASE(
    "what is cancelled ends soon, is asked of its kubelet, and is on record until it is gone") {
  RunnerScene scene;
  Operation make = make_operation();
  make.shape = operation::Shape{.has_affinity = false};  // else it is let end
  scene.start(make);
  const json pod = scene.posted();
  auto& removes = scene.transport.on("DELETE", kPodName);
  const auto id = make.id();
  const json preconditions{{"uid", kPodName}, {"resourceVersion", "1"}};
  SUBCASE("not seen yet") { scene.transport.on("GET", kPodName).reply(200, pod.dump()); }
  SUBCASE("not started, as far as is known") { scene.show(pod); }
  SUBCASE("refused at first") {
    scene.show(pod);
    removes.reply(403);
    CHECK_FALSE(scene.runner.cancel(id).ok());
    CHECK(scene.progress().state != State::kEnding);
  }
  removes.reply(200);
  REQUIRE(scene.runner.cancel(id).ok());
  CHECK(scene.last_body()["gracePeriodSeconds"] == 1);
  CHECK(scene.last_body()["preconditions"] == preconditions);
  CHECK(scene.progress().state == State::kEnding);
  const auto count = scene.transport.requests().size();
  REQUIRE(scene.runner.cancel(id).ok());
  CHECK(scene.transport.requests().size() == count);
  scene.show(RunnerScene::leaving(RunnerScene::running(pod)));
  CHECK(scene.progress().state == State::kEnding);
  scene.hide(kPodName);
  CHECK(scene.runner.recorded(kVolume).empty());
  CHECK(scene.runner.cancel(id).ok());
}

TEST_CASE("only the operation that is named is cancelled or forgotten") {
  RunnerScene scene;
  scene.run(make_operation());
  auto other = make_operation().id();
  SUBCASE("kind") { other.kind = Kind::kTakeBack; }
  SUBCASE("owner") { other.owner_uid = "2"; }
  SUBCASE("attempt") { other.attempt = 2; }
  SUBCASE("volume") { other.volume_name = "pvc-2"; }
  CHECK(scene.runner.cancel(other).ok());
  CHECK(scene.runner.forget(other, When::kNow).value());
  CHECK(scene.progress().state == State::kSucceeded);
  CHECK(scene.transport.count("DELETE", "") == 0);
}

TEST_CASE("removing meets every kind of answer") {
  RunnerScene scene;
  scene.run(make_operation());
  const auto forget = [&] { return scene.runner.forget(make_operation().id(), When::kNow); };
  auto& removes = scene.transport.on("DELETE", kPodName);
  SUBCASE("already gone") {
    removes.reply(404);
    CHECK(forget().value());
  }
  SUBCASE("the name stands for another pod") {
    removes.reply(409, R"({"kind":"Status","reason":"Conflict","code":409})");
    CHECK(forget().value());
  }
  SUBCASE("no connection: tried again") {
    removes.fail(ErrorCode::kUnavailable).reply(200);
    CHECK_FALSE(forget().ok());
    CHECK_FALSE(forget().value());
    CHECK(scene.transport.count("DELETE", "") == 2);
    return;
  }
  CHECK(scene.runner.recorded(kVolume).empty());
}

TEST_CASE("a failed pod is reported with the tail of its log, which is fetched once") {
  RunnerScene scene;
  scene.begin();
  scene.start(make_operation());
  auto& logs = scene.transport.on("GET", "/log");
  const auto failure = [&] {
    CHECK(eventually([&] { return scene.state_of(kVolume) == State::kFailed; }));
    return scene.progress();
  };
  const json failed = RunnerScene::ended(scene.posted(), 3);
  SUBCASE("with a log") {
    logs.reply(200, "mkdir: no space left", "text/plain");
    scene.show(failed);
    const auto progress = failure();
    CHECK(progress.message.find("exit code 3") != std::string::npos);
    CHECK(progress.message.find("mkdir: no space left") != std::string::npos);
    CHECK(scene.progress() == progress);
    CHECK(scene.transport.count("GET", "/log") == 1);
  }
  SUBCASE("the log cannot be had") {
    logs.reply(500);
    scene.show(failed);
    CHECK(failure().message.ends_with("exit code 3"));
  }
  SUBCASE("the kubelet hangs: it runs, until the patience ends") {
    logs.hang();
    scene.show(failed);
    const auto until = scene.clock.now() + PodLogs::kPatience;
    CHECK(scene.progress() == Progress{.state = State::kRunning, .changes_at = until});
    scene.clock.advance(PodLogs::kPatience);
    CHECK(scene.progress().state == State::kFailed);
    CHECK_FALSE(scene.progress().changes_at);
  }
}

TEST_CASE("when a log has been read its owner is woken") {
  RunnerScene scene;
  scene.begin();
  scene.start(make_operation());
  scene.transport.on("GET", "/log").reply(200, "x", "text/plain");
  scene.show(RunnerScene::ended(scene.posted(), 3));
  (void)scene.take_woken();
  (void)scene.runner.recorded(kVolume);
  CHECK(eventually([&] { return scene.take_woken() == std::vector<std::string>{kVolume}; }));
}

TEST_CASE("what a failed script said is in the log once, line by line, marked and bounded") {
  RunnerScene scene;
  scene.begin();
  scene.start(make_operation());
  std::string said;
  for (int i = 1; i <= 30; ++i) said += "line " + std::to_string(i) + "\n";
  bool in_status = false;
  SUBCASE("in the pod's status") { in_status = true; }
  SUBCASE("in the container's log") {
    scene.transport.on("GET", "/log").reply(200, said + "\x1b[2Jevil", "text/plain");
  }
  CapturedLog captured;
  scene.show(RunnerScene::ended(scene.posted(), 3, in_status ? said : ""));
  CHECK(eventually([&] { return scene.state_of(kVolume) == State::kFailed; }));
  (void)scene.progress();
  std::vector<std::string> lines;
  for (const std::string& line : captured.take()) {
    if (line.starts_with("warning helper pod output | ")) lines.push_back(line);
  }
  REQUIRE(lines.size() == 10);
  CHECK(lines[9].starts_with(in_status ? "warning helper pod output | line 30 pod="
                                       : "warning helper pod output | \\x1b[2Jevil pod="));
  for (const std::string& line : lines) CHECK(line.find(" node=n1") != std::string::npos);
}

TEST_CASE("a pod that never starts, or never ends, is late at some point") {
  RunnerScene scene;
  scene.start(make_operation());
  const json pod = scene.posted();
  SUBCASE("never started") {
    scene.show(pod);
    scene.clock.advance(seconds(119));
    CHECK(scene.progress().state == State::kWaiting);
    scene.clock.advance(seconds(1));
    CHECK(scene.progress() ==
          Progress{.state = State::kLate,
                   .message = "helper pod helper-pod-create-pvc-1 did not start within 120 s: is "
                              "node n1 up?",
                   .reason = "Timeout"});
  }
  SUBCASE("stuck for a reason that is known") {
    scene.show(RunnerScene::with_state(
        pod, "Pending", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}));
    CHECK(scene.progress().state == State::kWaiting);
    CHECK(scene.progress().reason == "ErrImagePull");
    CHECK(scene.progress().message.find("ErrImagePull") != std::string::npos);
    scene.clock.advance(seconds(121));
    CHECK(scene.progress().state == State::kLate);
    CHECK(scene.progress().reason == "ErrImagePull");
    CHECK(scene.progress().message.find("no such image") != std::string::npos);
  }
  SUBCASE("never ends") {
    scene.show(RunnerScene::running(pod));
    scene.clock.advance(seconds(149));
    CHECK(scene.progress().state == State::kRunning);
    scene.clock.advance(seconds(1));
    CHECK(scene.progress().state == State::kLate);
    CHECK(scene.progress().message.find("did not end within 150 s") != std::string::npos);
  }
}

TEST_CASE("a pod that hangs in Terminating is ending for as long as it does, and that is said") {
  RunnerScene scene;
  scene.start(make_operation());
  scene.show(RunnerScene::leaving(scene.posted()));
  CHECK(scene.progress() ==
        Progress{.state = State::kEnding, .changes_at = scene.clock.now() + seconds(120)});
  scene.clock.advance(seconds(121));
  CHECK(scene.progress() ==
        Progress{.state = State::kEnding,
                 .message = "helper pod lps/helper-pod-create-pvc-1 was deleted but does not go: "
                            "is node n1 up, and has the pod finalizers?",
                 .reason = "StuckTerminating"});
  scene.hide(kPodName);
  CHECK(scene.runner.recorded(kVolume).empty());
}

TEST_CASE("a removal gets more time than a creation") {
  for (const Kind kind : {Kind::kRemove, Kind::kTakeBack}) {
    RunnerScene scene;
    Operation remove = make_operation();
    remove.kind = kind;
    scene.start(remove);
    CHECK(scene.posted()["spec"]["activeDeadlineSeconds"] == 3600);
    scene.show(RunnerScene::running(scene.posted()));
    scene.clock.advance(std::chrono::minutes(50));
    CHECK(scene.progress().state == State::kRunning);
  }
}

TEST_CASE("a pod that came and went without being seen is forgotten when that is certain") {
  RunnerScene scene;
  scene.start(make_operation());
  auto& reads = scene.transport.on("GET", kPodName);
  State state = State::kRunning;
  SUBCASE("as it was") {}
  SUBCASE("cancelled") {
    REQUIRE(scene.runner.cancel(make_operation().id()).ok());
    state = State::kEnding;
  }
  SUBCASE("being removed") {
    scene.clock.advance(seconds(11));
    scene.transport.on("DELETE", kPodName).reply(200);
    CHECK_FALSE(scene.runner.forget(make_operation().id(), When::kNow).value());
    state = State::kEnding;
    CHECK(scene.progress() ==
          Progress{.state = state, .changes_at = scene.clock.now() + seconds(10)});
  }
  scene.clock.advance(seconds(11));
  SUBCASE("it is there, and only the cache is behind") {
    reads.reply(200, scene.posted().dump());
    CHECK(scene.progress().state == state);
  }
  SUBCASE("not known") {
    reads.fail(ErrorCode::kTimeout);
    CHECK(scene.progress().state == state);
  }
  SUBCASE("gone") {
    reads.reply(404);
    CHECK(scene.runner.recorded(kVolume).empty());
    CHECK(scene.runner.size() == 0);
  }
  SUBCASE("another has its name") {
    json other = scene.posted();
    other["metadata"]["uid"] = "other";
    reads.reply(200, other.dump());
    CHECK(scene.runner.recorded(kVolume).empty());
  }
}

TEST_CASE("what is not on record any more was a helper pod that is gone") {
  RunnerScene scene;
  CHECK(scene.runner.lost(make_operation()) ==
        Progress{.state = State::kFailed,
                 .message = "the helper pod was removed before it ended",
                 .reason = "HelperPodRemoved"});
}

TEST_CASE("a pod with our label but an unreadable record is left alone") {
  RunnerScene scene;
  scene.begin();
  scene.show(pod("helper-pod-create-x")
                 .ns("lps")
                 .annotation("local.path.provisioner/operation", "{")
                 .json());
  CHECK(scene.runner.size() == 0);
  CHECK(scene.transport.requests().empty());
  CHECK(scene.take_woken().empty());
}

}  // namespace lpp::helperpod::runner_cases
