// Helper pods that have done their work and wait to be removed.

#include <doctest/doctest.h>

#include "fakes/helper_pod_scene.h"

using namespace lpp;             // NOLINT(google-build-using-namespace): a test file
using namespace lpp::helperpod;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;    // NOLINT(google-build-using-namespace)
using nlohmann::json;
using When = Executor::When;

namespace {

constexpr const char* kVolume = "pvc-1";
constexpr const char* kPodName = "helper-pod-create-pvc-1";
constexpr const char* kForbidden =
    R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})";

Operation create_operation() {
  Operation operation;
  operation.volume_name = kVolume;
  operation.node = "n1";
  operation.path = "/data/pvc-1";
  return operation;
}

struct SettledScene : HelperPodScene {
  Result<bool> clean_up(When when) { return runner.clean_up(HelperAction::kCreate, kVolume, when); }
  /// The volumes that are to be woken because the pod could not be removed.
  std::vector<std::string> remove_settled() {
    const auto stays = runner.remove_settled();
    return stays ? std::vector{stays->volume_name} : std::vector<std::string>{};
  }
  std::size_t removals() const { return transport.count("DELETE", ""); }
  void hide() {
    const auto before = pods.erase({"lps", kPodName});
    CHECK(runner.observe({before, nullptr}) == nullptr);
  }
};

}  // namespace

TEST_CASE("a pod whose work is recorded elsewhere is history until it is removed") {
  SettledScene scene;
  scene.run(create_operation());
  CHECK(scene.clean_up(When::kWhenQuiet).value());
  CHECK(scene.clean_up(When::kWhenQuiet).value());  // no matter how often
  CHECK(scene.removals() == 0);
  CHECK_FALSE(scene.runner.recorded(HelperAction::kCreate, kVolume).value());
  CHECK(scene.runner.settled().size() == 1);
  CHECK(scene.runner.settled().wait({}) == scene.clock.now());
  auto& removes = scene.transport.on("DELETE", kPodName);

  SUBCASE("its changes wake nobody") {
    const auto pod = scene.pods.get({"lps", kPodName});
    CHECK(scene.runner.observe({pod, pod}) == nullptr);
    removes.reply(200);
    CHECK(scene.remove_settled().empty());
    const auto options = json::parse(scene.transport.requests().back().body);
    CHECK(options["preconditions"]["uid"] == kPodName);
    scene.hide();
    CHECK(scene.runner.size() == 0);
  }
  SUBCASE("what cannot be removed has an owner again, who is told the error") {
    removes.reply(403, kForbidden).reply(403, kForbidden).reply(200);
    CHECK(scene.remove_settled() == std::vector<std::string>{kVolume});
    CHECK(scene.runner.recorded(HelperAction::kCreate, kVolume).value() == create_operation());
    const auto failed = scene.clean_up(When::kWhenQuiet);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().is(ErrorCode::kForbidden));
    CHECK_FALSE(scene.clean_up(When::kWhenQuiet).value());  // now it goes
  }
  SUBCASE("somebody else has removed it") {
    scene.hide();
    CHECK(scene.remove_settled().empty());
    CHECK(scene.removals() == 0);
  }
  SUBCASE("it goes now after all") {
    removes.reply(200);
    CHECK_FALSE(scene.clean_up(When::kNow).value());
    CHECK(scene.remove_settled().empty());
    CHECK(scene.removals() == 1);
  }
  SUBCASE("the same is to be done again: its success of old counts for nothing") {
    removes.reply(200);
    const auto progress = ensure(scene.runner, create_operation());
    REQUIRE(progress.ok());
    CHECK(progress->state == Progress::State::kRunning);
    CHECK(scene.transport.count("POST", "/pods") == 1);
    CHECK(scene.removals() == 1);
    scene.hide();
    CHECK(ensure(scene.runner, create_operation()).ok());
    CHECK(scene.transport.count("POST", "/pods") == 2);
  }
}

TEST_CASE("only a pod that has ended can wait to be removed") {
  SettledScene scene;
  REQUIRE(ensure(scene.runner, create_operation()).ok());
  scene.transport.on("DELETE", kPodName).reply(200);
  CHECK_FALSE(scene.clean_up(When::kWhenQuiet).value());
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
