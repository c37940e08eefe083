// SPDX-License-Identifier: Apache-2.0
#include "provisioner/claim_reconciler.h"

#include <doctest/doctest.h>

#include "unit/provisioner/scene.h"

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

namespace {

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kPath = "/data/pvc-uid-a_default_a";
const ClaimKey kKey{{"default", "a"}, "uid-a"};

struct ClaimBed : Scene {
  ClaimBed() { put(claim("a").node("n1")); }

  provisioner::Action step() { return reconciler.step(kKey); }
  /// Up to the point where the helper pod has succeeded.
  void provision_until_made() {
    (void)step();
    executor.succeed(Kind::kMake, kVolume);
  }
  nlohmann::json posted_volume() {
    for (const auto& request : transport.requests()) {
      if (request.method == "POST") return nlohmann::json::parse(request.body);
    }
    return nullptr;
  }

  ClaimReconciler reconciler{world, memories};
};

}  // namespace

TEST_CASE("a claim with a node gets a create operation, then a volume, and nothing stays") {
  ClaimBed scene;
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
  REQUIRE(scene.executor.started.size() == 1);
  const auto& operation = scene.executor.started[0];
  CHECK(operation.path == kPath);
  CHECK(operation.node == "n1");
  CHECK(operation.size_bytes == 1 << 30);
  CHECK(operation.attempt == 1);
  CHECK(
      scene.has_event("Normal Provisioning: External provisioner is provisioning volume for "
                      "claim \"default/a\""));
  CHECK(scene.transport.requests().empty());

  scene.executor.succeed(Kind::kMake, kVolume);
  scene.transport.on("POST", "/persistentvolumes").reply(201);
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
  const auto posted = scene.posted_volume();
  CHECK(posted["metadata"]["name"] == kVolume);
  CHECK(posted["spec"]["hostPath"]["path"] == kPath);
  CHECK(posted["spec"]["claimRef"]["uid"] == "uid-a");
  CHECK(posted["metadata"]["finalizers"][0] ==
        "external-provisioner.volume.kubernetes.io/finalizer");
  CHECK(scene.executor.forgotten == std::vector<std::string>{"make pvc-uid-a"});
  CHECK(scene.executor.quiet == std::vector<std::string>{"pvc-uid-a"});
  CHECK(scene.has_event("ProvisioningSucceeded: Successfully provisioned volume pvc-uid-a"));

  SUBCASE("a cache that does not show the volume yet does not start it again") {
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.started.size() == 1);
  }
  SUBCASE("once the cache shows the volume all is done") {
    scene.put(volume("pvc-uid-a").claim("default", "a").host_path(kPath));
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.ledger.decisions() == 0);
    scene.put(claim("a").node("n1").volume("pvc-uid-a"));
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.memories.size() == 0);
  }
  SUBCASE("a volume that somebody removed before we saw it is made again") {
    scene.clock.advance(std::chrono::minutes(1));
    scene.transport.on("GET", "/persistentvolumes/").reply(404);
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.started.size() == 2);
  }
}

TEST_CASE("claims that do not ask for us, are bound, or wait for a node are left alone") {
  ClaimBed scene;
  SUBCASE("another provisioner") { scene.put(claim("a").node("n1").provisioner("other")); }
  SUBCASE("bound") { scene.put(claim("a").node("n1").volume("static-volume")); }
  SUBCASE("no node yet") { scene.put(claim("a")); }
  SUBCASE("the node annotation is empty") { scene.put(claim("a").node("")); }
  SUBCASE("the class is another provisioner's") { scene.put(storage_class().provisioner("other")); }
  SUBCASE("on its way out") { scene.put(claim("a").node("n1").deleting()); }
  CHECK(scene.step() == provisioner::Action::done());
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.requests().empty());
  CHECK(scene.events.lines.empty());
}

TEST_CASE("a claim is refused only after the control plane has asked for its volume") {
  ClaimBed scene;
  auto unasked = claim("a").no_provisioner();
  SUBCASE("a node without a path") { scene.put(unasked.node("empty")); }
  SUBCASE("a selector") { scene.put(unasked.node("n1").set("/spec/selector/matchLabels/a", "b")); }
  CHECK(scene.step().kind == provisioner::Action::Kind::kAwaitChange);
  CHECK(scene.executor.started.empty());
  CHECK(scene.transport.requests().empty());
  CHECK(scene.events.lines.empty());
}

