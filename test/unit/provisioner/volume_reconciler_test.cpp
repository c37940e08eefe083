#include "provisioner/volume_reconciler.h"

#include <doctest/doctest.h>

#include "base/paths.h"
#include "unit/provisioner/scene.h"

using namespace lpp;               // NOLINT(google-build-using-namespace): a test file
using namespace lpp::provisioner;  // NOLINT(google-build-using-namespace)
using namespace lpp::testing;      // NOLINT(google-build-using-namespace)
using helperpod::HelperAction;

namespace {

constexpr const char* kName = "pvc-uid-a";
constexpr const char* kPath = "/data/pvc-uid-a_default_a";
constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";
constexpr const char* kFinalizerName = "external-provisioner.volume.kubernetes.io/finalizer";

/// Made by a version that knew no finalizer.
VolumeBuilder not_held() {
  return volume(kName)
      .claim("default", "a")
      .released()
      .host_path(kPath)
      .node("n1")
      .annotation("local.path.provisioner/selected-node", "n1")
      .finalizer("kubernetes.io/pv-protection");
}

VolumeBuilder released() { return not_held().finalizer(kFinalizerName); }

struct VolumeScene : Scene {
  Action step() { return reconciler.step(kName); }
  bool has_event(const std::string& part) {
    for (const auto& line : events.lines) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }
  VolumeReconciler reconciler{world, attempts};
};

}  // namespace

TEST_CASE("a released volume is deleted, loses its directory, then our finalizer") {
  VolumeScene scene;
  scene.put(released().resource_version("7"));
  CHECK(scene.step() == Action::await_change(kRecheck));
  REQUIRE(scene.executor.ensured.size() == 1);
  CHECK(scene.executor.ensured[0].action == HelperAction::kDelete);
  CHECK(scene.executor.ensured[0].path == kPath);
  CHECK(scene.executor.ensured[0].node == "n1");
  CHECK(scene.executor.ensured[0].owner_uid == "uid-pvc-uid-a");
  REQUIRE(scene.transport.lines() ==
          std::vector<std::string>{"DELETE /api/v1/persistentvolumes/pvc-uid-a"});
  const auto options = nlohmann::json::parse(scene.transport.requests()[0].body);
  CHECK(options["preconditions"]["uid"] == "uid-pvc-uid-a");
  CHECK(options["preconditions"]["resourceVersion"] == "7");

  scene.put(released().deleting());
  scene.executor.succeed(HelperAction::kDelete, kName);
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/pvc-uid-a");
  SUBCASE("all is well") {
    patches.reply(200);
    (void)scene.step();
    REQUIRE(scene.transport.requests().size() == 2);
    const auto patch = nlohmann::json::parse(scene.transport.requests()[1].body);
    CHECK(patch["metadata"]["$deleteFromPrimitiveList/finalizers"][0] == kFinalizerName);
    CHECK(patch["metadata"]["uid"] == "uid-pvc-uid-a");

    // The cache still shows it: nothing is asked of the API server twice.
    (void)scene.step();
    CHECK(scene.transport.requests().size() == 2);
    scene.volumes.erase({"", kName});
    CHECK(scene.step() == Action::done());
    CHECK(scene.executor.cleaned ==
          std::vector<std::string>{"create pvc-uid-a", "delete pvc-uid-a"});
    CHECK(scene.executor.quiet == std::vector<std::string>{"pvc-uid-a"});
    CHECK(scene.attempts.size() == 0);
  }
  SUBCASE("it is gone already") {
    patches.reply(404);
    CHECK(scene.step() == Action::await_change(kRecheck));
    CHECK(scene.events.lines.empty());
  }
  SUBCASE("forbidden") {
    patches.reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})");
    CHECK(scene.step() == Action::retry());
    CHECK(scene.has_event("Warning VolumeFailedDelete"));
  }
  SUBCASE("the connection is cut") {
    patches.fail(ErrorCode::kUnavailable).reply(200);
    CHECK(scene.step() == Action::retry());
    CHECK(scene.step() == Action::await_change(kRecheck));
    CHECK(scene.transport.count("PATCH", "") == 2);
  }
}

