// SPDX-License-Identifier: Apache-2.0
// Taking back what was begun for a claim: never on the word of an old cache alone.

#include "provisioner/claim_reconciler.h"

#include <doctest/doctest.h>

#include <functional>

#include "provisioner/names.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::undo {

using namespace lpp;
using namespace lpp::provisioner;
using namespace lpp::testing;
using operation::Kind;

namespace {

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kPath = "/data/pvc-uid-a_default_a";
const ClaimKey kKey{{"default", "a"}, "uid-a"};

/// A claim on n1 whose directory has just been made; there is no volume yet.
struct UndoScene : Scene {
  UndoScene() {
    put(claim("a").node("n1"));
    (void)step();
    executor.succeed(Kind::kMake, kVolume);
  }

  provisioner::Action step() { return reconciler.step(kKey); }
  void forget_claim() { claims.erase({"default", "a"}); }
  void volume_is_missing() {
    transport.on("GET", "/persistentvolumes/pvc-uid-a").always([](const auto&) {
      return k8s::Response{.status = 404};
    });
  }
  bool undo_was_begun() const { return executor.has(Kind::kTakeBack, kVolume); }
  const operation::Operation& undone() { return executor.last(Kind::kTakeBack, kVolume).operation; }
  bool undo_is_shown() const {
    const auto shown = figures.in_flight(10);
    return std::any_of(shown.begin(), shown.end(),
                       [](const InFlight& one) { return one.kind == operation::Kind::kTakeBack; });
  }

  ClaimReconciler reconciler{world, memories};
};

struct Row {
  std::string what;
  std::function<void(UndoScene&)> act;
};

}  // namespace

TEST_CASE("nothing is taken back for a claim that the API server has and the cache does not know") {
  for (const Row& row : std::vector<Row>{
           {"not there yet", [](UndoScene& s) { s.forget_claim(); }},
           {"the one before under its name",
            [](UndoScene& s) { s.put(claim("a").uid("uid-old").node("n1")); }},
           {"no node selected yet", [](UndoScene& s) { s.put(claim("a")); }},
           {"still on another node", [](UndoScene& s) { s.put(claim("a").node("n2")); }},
       }) {
    CAPTURE(row.what);
    UndoScene scene;
    scene.volume_is_missing();
    row.act(scene);
    scene.api_shows(claim("a").node("n1"));
    // Whether it is under way or over.
    scene.executor.last(Kind::kMake, kVolume).progress = {};
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.executor.cancelled.empty());
    scene.executor.succeed(Kind::kMake, kVolume);
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK_FALSE(scene.undo_was_begun());
    CHECK(scene.executor.forgotten.empty());

    // When the cache has caught up all goes on where it stood.
    scene.put(claim("a").node("n1"));
    scene.transport.on("POST", "/persistentvolumes").reply(201);
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.transport.count("POST", "/persistentvolumes") == 1);
    CHECK_FALSE(scene.undo_was_begun());
  }
}

TEST_CASE("a make inherits from a certain record only that its directory was made for the claim") {
  for (const bool certain : {true, false}) {
    CAPTURE(certain);
    UndoScene scene;
    auto& first = scene.executor.last(Kind::kMake, kVolume).progress;
    first.directory = operation::Directory::kMade;
    first.standing = operation::Progress::Standing::kDoubtful;
    (void)scene.step();
    REQUIRE(scene.executor.started.size() == 2);
    REQUIRE(scene.executor.records.size() == 2);
    // Its agent comes back.
    scene.executor.records[0].progress.standing =
        certain ? operation::Progress::Standing::kCertain : operation::Progress::Standing::kAwaited;
    (void)scene.step();
    CHECK(scene.executor.records.size() == 1);
    scene.executor.succeed(Kind::kMake, kVolume, operation::Directory::kFound);
    scene.forget_claim();
    scene.api_shows_no_claim();
    scene.volume_is_missing();
    (void)scene.step();
    REQUIRE(scene.undo_was_begun());
    CHECK(scene.undone().only_if_empty == !certain);
  }
}