TEST_CASE("a node that cannot serve gives the scheduler another chance, more slowly each time") {
  ClaimBed scene;
  scene.put(claim("a").node("empty"));
  auto& patches = scene.transport.on("PATCH", "/persistentvolumeclaims/a");
  patches.reply(200);
  CHECK(scene.step() == provisioner::Action::done());
  CHECK(scene.has_event("no local path available on node empty"));
  REQUIRE(scene.transport.requests().size() == 1);
  const auto patch = nlohmann::json::parse(scene.transport.requests()[0].body);
  CHECK(patch["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_null());
  CHECK(patch["metadata"]["resourceVersion"] == "1");

  // The scheduler took the annotation's removal and chose the same node again.
  scene.put(claim("a").resource_version("2"));
  CHECK(scene.step() == provisioner::Action::done());
  scene.put(claim("a").node("empty").resource_version("3"));
  const auto again = scene.step();
  CHECK(again.kind == provisioner::Action::Kind::kAwaitChange);
  CHECK(again.after <= std::chrono::seconds(1));
  CHECK(scene.transport.requests().size() == 1);
  scene.clock.advance(std::chrono::seconds(2));
  patches.reply(200);
  CHECK(scene.step() == provisioner::Action::done());
  CHECK(scene.transport.requests().size() == 2);
}

TEST_CASE(
    "without the right to change claims a node that cannot serve is told once, not each time") {
  // The rights of the former program's manifest.
  ClaimBed scene;
  scene.put(claim("a").node("empty"));
  scene.transport.on("PATCH", "/persistentvolumeclaims/a").always([](const auto&) {
    return k8s::Response{.status = 403,
                         .body = R"({"kind":"Status","reason":"Forbidden","message":"no patch"})",
                         .content_type = "application/json"};
  });
  for (int i = 0; i < 5; ++i) {
    CHECK(scene.step() == provisioner::Action::retry());
    scene.clock.advance(std::chrono::seconds(1));
  }
  REQUIRE(scene.events.lines.size() == 1);
  CHECK(scene.has_event("no local path available on node empty"));
  CHECK(scene.has_event("no patch"));
  CHECK(scene.executor.started.empty());
}

TEST_CASE("a node that is gone is confirmed by the API server before the claim is rescheduled") {
  ClaimBed scene;
  scene.put(claim("a").node("ghost"));
  auto& reads = scene.transport.on("GET", "/nodes/ghost");
  SUBCASE("gone") {
    reads.reply(404);
    scene.transport.on("PATCH", "/persistentvolumeclaims/a").reply(200);
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.has_event("nodes \"ghost\" not found"));
  }
  SUBCASE("new, and the cache is behind") {
    reads.reply(200);
    CHECK(scene.step() == provisioner::Action::await_change(std::chrono::seconds(1)));
    CHECK(scene.events.lines.empty());
  }
  SUBCASE("the question cannot be answered now") {
    reads.fail(ErrorCode::kTimeout);
    CHECK(scene.step() == provisioner::Action::retry());
  }
  CHECK(scene.executor.started.empty());
}

TEST_CASE("a failed helper pod is reported at once and tried again after a growing wait") {
  ClaimBed scene;
  (void)scene.step();
  scene.executor.fail(Kind::kMake, kVolume, "helper pod failed: exit code 1: no space");
  auto action = scene.step();
  CHECK(action == provisioner::Action::await_change(std::chrono::seconds(1)));
  CHECK(
      scene.has_event("Warning ProvisioningFailed: failed to provision volume with StorageClass "
                      "\"local-path\": helper pod failed: exit code 1: no space"));
  // The removal of the pod and other changes do not shorten the wait.
  const auto asked = scene.executor.started.size();
  (void)scene.step();
  CHECK(scene.executor.started.size() == asked);

  scene.clock.advance(std::chrono::seconds(2));
  (void)scene.step();
  CHECK(scene.executor.started.back().attempt == 2);
  CHECK(scene.executor.started.back().path == kPath);
  scene.executor.fail(Kind::kMake, kVolume, "helper pod failed: exit code 1: no space");
  CHECK(scene.step() == provisioner::Action::await_change(std::chrono::seconds(2)));
  CHECK(scene.events.lines.size() == 4);  // Provisioning and a failure for each attempt

  SUBCASE("after a restart the record says which attempt it was") {
    Memories fresh(scene.clock, {.base = std::chrono::seconds(1), .jitter = 0}, 15);
    ClaimReconciler restarted(scene.world, fresh);
    CHECK(restarted.step(kKey) == provisioner::Action::await_change(std::chrono::seconds(2)));
  }
}

TEST_CASE("when the retries are used up the claim waits for a change or the resync") {
  ClaimBed scene;
  auto action = provisioner::Action::done();
  for (int i = 1; i <= 16; ++i, scene.clock.advance(std::chrono::hours(1))) {
    (void)scene.step();
    REQUIRE(scene.executor.started.back().attempt == i);
    scene.executor.fail(Kind::kMake, kVolume, "still broken");
    action = scene.step();
  }
  CHECK(action == provisioner::Action::await_change(Memories::kResync));
}

TEST_CASE("a helper pod that somebody removed is a failure, not an endless loop") {
  ClaimBed scene;
  (void)scene.step();
  (void)scene.step();  // its pod is seen
  scene.executor.records.clear();
  CHECK(scene.step() == provisioner::Action::await_change(std::chrono::seconds(1)));
  CHECK(scene.has_event("removed before it ended"));
  scene.clock.advance(std::chrono::seconds(2));
  (void)scene.step();
  CHECK(scene.executor.started.back().attempt == 2);
}

TEST_CASE("a volume that exists under the name is success only if it is the one for this claim") {
  ClaimBed scene;
  SUBCASE("ours: a left-over helper pod is removed") {
    scene.provision_until_made();
    scene.executor.started.clear();
    scene.events.lines.clear();
    scene.put(volume("pvc-uid-a").claim("default", "a").host_path(kPath));
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.executor.forgotten.size() == 1);
    CHECK(scene.events.lines.empty());
  }
  SUBCASE("for another claim") {
    scene.put(volume("pvc-uid-a").claim("default", "a", "other-uid"));
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
    CHECK(scene.has_event("exists but is not the one for this claim"));
  }
  SUBCASE("made by somebody else") {
    scene.put(volume("pvc-uid-a")
                  .claim("default", "a")
                  .annotation("pv.kubernetes.io/provisioned-by", "other"));
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
  }
  CHECK(scene.executor.started.empty());
}

