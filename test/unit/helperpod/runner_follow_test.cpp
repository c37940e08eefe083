// What is recorded can be followed without being started again.

#include <doctest/doctest.h>

#include "fakes/helper_pod_scene.h"

using namespace lpp;             // NOLINT(google-build-using-namespace): a test file
using namespace lpp::helperpod;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;    // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kHelperPod = "helper-pod-create-pvc-1";

Operation attempt_of_pvc_1(int attempt) {
  Operation operation;
  operation.volume_name = "pvc-1";
  operation.node = "n1";
  operation.path = "/data/pvc-1";
  operation.attempt = attempt;
  return operation;
}

}  // namespace

TEST_CASE("an operation that is recorded is followed, one that is not is not started") {
  HelperPodScene scene;
  const auto follow = [&](int attempt) {
    return scene.runner.advance(attempt_of_pvc_1(attempt), true).value();
  };
  CHECK_FALSE(follow(1));
  CHECK(scene.transport.requests().empty());

  scene.run(attempt_of_pvc_1(1));
  REQUIRE(follow(1));
  CHECK(follow(1)->state == Progress::State::kSucceeded);
  CHECK(*follow(1) == ensure(scene.runner, attempt_of_pvc_1(1)).value());
  CHECK_FALSE(follow(2));  // another attempt is recorded, and stays

  // On its way out it is waited for; gone, it is not made again.
  const auto pod = scene.pods.get({"lps", kHelperPod});
  auto leaving = std::make_shared<k8s::Pod>(*pod);
  leaving->meta.deletion_timestamp = "2026-01-01T00:00:00Z";
  scene.pods.put(pod->meta.key(), leaving);
  scene.runner.observe({pod, leaving});
  CHECK(follow(1) == Progress{.started = false});
  scene.pods.erase({"lps", kHelperPod});
  scene.runner.observe({leaving, nullptr});
  CHECK_FALSE(follow(1));
  CHECK(scene.transport.requests().size() == 1);
}
