// SPDX-License-Identifier: Apache-2.0
// A helper pod whose creation had no answer: it may be there or not, until it has been asked for.

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "fakes/helper_pod_scene.h"

namespace lpp::testing {

using operation::Executor;
using operation::Kind;
using operation::Operation;
using State = operation::Progress::State;

namespace {

Operation a_removal(const char* volume = "pvc-1") {
  Operation operation;
  operation.kind = Kind::kRemove;
  operation.volume_name = volume;
  operation.owner_uid = "1";
  operation.node = "n1";
  operation.base_path = "/data";
  operation.path = "/data/x";
  return operation;
}

struct UnansweredScene : HelperPodScene {
  UnansweredScene() {
    transport.on("POST", "/pods").fail(ErrorCode::kTimeout);
    CHECK_FALSE(runner.start(a_removal()).ok());
  }
  static nlohmann::json as_stored() {
    HelperPodScene other;
    other.accept_posts();
    other.start(a_removal());
    return other.posted();
  }
  FakeTransport::Script& reads = transport.on("GET", "helper-pod-delete-pvc-1");
};

}  // namespace

TEST_CASE("of a pod whose creation had no answer it is asked whether it is there") {
  UnansweredScene scene;
  SUBCASE("it is, and it is ours") {
    scene.reads.reply(200, UnansweredScene::as_stored().dump());
    CHECK(scene.state_of("pvc-1") == State::kRunning);
    CHECK(same_place(*scene.only("pvc-1").operation, a_removal()));
    CHECK(scene.runner.size() == 1);
    scene.transport.on("DELETE", "/pods/").reply(200);
    CHECK(scene.runner.cancel(a_removal().id()).ok());
    CHECK(scene.transport.count("DELETE", "") == 1);
  }
  SUBCASE("it is not") {
    scene.reads.reply(404);
    CHECK(scene.runner.recorded("pvc-1").empty());
    CHECK_FALSE(scene.ledger.take(a_removal("pvc-2")));
  }
  SUBCASE("it is a stranger's") {
    scene.reads.reply(200, pod("helper-pod-delete-pvc-1").ns("lps").json().dump());
    CHECK(scene.runner.recorded("pvc-1").empty());
  }
  (void)scene.runner.recorded("pvc-1");
  CHECK(scene.transport.count("GET", "") == 1);  // and not again
}

TEST_CASE("as long as nobody can tell, it is on record and keeps its directory") {
  UnansweredScene scene;
  scene.reads.fail(ErrorCode::kTimeout).fail(ErrorCode::kTimeout).reply(404);
  for (int i = 0; i < 2; ++i) {
    const auto recorded = scene.only("pvc-1");
    CHECK(recorded.progress.state == State::kEnding);
    CHECK_FALSE(recorded.progress.acts_no_more);
    CHECK(recorded.progress.changes_at == scene.clock.now() + std::chrono::seconds(1));
    CHECK(scene.ledger.take(a_removal("pvc-2")));
  }
  CHECK(scene.runner.recorded("pvc-1").empty());
}

TEST_CASE("a pod that a cache shows by now needs no question") {
  UnansweredScene scene;
  scene.show(UnansweredScene::as_stored());
  CHECK(scene.state_of("pvc-1") == State::kWaiting);
  CHECK(scene.transport.count("GET", "") == 0);
}

TEST_CASE("an answer that cannot be read is none") {
  HelperPodScene scene;
  scene.transport.on("POST", "/pods").reply(201, R"({"metadata":{}})");
  scene.transport.on("GET", "helper-pod-delete-pvc-1")
      .reply(200, UnansweredScene::as_stored().dump());
  CHECK_FALSE(scene.runner.start(a_removal()).ok());
  CHECK(scene.state_of("pvc-1") == State::kRunning);
}

TEST_CASE("only an answer that it is not stored says so") {
  for (const auto& row :
       std::vector<std::pair<int, int>>{{500, 1}, {504, 1}, {403, 0}, {422, 0}, {429, 0}}) {
    CAPTURE(row.first);
    const auto& [status, asked] = row;
    HelperPodScene scene;
    scene.transport.on("POST", "/pods").always([status = status](const auto&) {
      return k8s::Response{.status = status};
    });
    scene.transport.on("GET", "helper-pod-delete-pvc-1").reply(404);
    CHECK_FALSE(scene.runner.start(a_removal()).ok());
    CHECK(scene.runner.recorded("pvc-1").empty());
    CHECK(scene.transport.count("GET", "") == asked);
  }
}

}  // namespace lpp::testing
