// SPDX-License-Identifier: Apache-2.0
// What the log says of claims and volumes.

#include <doctest/doctest.h>

#include "fakes/captured_log.h"
#include "provisioner/claim_reconciler.h"
#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

namespace {

void check_fields(const std::vector<std::string>& lines, const std::vector<std::string>& fields) {
  CHECK_FALSE(lines.empty());
  for (const std::string& line : lines) {
    for (const std::string& field : fields) {
      CAPTURE(line);
      CAPTURE(field);
      CHECK(line.find(" " + field) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("every line about a claim names volume, claim and node") {
  Scene scene;
  scene.put(claim("a").node("n1"));
  ClaimReconciler reconciler(scene.world, scene.memories);
  const ClaimKey key{{"default", "a"}, "uid-a"};
  CapturedLog captured;
  const auto begin = [&] {
    (void)reconciler.step(key);
    (void)captured.take();
  };
  SUBCASE("success") {
    begin();
    scene.executor.succeed(Kind::kMake, "pvc-uid-a");
    scene.transport.on("POST", "/persistentvolumes").reply(201);
  }
  SUBCASE("a failing script, of whose output the log shows the first line here") {
    begin();
    scene.executor.fail(Kind::kMake, "pvc-uid-a", "exit code 1: one\ntwo");
  }
  SUBCASE("an error that heals") {
    scene.executor.error = Error{.code = ErrorCode::kUnavailable, .message = "cut"};
  }
  SUBCASE("an error that does not") {
    scene.executor.error = Error{.code = ErrorCode::kForbidden, .message = "no"};
  }
  (void)reconciler.step(key);
  const auto lines = captured.take();
  check_fields(lines, {"volume=pvc-uid-a", "claim=default/a", "node=n1"});
  for (const std::string& line : lines) CHECK(line.find("two") == std::string::npos);
}

TEST_CASE("every line about a volume names volume, claim and node") {
  Scene scene;
  scene.put(volume("pvc-1").claim("default", "a").released().host_path("/data/pvc-1").node("n1"));
  VolumeReconciler reconciler(scene.world, scene.memories);
  scene.transport.on("PATCH", "/persistentvolumes/pvc-1").always([&](const auto&) {
    return k8s::Response{
        .status = 200, .body = scene.served.at("pvc-1"), .content_type = "application/json"};
  });
  CapturedLog captured;
  (void)reconciler.step("pvc-1");
  scene.executor.fail(Kind::kRemove, "pvc-1", "exit code 1");
  (void)reconciler.step("pvc-1");
  check_fields(captured.take(), {"volume=pvc-1", "claim=default/a", "node=n1"});
}