TEST_CASE("what the API server itself says is no use any more is taken back") {
  for (const Row& row : std::vector<Row>{
           {"gone", [](UndoScene& s) { s.api_shows_no_claim(); }},
           {"another claim under its name",
            [](UndoScene& s) { s.api_shows(claim("a").uid("uid-new").node("n1")); }},
           {"bound to another volume",
            [](UndoScene& s) { s.api_shows(claim("a").node("n1").volume("static")); }},
           {"no node selected any more", [](UndoScene& s) { s.api_shows(claim("a")); }},
           {"on another node", [](UndoScene& s) { s.api_shows(claim("a").node("n2")); }},
           {"another provisioner's",
            [](UndoScene& s) { s.api_shows(claim("a").node("n1").provisioner("other")); }},
       }) {
    CAPTURE(row.what);
    UndoScene scene;
    scene.volume_is_missing();
    scene.forget_claim();
    row.act(scene);
    (void)scene.step();
    REQUIRE(scene.undo_was_begun());
    const auto undo = scene.undone();
    CHECK(undo.path == kPath);
    CHECK(undo.node == "n1");
  }
}

TEST_CASE("what is taken back is on the disk that its make has told") {
  UndoScene scene;
  scene.executor.last(Kind::kMake, kVolume).progress.disk = "disk-a";
  scene.volume_is_missing();
  scene.forget_claim();
  scene.api_shows_no_claim();
  (void)scene.step();
  REQUIRE(scene.undo_was_begun());
  CHECK(scene.undone().disk == "disk-a");
}

TEST_CASE(
    "what is taken back of a make that tells no disk is on its own, unless that is given up") {
  // A helper pod may make it on any of several.
  for (const std::string disk : {"disk-a", "disk-a disk-b"}) {
    for (const std::string named : {"disk-a disk-b", "disk-a", "disk-z"}) {
      CAPTURE(disk);
      CAPTURE(named);
      UndoScene scene;
      scene.executor.last(Kind::kMake, kVolume).operation.disk = disk;
      scene.executor.succeed(Kind::kMake, kVolume, operation::Directory::kMade);
      for (const std::string one : {"disk-a", "disk-b", "disk-z"}) {
        if (named.find(one) == std::string::npos) continue;
        scene.put(volume("on-" + one)
                      .claim("default", "b")
                      .host_path("/data/" + one)
                      .node("n1")
                      .annotation(std::string(kVolumeDisk), one));
      }
      scene.volume_is_missing();
      scene.forget_claim();
      scene.api_shows_no_claim();
      (void)scene.step();
      REQUIRE(scene.undo_was_begun());
      const std::string on = named == "disk-z" ? "" : std::min(disk, named);
      CHECK(scene.undone().disk == on);
      // Elsewhere it may be somebody else's.
      CHECK(scene.undone().only_if_empty == (disk != "disk-a" || on != "disk-a"));
    }
  }
}

TEST_CASE("a claim on its way out keeps its operation until that has failed") {
  UndoScene scene;
  scene.volume_is_missing();
  SUBCASE("it ended well, and the cache does not know the claim") {
    scene.forget_claim();
    scene.api_shows(claim("a").node("n1").deleting());
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK_FALSE(scene.undo_was_begun());
  }
  SUBCASE("it failed: there is no other attempt, and what it left goes") {
    scene.executor.fail(Kind::kMake, kVolume, "exit code 1");
    (void)scene.step();
    scene.put(claim("a").node("n1").deleting().resource_version("2"));
    (void)scene.step();
    CHECK(scene.undo_was_begun());
  }
  SUBCASE("it is bound to this very volume, which somebody took away: its data stays with it") {
    scene.put(claim("a").node("n1").volume(kVolume));
    (void)scene.step();
    CHECK_FALSE(scene.undo_was_begun());
  }
}

TEST_CASE("a helper pod that somebody removed is not held against a claim that is only unknown") {
  UndoScene scene;
  scene.volume_is_missing();
  scene.executor.run(Kind::kMake, kVolume);
  (void)scene.step();  // it runs, then somebody removes it
  scene.executor.records.clear();
  scene.forget_claim();
  scene.api_shows(claim("a").node("n1"));
  CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
  CHECK_FALSE(scene.undo_was_begun());
  scene.api_shows_no_claim();
  (void)scene.step();
  CHECK(scene.undo_was_begun());
}

