// SPDX-License-Identifier: Apache-2.0
#include "provisioner/volume_reconciler.h"

#include <doctest/doctest.h>

#include "base/paths.h"
#include "operation/record.h"
#include "provisioner/names.h"
#include "unit/provisioner/volume_bed.h"

namespace lpp::provisioner::volume_steps {

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

TEST_CASE("a released volume is deleted, loses its directory, then our finalizer") {
  VolumeBed scene;
  scene.put(released().resource_version("7"));
  CHECK(scene.step() == Action::await_change(kRecheck));
  REQUIRE(scene.executor.started.size() == 1);
  CHECK(scene.executor.started[0].kind == Kind::kRemove);
  CHECK(scene.executor.started[0].path == kReleasedPath);
  CHECK(scene.executor.started[0].node == "n1");
  CHECK(scene.executor.started[0].owner_uid == "uid-pvc-uid-a");
  REQUIRE(scene.transport.lines() ==
          std::vector<std::string>{"DELETE /api/v1/persistentvolumes/pvc-uid-a"});
  const auto options = nlohmann::json::parse(scene.transport.requests()[0].body);
  CHECK(options["preconditions"]["uid"] == "uid-pvc-uid-a");
  CHECK(options["preconditions"]["resourceVersion"] == "7");

  scene.put(released().deleting());
  scene.executor.succeed(Kind::kRemove, kReleasedName);
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/pvc-uid-a");
  SUBCASE("all is well") {
    patches.reply(200);
    (void)scene.step();
    REQUIRE(scene.transport.requests().size() == 2);
    const auto patch = nlohmann::json::parse(scene.transport.requests()[1].body);
    CHECK(patch["metadata"]["$deleteFromPrimitiveList/finalizers"][0] == kOurFinalizer);
    CHECK(patch["metadata"]["uid"] == "uid-pvc-uid-a");

    // The cache still shows it: nothing is asked of the API server twice.
    (void)scene.step();
    CHECK(scene.transport.requests().size() == 2);
    scene.volumes.erase({"", kReleasedName});
    CHECK(scene.step() == Action::done());
    CHECK(scene.executor.forgotten == std::vector<std::string>{"remove pvc-uid-a"});
    CHECK(scene.executor.quiet == std::vector<std::string>{"pvc-uid-a"});
    CHECK(scene.memories.size() == 0);
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

TEST_CASE("a volume's directory is removed from the disk that the volume names") {
  VolumeBed scene;
  scene.put(released().annotation(std::string(kVolumeDisk), "disk-a"));
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  CHECK(scene.executor.started[0].disk == "disk-a");
  const auto text = operation::encode_operation(scene.executor.started[0]);
  REQUIRE(text.ok());
  CHECK(operation::decode_operation(*text)->disk == "disk-a");
}

TEST_CASE("no directory is removed before the API server has deleted the volume as it was seen") {
  VolumeBed scene;
  auto& removes = scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a");
  scene.put(released());
  Action then = Action::await_change(kRecheck);
  SUBCASE("it is gone") { removes.reply(404); }
  SUBCASE("it has changed: bound again, to be kept, or another volume of its name") {
    removes.reply(409, kConflictBody);
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
  CHECK(scene.executor.started.empty());
  // What the cache shows in the end decides; here that the request had come through after all.
  scene.put(released().deleting());
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.started.size() == 1);
}

TEST_CASE("a volume that is being deleted is read before it is believed") {
  auto seen = released().deleting();
  Action then = Action::await_change(kRecheck);
  VolumeBed scene;
  auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");
  SUBCASE("the volume is gone") { reads.reply(404); }
  SUBCASE("another volume has the name by now") {
    reads.reply(200, released().uid("another").json().dump());
  }
  SUBCASE("its path is another one") {
    reads.reply(200, released().host_path("/data/else").json().dump());
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
  CHECK(scene.executor.started.empty());
  // The next answer is that of the cache.
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.started.size() == 1);
  CHECK(scene.transport.count("DELETE", "") == 0);
}

TEST_CASE("a volume that we do not hold is held first, then deleted like all others") {
  VolumeBed scene;
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/pvc-uid-a");
  scene.put(not_held().resource_version("7"));
  bool is_over = false;
  SUBCASE("all is well") {
    patches.reply(200, released().resource_version("8").json().dump());
    CHECK(scene.step() == Action::await_change(kRecheck));
    const auto options = nlohmann::json::parse(scene.transport.requests().back().body);
    CHECK(options["preconditions"]["resourceVersion"] == "8");
    CHECK(scene.executor.started.size() == 1);
    is_over = true;
  }
  SUBCASE("it is gone") { patches.reply(404); }
  SUBCASE("another one has its name") { patches.reply(409, kConflictBody); }
  SUBCASE("it is bound again") { patches.reply(200, released().phase("Bound").json().dump()); }
  SUBCASE("it is to be kept") {
    patches.reply(200, released().reclaim_policy("Retain").json().dump());
  }
  if (is_over) return;
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.count("DELETE", "") == 0);
}

TEST_CASE("only released volumes of ours with policy Delete are touched") {
  VolumeBed scene;
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
    scene.put(claim("a").volume(kReleasedName));
  }
  CHECK(scene.step() == Action::done());
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.requests().empty());
}

