// A step that follows what is recorded starts nothing when the record goes while it looks: somebody
// else may have finished the work, and the path be another volume's by now.

#include <doctest/doctest.h>

#include "provisioner/claim_reconciler.h"
#include "provisioner/volume_reconciler.h"
#include "unit/provisioner/scene.h"

using namespace lpp;               // NOLINT(google-build-using-namespace): a test file
using namespace lpp::provisioner;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;      // NOLINT(google-build-using-namespace)
using helperpod::HelperAction;

namespace {

constexpr const char* kVolume = "pvc-uid-a";
const ClaimKey kKey{{"default", "a"}, "uid-a"};

/// Both reconcilers, and a record that goes in the middle of the next step.
struct VanishingScene : Scene {
  VanishingScene() {
    transport.on("GET", "/persistentvolumes/pvc-uid-a").always([](const auto&) {
      return k8s::Response{.status = 404};
    });
  }
  Action claim_step() { return claim_reconciler.step(kKey); }
  Action volume_step() { return volume_reconciler.step(kVolume); }
  void vanish(HelperAction action) {
    REQUIRE(executor.records.contains({action, kVolume}));
    asked_before = executor.ensured.size();
    executor.before_follow = [this, action] { executor.records.erase({action, kVolume}); };
  }
  bool nothing_was_started() const { return executor.ensured.size() == asked_before; }

  std::size_t asked_before = 0;
  ClaimReconciler claim_reconciler{world, attempts};
  VolumeReconciler volume_reconciler{world, attempts};
};

}  // namespace

TEST_CASE("nothing is started for a record that goes while a step looks") {
  VanishingScene scene;
  const Action then = Action::await_change(kRecheck);
  SUBCASE("a claim's directory is being made") {
    scene.put(claim("a").node("n1"));
    (void)scene.claim_step();
    scene.vanish(HelperAction::kCreate);
    CHECK(scene.claim_step() == then);
    CHECK(scene.nothing_was_started());
    (void)scene.claim_step();  // the claim is there still
    CHECK_FALSE(scene.nothing_was_started());
  }
  SUBCASE("what was begun for a claim that is gone") {
    scene.put(claim("a").node("n1"));
    (void)scene.claim_step();
    scene.claims.erase({"default", "a"});
    scene.vanish(HelperAction::kCreate);
    CHECK(scene.claim_step() == then);
    CHECK(scene.nothing_was_started());
    CHECK(scene.executor.records.empty());
  }
  SUBCASE("a directory is being taken back") {
    scene.put(claim("a").node("n1"));
    (void)scene.claim_step();
    scene.executor.succeed(HelperAction::kCreate, kVolume);
    scene.claims.erase({"default", "a"});
    scene.api_shows_no_claim();
    (void)scene.claim_step();
    scene.vanish(HelperAction::kDelete);
    CHECK(scene.claim_step() == then);
    CHECK(scene.nothing_was_started());
    (void)scene.claim_step();  // after the API server was asked again
    CHECK(scene.executor.records.contains({HelperAction::kDelete, kVolume}));
    CHECK(scene.transport.count("GET", "/persistentvolumes/pvc-uid-a") == 2);
  }
  SUBCASE("the directory of a released volume is being removed") {
    auto& removes = scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a");
    removes.reply(200);
    scene.put(volume(kVolume)
                  .claim("default", "a")
                  .released()
                  .host_path("/data/pvc-uid-a_default_a")
                  .node("n1")
                  .annotation("local.path.provisioner/selected-node", "n1")
                  .finalizer("external-provisioner.volume.kubernetes.io/finalizer"));
    (void)scene.volume_step();
    scene.vanish(HelperAction::kDelete);
    CHECK(scene.volume_step() == then);
    CHECK(scene.nothing_was_started());
    // The API server says that the volume has changed.
    removes.reply(409, R"({"kind":"Status","reason":"Conflict","code":409})");
    CHECK(scene.volume_step() == then);
    CHECK(scene.nothing_was_started());
  }
}