TEST_CASE("a directory elsewhere than the claim's volume goes, though the claim is there") {
  UndoScene scene;
  const char* const node_of_volume = "local.path.provisioner/selected-node";
  auto made = volume(kVolume).claim("default", "a").host_path(kPath);
  SUBCASE("at another path") { made.host_path("/fast/pvc-uid-a_default_a").node("n1"); }
  SUBCASE("on another node") { made.node("n2").annotation(node_of_volume, "n2"); }
  scene.put(made);
  (void)scene.step();
  REQUIRE(scene.undo_was_begun());
  CHECK(scene.undone().path == kPath);
  CHECK(scene.undone().node == "n1");
}

TEST_CASE("a helper pod that made the claim's own volume is only removed") {
  UndoScene scene;
  auto made = volume(kVolume).claim("default", "a").host_path(kPath);
  const char* const node_of_volume = "local.path.provisioner/selected-node";
  SUBCASE("on its node") { made.node("n1").annotation(node_of_volume, "n1"); }
  SUBCASE("on any node of a shared filesystem") { made.annotation(node_of_volume, "n2"); }
  SUBCASE("by a version that did not write the node down") { made.node("n1"); }
  scene.put(made);
  CHECK(scene.step() == provisioner::Action::done());
  CHECK_FALSE(scene.undo_was_begun());
  CHECK(scene.executor.forgotten == std::vector<std::string>{"make pvc-uid-a"});
}