TEST_CASE("a volume deleted before its claim still loses its directory") {
  VolumeBed scene;
  SUBCASE("released meanwhile") { scene.put(released().deleting()); }
  SUBCASE("never bound, the claim is gone") { scene.put(released().phase("Available").deleting()); }
  SUBCASE("its claim was made again under the same name") {
    scene.put(released().phase("Available").deleting());
    scene.put(claim("a").uid("another").volume(kReleasedName));
  }
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  scene.executor.succeed(Kind::kRemove, kReleasedName);
  scene.transport.on("PATCH", "/persistentvolumes/").reply(200);
  (void)scene.step();
  CHECK(scene.transport.count("DELETE", "") == 0);  // it is being deleted already
  CHECK(scene.transport.count("PATCH", "") == 1);
}

TEST_CASE("our finalizer is put on bound volumes to be deleted, and taken off those to be kept") {
  VolumeBed scene;
  auto& patches = scene.transport.on("PATCH", "/persistentvolumes/");
  patches.reply(200);
  SUBCASE("an older version made it without") {
    scene.put(volume(kReleasedName).claim("default", "a"));
    CHECK(scene.step() == Action::done());
    const auto patch = nlohmann::json::parse(scene.transport.requests().at(0).body);
    CHECK(patch["metadata"]["finalizers"][0] == kOurFinalizer);
  }
  SUBCASE("the policy became Retain") {
    scene.put(released().reclaim_policy("Retain"));
    CHECK(scene.step() == Action::done());
    const auto patch = nlohmann::json::parse(scene.transport.requests().at(0).body);
    CHECK(patch["metadata"]["$deleteFromPrimitiveList/finalizers"][0] == kOurFinalizer);
  }
  CHECK(scene.executor.started.empty());
}

TEST_CASE("a volume whose node is gone for good is let go with an event") {
  VolumeBed scene;
  const auto lost =
      released().node("gone").annotation("local.path.provisioner/selected-node", "gone");
  scene.put(lost);
  auto& reads = scene.transport.on("GET", "/nodes/gone");
  SUBCASE("gone") {
    reads.always([](const auto&) { return k8s::Response{.status = 404}; });
    scene.transport.on("DELETE", "/persistentvolumes/").reply(200);
    CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
    CHECK(scene.has_event("Warning VolumeNodeGone: node gone does not exist any more"));
    CHECK(scene.transport.count("DELETE", "") == 1);
    // The directory is there: our finalizer goes only as long as nobody has changed the policy.
    auto& patches = scene.transport.on("PATCH", "/persistentvolumes/");
    scene.put(VolumeBuilder(lost).deleting().resource_version("8"));
    SUBCASE("unchanged") {
      patches.reply(200);
      CHECK(scene.step() == Action::await_change(kRecheck));
    }
    SUBCASE("changed") {
      patches.reply(409);
      CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
    }
    const auto patch = nlohmann::json::parse(scene.transport.requests().back().body);
    CHECK(patch["metadata"]["resourceVersion"] == "8");
    CHECK(scene.events.lines.size() == 1);
  }
  SUBCASE("the event cannot be stored: then nobody would know of the directory") {
    reads.reply(404);
    scene.events.error = Error{.code = ErrorCode::kUnavailable, .message = "down"};
    CHECK(scene.step() == Action::retry());
    CHECK(scene.transport.count("DELETE", "") == 0);
    CHECK(scene.transport.count("PATCH", "") == 0);
  }
  SUBCASE("only the cache does not know it yet") {
    reads.reply(200);
    CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
  }
  SUBCASE("not known") {
    reads.fail(ErrorCode::kTimeout);
    CHECK(scene.step() == Action::retry());
  }
  CHECK(scene.executor.started.empty());
}

TEST_CASE("a path that could take more than the volume with it is refused, once, with an event") {
  VolumeBed scene;
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
  Duration again = Memories::kResync;
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
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.requests().empty());
}

TEST_CASE("a volume outside of today's configuration can still be deleted") {
  VolumeBed scene;
  SUBCASE("its base is no longer configured, and a folder is called after the volume") {
    scene.put(released().host_path("/old/base/" + std::string(kReleasedName) + "_default_a"));
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
                  .host_path(kReleasedPath)
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
  CHECK(scene.executor.started.size() == 1);
}

TEST_CASE(
    "another provisioner's volume in the directory, or inside it, keeps it from being removed") {
  VolumeBed scene;
  std::string path = kReleasedPath;
  SUBCASE("the same") {}
  SUBCASE("inside") { path += "/inside"; }
  scene.put(volume("static").host_path(path).annotation("pv.kubernetes.io/provisioned-by",
                                                        "example.com/static"));
  scene.put(released());
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.has_event("overlaps the directory " + path + " of volume static"));
  CHECK(scene.executor.started.empty());
}