TEST_CASE("creating the volume meets every kind of answer") {
  ClaimBed scene;
  scene.provision_until_made();
  auto& posts = scene.transport.on("POST", "/persistentvolumes");
  SUBCASE("an answer that was lost: the volume is already there") {
    posts.reply(409, kAlreadyExists);
    scene.transport.on("GET", "/persistentvolumes/pvc-uid-a")
        .reply(200, volume("pvc-uid-a").claim("default", "a").host_path(kPath).json().dump());
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.forgotten.size() == 1);
    CHECK(scene.has_event("Successfully provisioned volume pvc-uid-a"));
  }
  SUBCASE("an answer that was lost, and the volume is gone again") {
    posts.reply(409, kAlreadyExists);
    scene.transport.on("GET", "/persistentvolumes/pvc-uid-a").reply(404);
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.executor.forgotten.empty());
    CHECK(scene.events.lines.size() == 1);
  }
  SUBCASE("another leader has made the volume, in another directory: this one goes") {
    posts.reply(409, kAlreadyExists);
    const auto other = volume("pvc-uid-a").claim("default", "a").host_path("/else");
    scene.transport.on("GET", "/persistentvolumes/pvc-uid-a").reply(200, other.json().dump());
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.started.size() == 1);
    scene.put(other);
    (void)scene.step();
    CHECK(scene.executor.started.back().kind == Kind::kTakeBack);
    CHECK(scene.executor.started.back().path == kPath);
  }
  SUBCASE("another volume has the name") {
    posts.reply(409, kAlreadyExists);
    scene.transport.on("GET", "/persistentvolumes/pvc-uid-a")
        .reply(200, volume("pvc-uid-a").claim("x", "y", "z").json().dump());
    CHECK(scene.step() == provisioner::Action::await_change(Memories::kResync));
    CHECK(scene.executor.forgotten.empty());
  }
  SUBCASE("refused by the API server") {
    posts.reply(422, R"({"kind":"Status","reason":"Invalid","code":422,"message":"bad volume"})");
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.has_event("Error creating provisioned PV object for claim default/a: "));
    CHECK(scene.executor.forgotten.empty());  // the directory's record stays
  }
  SUBCASE("no connection: no event, again later") {
    posts.fail(ErrorCode::kUnavailable);
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.events.lines.size() == 1);
    CHECK(scene.executor.forgotten.empty());
  }
  SUBCASE("stopping") {
    posts.fail(ErrorCode::kCancelled);
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.executor.forgotten.empty());
  }
}