TEST_CASE("an answer about the claim that is none removes nothing") {
  struct Answer {
    std::string what;
    Result<k8s::Response> answer;
  };
  const auto status = [](int code) {
    return k8s::Response{.status = code, .body = R"({"kind":"Status"})"};
  };
  for (const Answer& row : std::vector<Answer>{
           {"forbidden", status(403)},
           {"no such list", status(404)},
           {"expired", status(410)},
           {"overloaded", status(429)},
           {"in trouble", status(500)},
           {"away", status(503)},
           {"no answer in time", Error{.code = ErrorCode::kTimeout}},
           {"no connection",
            Error{.code = ErrorCode::kUnavailable, .reason = std::string(k8s::kConnectFailed)}},
           {"not JSON", k8s::Response{.status = 200, .body = "<html>"}},
           {"not a list", k8s::Response{.status = 200, .body = "{}"}},
           {"cut short", k8s::Response{.status = 200, .body = R"({"metadata":{"resourceVe)"}},
           {"a claim that is none",
            k8s::Response{.status = 200,
            .body = R"({"metadata":{"resourceVersion":"9"},"items":[{"metadata":5}]})"}},
       }) {
    CAPTURE(row.what);
    UndoScene scene;
    scene.volume_is_missing();
    scene.forget_claim();
    scene.claim_reads.run([&](const auto&, const auto*, const auto&) { return row.answer; });
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK_FALSE(scene.undo_was_begun());
    CHECK(scene.executor.forgotten.empty());
    // The claim really is gone: the next answer says so.
    (void)scene.step();
    CHECK(scene.undo_was_begun());
  }
  SUBCASE("stopping") {
    UndoScene scene;
    scene.forget_claim();
    scene.claim_reads.fail(ErrorCode::kCancelled);
    CHECK(scene.step() == provisioner::Action::done());
    CHECK_FALSE(scene.undo_was_begun());
  }
}

TEST_CASE("a removal that failed is not repeated once a volume records the directory") {
  UndoScene scene;
  auto& reads = scene.transport.on("GET", "/persistentvolumes/pvc-uid-a");
  reads.reply(404);
  scene.forget_claim();
  // The number of the attempt goes on from this one, the wait does not.
  auto removal = scene.executor.last(Kind::kMake, kVolume).operation;
  removal.kind = Kind::kRemove;
  removal.attempt = 999;
  scene.executor.records.push_back({removal, {.state = operation::Progress::State::kSucceeded}});
  (void)scene.step();
  REQUIRE(scene.undone().attempt == 1000);
  scene.executor.fail(Kind::kTakeBack, kVolume, "exit code 1");
  CHECK(scene.step() == provisioner::Action::await_change(std::chrono::seconds(1)));
  scene.clock.advance(std::chrono::seconds(2));
  const auto attempts = scene.executor.started.size();
  SUBCASE("as the API server says") {
    reads.reply(200, volume(kVolume).claim("default", "a").host_path(kPath).json().dump());
    (void)scene.step();
    CHECK(scene.executor.started.size() == attempts);
    CHECK(scene.executor.records.size() == 1);
  }
  SUBCASE("which may not answer") {
    reads.reply(500);
    CHECK(scene.step() == provisioner::Action::retry());
    CHECK(scene.executor.started.size() == attempts);
    CHECK(scene.undo_was_begun());
  }
}

TEST_CASE("an undo that an earlier process brought to its end does not stay in flight") {
  for (const Row& row : std::vector<Row>{
           {"the claim is gone", [](UndoScene& s) { s.forget_claim(); }},
           {"it waits for a node", [](UndoScene& s) { s.put(claim("a")); }},
           {"another node was selected", [](UndoScene& s) { s.put(claim("a").node("n2")); }},
       }) {
    CAPTURE(row.what);
    UndoScene scene;
    row.act(scene);
    // Its last helper pod, which is going, is all that this process sees.
    const auto made = scene.executor.last(Kind::kMake, kVolume).operation;
    scene.memories.erase(kVolume);
    scene.executor.records = {{.operation = made}};
    scene.executor.records[0].operation.kind = Kind::kTakeBack;
    scene.executor.records[0].operation.only_if_empty = true;
    CHECK(scene.step() == provisioner::Action::await_change(kRecheck));
    CHECK(scene.undo_is_shown());
    scene.executor.records.clear();
    (void)scene.step();
    CHECK_FALSE(scene.undo_is_shown());
  }
}

TEST_CASE("what setup did not make is not torn down") {
  using operation::Directory;
  struct Case {
    const char* what;
    const char* pattern;
    Directory said;
    bool only_if_empty;
  };
  for (const Case& row : {
           Case{"a pattern, and setup says that it found it", "kept", Directory::kFound, true},
           Case{"a pattern, and setup says nothing", "kept", Directory::kUnknown, true},
           Case{"a pattern, and setup says that it made it", "kept", Directory::kMade, false},
           Case{"a name that holds the UID", "{{ .PVName }}", Directory::kUnknown, true},
       }) {
    CAPTURE(row.what);
    Scene scene;
    scene.put(storage_class("kept")
                  .parameter("pathPattern", row.pattern)
                  .parameter("allowUnsafePathPattern", "true"));
    scene.put(claim("a").storage_class("kept").node("n1"));
    scene.transport.on("GET", "/persistentvolumes/pvc-uid-a").always([](const auto&) {
      return k8s::Response{.status = 404};
    });
    ClaimReconciler reconciler{scene.world, scene.memories};
    (void)reconciler.step(kKey);
    scene.executor.succeed(Kind::kMake, kVolume, row.said);
    scene.claims.erase({"default", "a"});
    (void)reconciler.step(kKey);
    REQUIRE(scene.executor.started.back().kind == Kind::kTakeBack);
    CHECK(scene.executor.started.back().only_if_empty == row.only_if_empty);
  }
}

TEST_CASE("a directory that stays when its claim is undone is told, with its place") {
  UndoScene scene;
  scene.volume_is_missing();
  scene.forget_claim();
  scene.api_shows_no_claim();
  scene.memories.erase(kVolume);  // another process: it may have been published
  (void)scene.step();
  REQUIRE(scene.undone().only_if_empty);
  scene.executor.succeed(Kind::kTakeBack, kVolume, operation::Directory::kKept);
  (void)scene.step();
  CHECK(scene.executor.records.empty());
  REQUIRE(scene.events.lines.back().find("Warning DirectoryKept") != std::string::npos);
  CHECK(scene.events.lines.back().find(kPath) != std::string::npos);
  CHECK(scene.events.lines.back().find("n1") != std::string::npos);
}

TEST_CASE("the record of what stays is kept until the event that tells it is stored") {
  UndoScene scene;
  scene.volume_is_missing();
  scene.forget_claim();
  scene.api_shows_no_claim();
  scene.memories.erase(kVolume);
  (void)scene.step();
  scene.executor.succeed(Kind::kTakeBack, kVolume, operation::Directory::kKept);
  scene.events.error = Error{.code = ErrorCode::kUnavailable, .message = "down"};
  CHECK(scene.step() == Action::retry());
  CHECK(scene.executor.has(Kind::kTakeBack, kVolume));
  scene.events.error.reset();
  (void)scene.step();
  CHECK(scene.executor.records.empty());
  CHECK(scene.events.lines.back().find("Warning DirectoryKept") != std::string::npos);
}

TEST_CASE("a directory that was made and is not there when it is taken back is told") {
  for (const auto said : {operation::Directory::kMade, operation::Directory::kUnknown}) {
    UndoScene scene;
    scene.volume_is_missing();
    scene.executor.succeed(Kind::kMake, kVolume, said);
    scene.forget_claim();
    scene.api_shows_no_claim();
    (void)scene.step();
    REQUIRE(scene.undo_was_begun());
    scene.executor.succeed(Kind::kTakeBack, kVolume, operation::Directory::kAbsent);
    (void)scene.step();
    CHECK(scene.executor.records.empty());
    const bool told = !scene.events.lines.empty() &&
                      scene.events.lines.back().find("DirectoryMissing") != std::string::npos;
    CHECK(told == (said == operation::Directory::kMade));
  }
}

TEST_CASE("what may have been published is taken back only if it is empty") {
  UndoScene scene;
  scene.volume_is_missing();
  scene.executor.succeed(Kind::kMake, kVolume, operation::Directory::kMade);
  bool may_be = true;
  SUBCASE("it was not") { may_be = false; }
  SUBCASE("by the leader before us") { scene.memories.erase(kVolume); }
  SUBCASE("by us, with an answer that was lost") {
    scene.transport.on("POST", "/persistentvolumes").fail(ErrorCode::kTimeout);
    (void)scene.step();
  }
  scene.forget_claim();
  scene.api_shows_no_claim();
  (void)scene.step();
  REQUIRE(scene.undo_was_begun());
  CHECK(scene.undone().only_if_empty == may_be);
}

TEST_CASE("a teardown of an earlier version that is stopped is told, and only rmdir follows it") {
  UndoScene scene;
  scene.volume_is_missing();
  scene.forget_claim();
  scene.api_shows_no_claim();
  (void)scene.step();
  REQUIRE(scene.undo_was_begun());
  // All that is left after the upgrade: it may tear down what was there before.
  scene.executor.last(Kind::kTakeBack, kVolume).operation.only_if_empty = false;
  scene.executor.vanish(Kind::kMake, kVolume);
  scene.memories.erase(kVolume);
  scene.events.lines.clear();
  scene.events.error = Error{.code = ErrorCode::kUnavailable, .message = "down"};
  CHECK(scene.step() == Action::retry());
  CHECK(scene.executor.cancelled.empty());
  scene.events.error.reset();
  (void)scene.step();
  CHECK(scene.executor.cancelled == std::vector<std::string>{"take back pvc-uid-a"});
  REQUIRE(scene.events.lines.size() == 1);
  CHECK(scene.events.lines[0].find("Warning DirectoryKept") != std::string::npos);
  CHECK(scene.events.lines[0].find(kPath) != std::string::npos);

  scene.executor.vanish(Kind::kTakeBack, kVolume);
  (void)scene.step();
  REQUIRE(scene.undo_was_begun());
  CHECK(scene.undone().only_if_empty);
}

TEST_CASE(
    "a make that was called off while its claim was elsewhere is made again, and no failure") {
  UndoScene scene;
  scene.executor.fail(Kind::kMake, kVolume, "called off after it had been interrupted");
  scene.executor.last(Kind::kMake, kVolume).progress.reason = "CalledOff";
  (void)scene.step();
  std::string lines;
  for (const auto& line : scene.events.lines) lines += line + "\n";
  CAPTURE(lines);
  CHECK(lines.find("Warning") == std::string::npos);
  CHECK(lines.find("Normal Provisioning: making directory /data/pvc-uid-a_default_a on node n1 was "
                   "called off while the claim seemed not to need it there") != std::string::npos);
  CHECK(scene.figures.totals().failures.entries().empty());
  // Whoever says so over and over is not believed ever faster.
  const auto started = scene.executor.started.size();
  (void)scene.step();
  CHECK(scene.executor.started.size() == started);
  scene.clock.advance(std::chrono::seconds(2));
  (void)scene.step();
  CHECK(scene.executor.started.back().attempt == 2);
  CHECK_FALSE(scene.undo_was_begun());
}

}  // namespace lpp::provisioner::undo