TEST_CASE("a teardown that fails is reported at once and repeated after a growing wait") {
  VolumeBed scene;
  scene.put(released());
  (void)scene.step();
  scene.executor.fail(Kind::kRemove, kReleasedName, "helper pod failed: exit code 1: busy");
  CHECK(scene.step() == Action::await_change(std::chrono::seconds(1)));
  CHECK(scene.has_event("failed to delete volume pvc-uid-a: helper pod failed: exit code 1: busy"));
  scene.clock.advance(std::chrono::seconds(2));
  (void)scene.step();
  CHECK(scene.executor.started.back().attempt == 2);
  scene.executor.fail(Kind::kRemove, kReleasedName, "helper pod failed: exit code 1: busy");
  CHECK(scene.step() == Action::await_change(std::chrono::seconds(2)));
  CHECK(scene.events.lines.size() == 2);
}

TEST_CASE("the record of an undo is left to the claim queue") {
  VolumeBed scene;
  operation::Operation undo;
  undo.kind = Kind::kTakeBack;
  undo.volume_name = kReleasedName;
  undo.owner_uid = "uid-a";
  scene.executor.records.push_back({.operation = undo});
  CHECK(scene.step() == Action::done());
  CHECK(scene.executor.forgotten.empty());
}

TEST_CASE("paths overlap by components, not by characters") {
  CHECK(overlaps("/a/b", "/a/b"));
  CHECK(overlaps("/a/b/c", "/a/b"));
  CHECK(overlaps("/a", "/a/b"));
  CHECK_FALSE(overlaps("/a/b", "/a/bc"));
  CHECK(strictly_below("/a/b", "/a"));
  CHECK_FALSE(strictly_below("/a", "/a"));
}

TEST_CASE("a recorded removal that is not wanted any more is cancelled") {
  VolumeBed scene;
  scene.transport.on("DELETE", "/persistentvolumes/pvc-uid-a").reply(200);
  scene.put(released());
  (void)scene.step();
  REQUIRE(scene.executor.started.size() == 1);
  SUBCASE("its policy is Retain by now") {
    scene.put(released().deleting().reclaim_policy("Retain"));
  }
  SUBCASE("it is bound again") { scene.put(released().phase("Bound")); }
  SUBCASE("it is gone") { scene.volumes.erase({"", kReleasedName}); }
  (void)scene.step();
  CHECK(scene.executor.cancelled == std::vector<std::string>{"remove pvc-uid-a"});
  // Our finalizer stays until it is certain that nothing is removed any more.
  CHECK(scene.transport.count("PATCH", "") == 0);
  CHECK(scene.step().kind == Action::Kind::kAwaitChange);
}

TEST_CASE("of two released volumes in one place the last one removes the directory") {
  VolumeBed scene;
  const auto other =
      volume("pvc-uid-b").claim("default", "b").released().host_path(released().build().path);
  scene.transport.on("DELETE", "/persistentvolumes/").always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}", .content_type = "application/json"};
  });
  scene.transport.on("PATCH", "/persistentvolumes/").always([](const auto&) {
    return k8s::Response{.status = 200, .body = "{}", .content_type = "application/json"};
  });
  const auto node = released().build().node_affinity;
  scene.put(VolumeBuilder(other).node("n1").finalizer(
      "external-provisioner.volume.kubernetes.io/finalizer"));
  scene.put(released());
  (void)scene.step();
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.count("DELETE", "/persistentvolumes/pvc-uid-a") == 1);
  // It is gone; the other one has its turn.
  scene.volumes.erase({"", kReleasedName});
  (void)scene.reconciler.step("pvc-uid-b");
  REQUIRE(scene.executor.started.size() == 1);
  CHECK(scene.executor.started[0].volume_name == "pvc-uid-b");
}

TEST_CASE("a volume is let go to another one only if the API server says that this one goes") {
  VolumeBed scene;
  const auto other = volume("pvc-uid-b")
                         .claim("default", "b")
                         .released()
                         .host_path(kReleasedPath)
                         .node("n1")
                         .finalizer(kOurFinalizer);
  scene.put(other);
  scene.put(released());
  scene.served["pvc-uid-b"] = VolumeBuilder(other).reclaim_policy("Retain").json().dump();
  (void)scene.step();
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.count("DELETE", "") == 0);
  CHECK(scene.transport.count("PATCH", "") == 0);
}

TEST_CASE("a volume is not let go to another one that is in the way of a live volume itself") {
  VolumeBed scene;
  const auto live = volume("pvc-live").claim("default", "live").host_path(kReleasedPath);
  scene.put(
      VolumeBuilder(live).node("n1").annotation("local.path.provisioner/selected-node", "n1"));
  scene.put(VolumeBuilder(not_held()).finalizer(kOurFinalizer));
  for (const char* name : {"pvc-uid-b", "pvc-uid-c", "pvc-uid-d"}) {
    scene.put(volume(name)
                  .claim("default", name)
                  .released()
                  .host_path(kReleasedPath)
                  .node("n1")
                  .annotation("local.path.provisioner/selected-node", "n1"));
  }
  CHECK(scene.step() == Action::await_change(kRecheck));
  CHECK(scene.has_event("overlaps the directory " + std::string(kReleasedPath) +
                        " of volume pvc-live"));
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.requests().empty());
}

}  // namespace lpp::provisioner::volume_steps