TEST_CASE("no directory is removed before the API server has deleted the volume as it was seen") {
  VolumeScene scene;
  auto& removes = scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a");
  scene.put(released());
  Action then = Action::await_change(kRecheck);
  SUBCASE("it is gone") { removes.reply(404); }
  SUBCASE("it has changed: bound again, to be kept, or another volume of its name") {
    removes.reply(409, kConflict);
  }
  SUBCASE("forbidden") {
    removes.reply(403, R"({"kind":"Status","reason":"Forbidden","code":403,"message":"no"})");
    then = Action::retry();
  }
  SUBCASE("there is no answer") {
    removes.fail(ErrorCode::kTimeout);
    then = Action::retry();
  }
  CHECK(scene.step() == then);
  CHECK(scene.executor.ensured.empty());
  // What the cache shows in the end decides; here that the request had come through after all.
  scene.put(released().deleting());
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.ensured.size() == 1);
}

TEST_CASE("a removal whose record goes while a step looks is begun again only if it is still due") {
  VolumeScene scene;
  auto& removes = scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a");
  removes.reply(200);
  scene.put(released());
  (void)scene.step();
  REQUIRE(scene.executor.ensured.size() == 1);
  scene.executor.vanishing = {HelperAction::kDelete, kName};
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.ensured.size() == 1);
  // The API server says that the volume has changed.
  removes.reply(409, kConflict);
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.ensured.size() == 1);
}

TEST_CASE("a volume that is being deleted, or that we do not hold, is read before it is believed") {
  auto seen = released().deleting();
  Action then = Action::await_change(kRecheck);
  VolumeScene scene;
  auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");
  SUBCASE("the volume is gone") { reads.reply(404); }
  SUBCASE("not held, and the volume is gone") {
    seen = not_held();
    reads.reply(404);
  }
  SUBCASE("another volume has the name by now") {
    reads.reply(200, released().uid("another").json().dump());
  }
  SUBCASE("its path is another one") {
    reads.reply(200, released().host_path("/data/else").json().dump());
  }
  SUBCASE("not held, and it is bound again") {
    seen = not_held();
    reads.reply(200, released().phase("Bound").json().dump());
  }
  SUBCASE("it is to be kept") {
    reads.reply(200, released().deleting().reclaim_policy("Retain").json().dump());
  }
  SUBCASE("there is no answer") {
    reads.fail(ErrorCode::kTimeout);
    then = Action::retry();
  }
  scene.put(seen);
  CHECK(scene.step() == then);
  CHECK(scene.executor.ensured.empty());
  // The next answer is that of the cache.
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.ensured.size() == 1);
  CHECK(scene.transport.count("DELETE", "") == 0);
}

TEST_CASE("a volume that we do not hold is deleted after its directory, in the version seen") {
  VolumeScene scene;
  auto& removes = scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a");
  scene.put(not_held().resource_version("7"));
  (void)scene.step();
  scene.executor.succeed(HelperAction::kDelete, kName);
  SUBCASE("all is well") {
    removes.reply(200);
    CHECK(scene.step() == Action::await_change(kRecheck));
    const auto options = nlohmann::json::parse(scene.transport.requests().back().body);
    CHECK(options["preconditions"]["resourceVersion"] == "7");
  }
  SUBCASE("it has changed") {
    removes.reply(409, kConflict);
    CHECK(scene.step() == Action::retry());
  }
  CHECK(scene.transport.count("PATCH", "") == 0);
}

TEST_CASE("only released volumes of ours with policy Delete are touched") {
  VolumeScene scene;
  SUBCASE("bound") { scene.put(released().phase("Bound")); }
  SUBCASE("available") { scene.put(released().phase("Available")); }
  SUBCASE("failed") { scene.put(released().phase("Failed")); }
  SUBCASE("another provisioner's") {
    scene.put(released().annotation("pv.kubernetes.io/provisioned-by", "other"));
  }
  SUBCASE("without the annotation") {
    scene.put(released().no_annotation("pv.kubernetes.io/provisioned-by"));
  }
  SUBCASE("deleting while bound") { scene.put(released().phase("Bound").deleting()); }
  SUBCASE("deleting, and a claim counts on it") {
    scene.put(released().phase("Available").deleting());
    scene.put(claim("a").volume(kName));
  }
  CHECK(scene.step() == Action::done());
  CHECK(scene.executor.ensured.empty());
  CHECK(scene.transport.requests().empty());
}