TEST_CASE("a claim that goes away while its directory is made leaves nothing behind") {
  ClaimBed scene;
  (void)scene.step();
  scene.claims.erase({"default", "a"});
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));  // the pod is waited for
  scene.executor.succeed(Kind::kMake, kVolume);
  auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");

  SUBCASE("the directory is removed, then both records") {
    reads.reply(404);
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.started.back().kind == Kind::kTakeBack);
    CHECK(scene.executor.started.back().path == kPath);
    CHECK(scene.executor.forgotten.empty());
    scene.executor.succeed(Kind::kTakeBack, kVolume);
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.executor.forgotten ==
          std::vector<std::string>{"make pvc-uid-a", "take back pvc-uid-a"});
  }
  SUBCASE("once, however late the cache shows that both records are gone") {
    reads.reply(404);
    scene.executor.cache_is_late = true;
    (void)scene.step();
    scene.executor.succeed(Kind::kTakeBack, kVolume);
    for (int i = 0; i < 2; ++i) {
      CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    }
    scene.executor.records.clear();
    CHECK(scene.figures.in_flight(10).empty());
    const auto asked = scene.executor.started.size();
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.step() == provisioner::Action::done());
    CHECK(scene.executor.started.size() == asked);
    CHECK(scene.figures.in_flight(10).empty());
  }
  SUBCASE("a removal that fails is reported and repeated") {
    reads.reply(404).reply(404);
    (void)scene.step();
    scene.executor.fail(Kind::kTakeBack, kVolume, "exit code 1");
    CHECK(scene.step() == provisioner::Action::await_change(std::chrono::seconds(1)));
    CHECK(scene.has_event("Warning ProvisioningCleanupFailed"));
    scene.clock.advance(std::chrono::seconds(2));
    (void)scene.step();
    CHECK(scene.executor.started.back().attempt == 2);
    CHECK(scene.executor.forgotten.empty());
  }
  SUBCASE("a volume that records the directory keeps it") {
    reads.reply(200, volume("pvc-uid-a").claim("default", "a").host_path(kPath).json().dump());
    (void)scene.step();
    CHECK(scene.executor.started.back().kind == Kind::kMake);
    CHECK(scene.executor.forgotten == std::vector<std::string>{"make pvc-uid-a"});
  }
  SUBCASE("nothing is removed while it is not known whether a volume records it") {
    reads.fail(ErrorCode::kTimeout);
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.executor.started.back().kind == Kind::kMake);
  }
  SUBCASE("an undo once begun is finished even if the claim is there again") {
    reads.reply(404);
    (void)scene.step();
    scene.put(claim("a").node("n1"));
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.started.back().kind == Kind::kTakeBack);
  }
}

