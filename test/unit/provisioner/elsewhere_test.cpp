// SPDX-License-Identifier: Apache-2.0
// What is on record for a volume on a node where the volume is not: left from another one of its
// name, or said by somebody who has taken that node over. It is called off, and changes nothing.

#include <doctest/doctest.h>

#include "provisioner/resize_reconciler.h"
#include "unit/provisioner/volume_bed.h"

namespace lpp::provisioner::elsewhere {
namespace {

using operation::Kind;
using operation::Operation;
using operation::Progress;
using testing::claim;
using testing::kReleasedName;
using testing::kReleasedPath;
using testing::node;
using testing::released;
using testing::volume;
using State = Progress::State;

Operation on_n2(Kind kind, const std::string& owner_uid) {
  Operation operation;
  operation.kind = kind;
  operation.volume_name = kReleasedName;
  operation.claim = {"default", "a"};
  operation.owner_uid = owner_uid;
  operation.attempt = 7;
  operation.node = "n2";
  operation.base_path = "/data";
  operation.path = kReleasedPath;
  operation.size_bytes = 3LL << 30;
  return operation;
}

template <typename Bed>
void put_nodes(Bed& bed) {
  for (const char* name : {"n1", "n2"}) bed.put(node(name));
}

std::vector<Operation> started_of(const testing::FakeExecutor& executor, Kind kind) {
  std::vector<Operation> found;
  for (const auto& one : executor.started) {
    if (one.kind == kind) found.push_back(one);
  }
  return found;
}

TEST_CASE("a removal or resize that never ends on another node keeps no removal waiting") {
  for (const Kind kind : {Kind::kRemove, Kind::kResize}) {
    for (const char* owner : {"uid-pvc-uid-a", "uid-a", "uid-of-a-former-one"}) {
      for (const State state : {State::kWaiting, State::kRunning, State::kSucceeded, State::kFailed,
                                State::kLate, State::kEnding}) {
        CAPTURE(to_string(kind));
        CAPTURE(owner);
        CAPTURE(static_cast<int>(state));
        testing::VolumeBed bed;
        put_nodes(bed);
        bed.executor.records.push_back({on_n2(kind, owner), {.state = state, .message = "stuck"}});
        bed.put(released());
        (void)bed.step();
        (void)bed.step();
        const auto started = started_of(bed.executor, Kind::kRemove);
        REQUIRE(started.size() == 1);
        CHECK(started[0].node == "n1");
        // What is over is forgotten first, and its number free.
        const bool is_over = state == State::kSucceeded || state == State::kFailed;
        CHECK(started[0].attempt == (is_over ? 1 : 8));
        // It ends, though the other one has not.
        bed.executor.succeed(Kind::kRemove, kReleasedName);
        bed.put(released().deleting());
        bed.transport.on("PATCH", "/persistentvolumes/pvc-uid-a").reply(200);
        (void)bed.step();
        CHECK(bed.transport.count("PATCH", "/persistentvolumes/pvc-uid-a") == 1);
      }
    }
  }
}

TEST_CASE("what is said on another node about a volume's size changes nothing of it") {
  for (const State state : {State::kRunning, State::kSucceeded, State::kFailed, State::kEnding}) {
    testing::Scene scene;
    ResizeReconciler resizes{scene.world, scene.memories};
    put_nodes(scene);
    scene.put(claim("a").volume(kReleasedName).request("3Gi").capacity("1Gi").growing("3Gi"));
    scene.put(volume(kReleasedName)
                  .claim("default", "a")
                  .host_path(kReleasedPath)
                  .node("n1")
                  .annotation("local.path.provisioner/selected-node", "n1"));
    Progress progress{.state = state, .message = "stuck"};
    progress.infeasible = state == State::kFailed;
    scene.executor.records.push_back({on_n2(Kind::kResize, "uid-a"), progress});
    (void)resizes.step({{"default", "a"}, "uid-a"});
    // Neither it has grown, nor can it not.
    CHECK(scene.transport.count("PATCH", "") == 0);
    REQUIRE(scene.executor.started.size() == 1);
    CHECK(scene.executor.started[0].node == "n1");
    CHECK(scene.executor.started[0].attempt == 8);
  }
}

}  // namespace
}  // namespace lpp::provisioner::elsewhere