TEST_CASE("a volume deleted before its claim still loses its directory") {
  VolumeScene scene;
  SUBCASE("released meanwhile") { scene.put(released().deleting()); }
  SUBCASE("never bound, the claim is gone") { scene.put(released().phase("Available").deleting()); }
  SUBCASE("its claim was made again under the same name") {
    scene.put(released().phase("Available").deleting());
    scene.put(claim("a").uid("another").volume(kName));
  }
  (void)scene.step();
  REQUIRE(scene.executor.ensured.size() == 1);
  scene.executor.succeed(HelperAction::kDelete, kName);
  scene.transport.on("PATCH", "/persistentvolumes/").reply(200);
  (void)scene.step();
  CHECK(scene.transport.count("DELETE", "") == 0);  // it is being deleted already
  CHECK(scene.transport.count("PATCH", "") == 1);
}

TEST_CASE("our finalizer is put on bound volumes to be deleted, and taken off those to be kept") {
  VolumeScene scene;
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/");
  patches.reply(200);
  SUBCASE("an older version made it without") {
    scene.put(volume(kName).claim("default", "a"));
    CHECK(scene.step() == Action::done());
    const auto patch = nlohmann::json::parse(scene.transport.requests().at(0).body);
    CHECK(patch["metadata"]["finalizers"][0] == kFinalizerName);
  }
  SUBCASE("the policy became Retain") {
    scene.put(released().reclaim_policy("Retain"));
    CHECK(scene.step() == Action::done());
    const auto patch = nlohmann::json::parse(scene.transport.requests().at(0).body);
    CHECK(patch["metadata"]["$deleteFromPrimitiveList/finalizers"][0] == kFinalizerName);
  }
  CHECK(scene.executor.ensured.empty());
}

TEST_CASE("a volume whose node is gone for good is let go with an event") {
  VolumeScene scene;
  scene.put(released().node("gone").annotation("local.path.provisioner/selected-node", "gone"));
  auto& reads = scene.transport.on("GET", "/nodes/gone");
  SUBCASE("gone") {
    reads.reply(404);
    scene.transport.on("DELETE", "/persistentvolumes/").reply(200);
    scene.transport.on("PATCH", "/persistentvolumes/").reply(200);
    CHECK(scene.step() == Action::await_change(kRecheck));
    CHECK(scene.has_event("Warning VolumeNodeGone: node gone does not exist any more"));
    CHECK(scene.transport.count("DELETE", "") == 1);
  }
  SUBCASE("only the cache does not know it yet") {
    reads.reply(200);
    CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
  }
  SUBCASE("not known") {
    reads.fail(ErrorCode::kTimeout);
    CHECK(scene.step() == Action::retry());
  }
  CHECK(scene.executor.ensured.empty());
}

TEST_CASE("a path that could take more than the volume with it is refused, once, with an event") {
  VolumeScene scene;
  const char* path = "";
  SUBCASE("relative component") { path = "/data/x/../../etc"; }
  SUBCASE("not absolute") { path = "data/x"; }
  SUBCASE("directly under the root") { path = "/data2"; }
  SUBCASE("the base itself") { path = "/opt/base"; }
  SUBCASE("around a base") { path = "/opt/around"; }
  SUBCASE("the system's") { path = "/etc/cron.d"; }
  SUBCASE("the kubelet's") { path = "/var/lib/kubelet/pods"; }
  SUBCASE("around the kubelet's") { path = "/var/lib"; }
  SUBCASE("control character") { path = "/data/x\ny"; }
  // These end with the other volume, so they are looked at again soon.
  Duration again = Attempts::kResync;
  SUBCASE("another volume's directory") {
    path = "/data/other";
    again = kRecheck;
  }
  SUBCASE("inside another volume's directory") {
    path = "/data/other/inside";
    again = kRecheck;
  }
  SUBCASE("around another volume's directory") {
    path = "/data/deep";
    again = kRecheck;
  }
  SUBCASE("below no base, and anybody's") { path = "/home/somebody/data"; }
  SUBCASE("below no base, and called almost like the claim") { path = "/old/default/ab"; }
  SUBCASE("below no base, and called like the claim alone") { path = "/old/defaults/a"; }
  config::Config config;
  config.paths.node_path_map["n1"] = {"/data", "/opt/base", "/opt/around/base"};
  scene.use(std::move(config));
  scene.put(volume("other")
                .claim("default", "o")
                .host_path("/data/other")
                .node("n1")
                .annotation("local.path.provisioner/selected-node", "n1"));
  scene.put(volume("deep")
                .claim("default", "d")
                .host_path("/data/deep/er")
                .node("n1")
                .annotation("local.path.provisioner/selected-node", "n1"));
  scene.put(released().host_path(path));
  CHECK(scene.step() == Action::await_change(again));
  (void)scene.step();
  CHECK(scene.events.lines.size() == 1);
  CHECK(scene.has_event("Warning VolumeFailedDelete"));
  CHECK(scene.executor.ensured.empty());
  CHECK(scene.transport.requests().empty());
}