TEST_CASE("a directory whose helper pod somebody removed is taken back when its claim goes") {
  ClaimBed scene;
  (void)scene.step();
  scene.executor.run(Kind::kMake, kVolume);
  (void)scene.step();
  const auto remove_pod = [&] { scene.executor.vanish(Kind::kMake, kVolume); };
  scene.transport.on("GET", "/persistentvolumes/pvc-uid-a").always([](const auto&) {
    return Result<k8s::Response>(k8s::Response{.status = 404});
  });
  SUBCASE("while the next attempt waits") {
    remove_pod();
    (void)scene.step();
    CHECK(scene.has_event("removed before it ended"));
    scene.claims.erase({"default", "a"});
  }
  SUBCASE("with the claim") {
    scene.claims.erase({"default", "a"});
    (void)scene.step();
    remove_pod();
  }
  SUBCASE("and the claim has moved to another node") {
    remove_pod();
    (void)scene.step();
    scene.put(claim("a").node("n2").resource_version("2"));
  }
  (void)scene.step();
  REQUIRE(scene.executor.started.back().kind == Kind::kTakeBack);
  CHECK(scene.executor.started.back().path == kPath);
  CHECK(scene.executor.started.back().node == "n1");
  scene.executor.succeed(Kind::kTakeBack, kVolume);
  (void)scene.step();
  CHECK_FALSE(scene.executor.has(Kind::kTakeBack, kVolume));
  const auto taken_back = [&] {
    return std::count_if(
        scene.executor.started.begin(), scene.executor.started.end(),
        [](const auto& one) { return one.kind == Kind::kTakeBack && one.node == "n1"; });
  };
  scene.claims.erase({"default", "a"});
  scene.executor.records.clear();
  (void)scene.step();
  CHECK(taken_back() == 1);
}

TEST_CASE(
    "a claim that moves to another node is undone on the first one, then made on the second") {
  ClaimBed scene;
  (void)scene.step();
  scene.put(claim("a").node("n2").resource_version("2"));
  SUBCASE("the helper pod never started: it is removed at once") {
    (void)scene.step();
    CHECK(scene.executor.cancelled == std::vector<std::string>{"make pvc-uid-a"});
  }
  SUBCASE("the directory was made: it is removed, and the claim goes on meanwhile") {
    scene.executor.succeed(Kind::kMake, kVolume);
    scene.transport.on("GET", "/persistentvolumes/pvc-uid-a").reply(404);
    (void)scene.step();
    CHECK(scene.executor.started.back().kind == Kind::kTakeBack);
    CHECK(scene.executor.started.back().node == "n1");
    scene.executor.succeed(Kind::kTakeBack, kVolume);
    (void)scene.step();
  }
  CHECK(scene.executor.started.back().kind == Kind::kMake);
  CHECK(scene.executor.started.back().node == "n2");
}

TEST_CASE("a directory inside another volume's is never made") {
  ClaimBed scene;
  scene.put(volume("pvc-b")
                .claim("default", "b")
                .host_path("/data")
                .annotation("local.path.provisioner/selected-node", "n1"));
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
  CHECK(scene.has_event("overlaps the directory /data of volume pvc-b"));
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
  CHECK(scene.events.lines.size() == 1);
  CHECK(scene.executor.started.empty());
  // As soon as it is gone there is nothing in the way.
  scene.volumes.erase({"", "pvc-b"});
  (void)scene.step();
  CHECK(scene.executor.started.size() == 1);
}

TEST_CASE("errors of the executor are events when repeating alone cannot help") {
  ClaimBed scene;
  SUBCASE("forbidden, as by Pod Security") {
    scene.executor.error = Error{.code = ErrorCode::kForbidden, .message = "violates PodSecurity"};
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.has_event("violates PodSecurity"));
    (void)scene.step();
    CHECK(scene.events.lines.size() == 3);  // Provisioning per attempt, the failure once
  }
  SUBCASE("overload") {
    scene.executor.error = Error{.code = ErrorCode::kTooManyRequests, .message = "slow down"};
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK_FALSE(scene.has_event("Warning"));
  }
}

TEST_CASE("every base path of a node is used, and always the same for the same volume") {
  Scene scene;
  std::map<std::string, int> used;
  for (int i = 0; i < 200; ++i) {
    const auto one = claim("c").uid("uid-" + std::to_string(i)).node("n2").build();
    const auto first = make_operation(one, *scene.classes.get({"", "local-path"}),
                                      scene.nodes.get({"", "n2"}).get(), *scene.config.current());
    const auto& operation = std::get<operation::Operation>(first);
    ++used[operation.base_path];
    const auto again = make_operation(one, *scene.classes.get({"", "local-path"}),
                                      scene.nodes.get({"", "n2"}).get(), *scene.config.current());
    CHECK(std::get<operation::Operation>(again).path == operation.path);
  }
  CHECK(used["/data"] > 60);
  CHECK(used["/fast"] > 60);
}
