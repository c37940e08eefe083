// SPDX-License-Identifier: Apache-2.0
// Helper pods that have done their work and wait to be removed.

#include <doctest/doctest.h>

#include "fakes/helper_pod_scene.h"

namespace lpp::helperpod::runner_settled {

using namespace lpp;
using namespace lpp::helperpod;
using namespace lpp::testing;
using nlohmann::json;
using operation::Kind;
using operation::Operation;
using operation::Progress;
using Start = operation::Executor::Start;
using State = Progress::State;
using When = operation::Executor::When;
using Names = std::vector<std::string>;

namespace {

constexpr const char* kVolume = "pvc-1";
constexpr const char* kPodName = "helper-pod-create-pvc-1";
constexpr const char* kForbidden =
    R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})";
constexpr const char* kExists = R"({"kind":"Status","reason":"AlreadyExists","code":409})";

Operation make_operation() {
  Operation operation;
  operation.volume_name = kVolume;
  operation.owner_uid = "1";
  operation.node = "n1";
  operation.path = "/data/pvc-1";
  return operation;
}

struct SettledScene : HelperPodScene {
  Result<bool> forget(When when) { return runner.forget(make_operation().id(), when); }
  std::size_t removals() const { return transport.count("DELETE", ""); }
};

}  // namespace

TEST_CASE("a pod whose work is recorded elsewhere is history until it is removed") {
  SettledScene scene;
  auto& posts = scene.transport.on("POST", "/pods");
  posts.run([](const k8s::Request& request, const auto*, const auto&) {
    return Result<k8s::Response>(k8s::Response{
        .status = 201, .body = HelperPodScene::with_uid(json::parse(request.body)).dump()});
  });
  scene.begin();
  scene.run(make_operation());
  CHECK(scene.forget(When::kWhenQuiet).value());
  CHECK(scene.forget(When::kWhenQuiet).value());  // no matter how often
  CHECK(scene.removals() == 0);
  CHECK(scene.runner.recorded(kVolume).empty());
  CHECK(scene.runner.settled().size() == 1);
  CHECK(scene.runner.settled().wait({}) == scene.clock.now());
  auto& removes = scene.transport.on("DELETE", kPodName);
  (void)scene.take_woken();

  SUBCASE("its changes wake nobody") {
    const auto pod = scene.pods.get({"lps", kPodName});
    scene.runner.observe({pod, pod});
    removes.reply(200);
    CHECK(scene.runner.remove_settled());
    CHECK(scene.last_body()["preconditions"]["uid"] == kPodName);
    CHECK_FALSE(scene.last_body().contains("gracePeriodSeconds"));
    scene.hide(kPodName);
    CHECK(scene.runner.size() == 0);
    CHECK(scene.take_woken().empty());
  }
  SUBCASE("what cannot be removed has an owner again, who is told the error") {
    removes.reply(403, kForbidden).reply(403, kForbidden).reply(200);
    CHECK_FALSE(scene.runner.remove_settled());
    CHECK(scene.take_woken() == Names{kVolume});
    CHECK(scene.only(kVolume).operation->id() == make_operation().id());
    const auto failed = scene.forget(When::kWhenQuiet);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().is(ErrorCode::kForbidden));
    CHECK_FALSE(scene.forget(When::kWhenQuiet).value());  // now it goes
  }
  SUBCASE("somebody else has removed it") {
    scene.hide(kPodName);
    CHECK(scene.runner.remove_settled());
    CHECK(scene.removals() == 0);
  }
  SUBCASE("it goes now after all") {
    removes.reply(200);
    CHECK(scene.forget(When::kNow).value());
    CHECK(scene.removals() == 1);
    CHECK(scene.runner.remove_settled());
    CHECK(scene.removals() == 1);
  }
  SUBCASE("the same is to be done again: its success of old counts for nothing") {
    posts.reply(409, kExists);
    scene.transport.on("GET", kPodName).reply(200, scene.posted().dump());
    removes.reply(200);
    CHECK(scene.start(make_operation()) == Start::kOtherFound);
    CHECK(scene.removals() == 1);
    CHECK(scene.state_of(kVolume) == State::kEnding);
    scene.hide(kPodName);
    CHECK(scene.take_woken() == Names{kVolume});
    CHECK(scene.runner.recorded(kVolume).empty());
  }
  SUBCASE("the same is to be done again while it goes already") {
    removes.reply(200);
    CHECK(scene.runner.remove_settled());
    posts.reply(409, kExists);
    scene.transport.on("GET", kPodName).reply(200, scene.posted().dump());
    CHECK(scene.start(make_operation()) == Start::kOtherFound);
    CHECK(scene.removals() == 1);
    CHECK(scene.state_of(kVolume) == State::kEnding);
  }
  SUBCASE("the same is to be done again, and it cannot be removed") {
    posts.reply(409, kExists);
    scene.transport.on("GET", kPodName).reply(200, scene.posted().dump());
    removes.reply(403, kForbidden);
    CHECK_FALSE(scene.runner.start(make_operation()).ok());
    CHECK(scene.runner.recorded(kVolume).empty());
  }
}

TEST_CASE("the end of a removal is told, for somebody may wait for the directory") {
  SettledScene scene;
  scene.accept_posts();
  scene.begin();
  Operation operation = make_operation();
  operation.kind = Kind::kRemove;
  scene.run(operation);
  (void)scene.take_woken();
  CHECK(scene.runner.forget(operation.id(), When::kWhenQuiet).value());
  CHECK(scene.take_woken() == Names{kVolume});
  CHECK(scene.runner.forget(operation.id(), When::kWhenQuiet).value());
  CHECK(scene.take_woken().empty());  // not again
}

TEST_CASE("only a pod that has ended can wait to be removed") {
  SettledScene scene;
  scene.accept_posts();
  scene.start(make_operation());
  scene.transport.on("DELETE", kPodName).reply(200);
  CHECK_FALSE(scene.forget(When::kWhenQuiet).value());
  CHECK(scene.removals() == 1);
  CHECK(scene.runner.settled().size() == 0);
}

TEST_CASE("no more than so many pods wait to be removed") {
  SettledPods pods;
  const TimePoint now{std::chrono::hours(1)};
  for (std::size_t i = 0; i < SettledPods::kMax; ++i) {
    CHECK(pods.add(std::to_string(i), now + std::chrono::seconds(i)));
  }
  CHECK_FALSE(pods.add("one too many", now));
  CHECK(pods.wait({}) == now);
  CHECK(pods.take() == "0");
  CHECK(pods.wait({}) == now + std::chrono::seconds(1));
  CHECK(pods.add("it fits now", now));
}

}  // namespace lpp::helperpod::runner_settled