TEST_CASE("a volume outside of today's configuration can still be deleted") {
  VolumeScene scene;
  SUBCASE("its base is no longer configured, and a folder is called after the volume") {
    scene.put(released().host_path("/old/base/" + std::string(kName) + "_default_a"));
  }
  SUBCASE("its base is no longer configured, and folders are called after the claim") {
    scene.put(released().host_path("/old/base/default/a/deep"));
  }
  SUBCASE("its base is no longer configured, and its directory is the claim's folder") {
    scene.put(released().host_path("/old/base/default/a"));
  }
  SUBCASE("its class is gone") { scene.put(released().storage_class("gone")); }
  SUBCASE("the same path on another node is no obstacle") {
    scene.put(volume("other")
                  .claim("default", "o")
                  .host_path(kPath)
                  .node("n2")
                  .annotation("local.path.provisioner/selected-node", "n2"));
    scene.put(released());
  }
  SUBCASE("another provisioner's volume around it is no obstacle") {
    scene.put(volume("disk").host_path("/").annotation("pv.kubernetes.io/provisioned-by",
                                                       "example.com/static"));
    scene.put(released());
  }
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.ensured.size() == 1);
}

TEST_CASE(
    "another provisioner's volume in the directory, or inside it, keeps it from being removed") {
  VolumeScene scene;
  std::string path = kPath;
  SUBCASE("the same") {}
  SUBCASE("inside") { path += "/inside"; }
  scene.put(volume("static").host_path(path).annotation("pv.kubernetes.io/provisioned-by",
                                                        "example.com/static"));
  scene.put(released());
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.has_event("overlaps the directory " + path + " of volume static"));
  CHECK(scene.executor.ensured.empty());
}

TEST_CASE("a teardown that fails is reported at once and repeated after a growing wait") {
  VolumeScene scene;
  scene.put(released());
  (void)scene.step();
  scene.executor.fail(HelperAction::kDelete, kName, "helper pod failed: exit code 1: busy");
  CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
  CHECK(scene.has_event("failed to delete volume pvc-uid-a: helper pod failed: exit code 1: busy"));
  scene.clock.advance(std::chrono::seconds(2));
  (void)scene.step();
  CHECK(scene.executor.ensured.back().attempt == 2);
  scene.executor.fail(HelperAction::kDelete, kName, "helper pod failed: exit code 1: busy");
  CHECK(scene.step() == Action::await_change(std::chrono::seconds(2)));
  CHECK(scene.events.lines.size() == 2);
}

TEST_CASE("the record of an undo is left to the claim queue") {
  VolumeScene scene;
  helperpod::Operation undo;
  undo.action = HelperAction::kDelete;
  undo.volume_name = kName;
  undo.owner_uid = "uid-a";
  scene.executor.records[{HelperAction::kDelete, kName}] = undo;
  CHECK(scene.step() == Action::done());
  CHECK(scene.executor.cleaned.empty());
}

TEST_CASE("paths overlap by components, not by characters") {
  CHECK(overlaps("/a/b", "/a/b"));
  CHECK(overlaps("/a/b/c", "/a/b"));
  CHECK(overlaps("/a", "/a/b"));
  CHECK_FALSE(overlaps("/a/b", "/a/bc"));
  CHECK(strictly_below("/a/b", "/a"));
  CHECK_FALSE(strictly_below("/a", "/a"));
}
