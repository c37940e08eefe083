// SPDX-License-Identifier: Apache-2.0
// The table of how a volume grows, row by row and in the order of the code.

#include "provisioner/resize_decision.h"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

#include "unit/provisioner/decision_scene.h"

namespace lpp::provisioner::resize_rows {
namespace {

using operation::Kind;
using operation::Operation;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::is_plain_wait;
using testing::kAllStates;
using testing::kOver;
using testing::State;
using Limit = for_resize::Finish::Limit;

constexpr std::int64_t kGi = 1LL << 30U;

testing::ClaimBuilder bound_claim() {
  return testing::claim("a").volume("pvc-uid-a").request("3Gi").capacity("1Gi");
}

testing::VolumeBuilder bound_volume() {
  return testing::volume("pvc-uid-a")
      .claim("default", "a")
      .host_path("/data/pvc-uid-a_default_a")
      .capacity("1Gi")
      .node("n1");
}

/// A claim of 1 Gi on n1 that asks for 3 Gi; nothing has been begun.
struct Row : ResizeScene {
  Row() {
    now = TimePoint(std::chrono::hours(1));
    names = testing::kProvisionerName;
    config::Config paths;
    paths.paths.node_path_map["n1"] = {"/data"};
    config = std::make_shared<const config::Config>(std::move(paths));
    claim = bound_claim().shared();
    volume = bound_volume().shared();
    node = {.kind = VolumeNode::Kind::kNode, .name = "n1", .description = {}};
  }
  /// It stands in the claim's status.
  explicit Row(const std::string& size) : Row() { claim = bound_claim().growing(size).shared(); }

  operation::Recorded& resize(State state, std::int64_t gi = 3, int attempt = 1) {
    Operation operation;
    operation.kind = Kind::kResize;
    operation.volume_name = "pvc-uid-a";
    operation.claim = {"default", "a"};
    operation.owner_uid = "uid-a";
    operation.attempt = attempt;
    operation.node = "n1";
    operation.path = "/data/pvc-uid-a_default_a";
    operation.size_bytes = gi * kGi;
    return resizes.emplace_back(
        operation::Recorded{.operation = std::make_shared<const Operation>(std::move(operation)),
                            .progress = {.state = state}});
  }
  void has_failed(const std::string& size, int number, Duration held_for) {
    memory.retry = {.number = number, .hold_until = now + held_for, .seen = size};
  }

  ResizeDecision next() const { return decide(*this); }
  template <typename Alternative>
  Alternative next_is() const {
    return testing::the<Alternative>(next());
  }
  bool is_nothing() const {
    const auto decision = next();
    const auto* const wait = std::get_if<for_resize::Wait>(&decision);
    return wait != nullptr && wait->forget && !wait->at_most;
  }
};

TEST_CASE("a request that is beyond all sizes is refused, and ends no growth that has begun") {
  Row row;
  row.claim = bound_claim().request("16Ei").shared();
  CHECK(wants_resize(*row.claim));
  const auto refused = decide(row);
  REQUIRE(std::holds_alternative<for_resize::Refuse>(refused));
  CHECK(std::get<for_resize::Refuse>(refused).message.find("16Ei") != std::string::npos);
  row.memory.retry.seen = "16Ei";
  row.memory.retry.hold_until = row.now + minutes(1);
  CHECK(std::holds_alternative<for_resize::Wait>(decide(row)));

  Row all_of_it;  // without a limit a volume may be promised anything
  all_of_it.claim = bound_claim().request("16Ei").capacity("16Ei").shared();
  CHECK_FALSE(wants_resize(*all_of_it.claim));
  CHECK(std::holds_alternative<for_resize::Wait>(decide(all_of_it)));

  Row growing("3Gi");
  growing.claim = bound_claim().growing("3Gi").request("16Ei").shared();
  growing.resize(State::kRunning);
  CHECK(std::holds_alternative<for_resize::Follow>(decide(growing)));
}

TEST_CASE("only a claim and a volume that are each other's, and ours, grow") {
  Row row;
  REQUIRE(std::holds_alternative<for_resize::Begin>(row.next()));
  SUBCASE("the claim is gone") { row.claim = nullptr; }
  SUBCASE("the volume is gone") { row.volume = nullptr; }
  SUBCASE("not bound") { row.claim = bound_claim().phase("Lost").shared(); }
  SUBCASE("the claim is on its way out") { row.claim = bound_claim().deleting().shared(); }
  SUBCASE("the volume is on its way out") { row.volume = bound_volume().deleting().shared(); }
  SUBCASE("bound to another volume") { row.claim = bound_claim().volume("another").shared(); }
  SUBCASE("the volume is another claim's") {
    row.volume = bound_volume().claim("default", "a", "another").shared();
  }
  SUBCASE("the volume is another provisioner's") {
    row.volume =
        bound_volume().annotation("pv.kubernetes.io/provisioned-by", "example.com/other").shared();
  }
  SUBCASE("it is no directory") {
    row.volume =
        bound_volume().unset("/spec", "hostPath").set("/spec/csi", {{"driver", "x"}}).shared();
  }
  CHECK(row.is_nothing());
}

TEST_CASE("volumes of every origin grow") {
  Row row;
  SUBCASE("a local one") { row.volume = bound_volume().local("/data/x").shared(); }
  SUBCASE("one that is kept") { row.volume = bound_volume().reclaim_policy("Retain").shared(); }
  SUBCASE("one that was adopted: the claim never asked for it") {
    row.claim = bound_claim().no_provisioner().storage_class("").shared();
  }
  SUBCASE("one that came from another provisioner") {
    row.volume = bound_volume()
                     .no_annotation("pv.kubernetes.io/provisioned-by")
                     .annotation("pv.kubernetes.io/migrated-to", testing::kProvisionerName)
                     .shared();
  }
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
}

TEST_CASE("nothing is done for a claim that has what it asks for") {
  Row row;
  SUBCASE("exactly") { row.claim = bound_claim().capacity("3Gi").shared(); }
  SUBCASE("in other words") { row.claim = bound_claim().capacity("3072Mi").shared(); }
  SUBCASE("more") { row.claim = bound_claim().capacity("5Gi").shared(); }
  SUBCASE("and the volume holds more") {
    row.claim = bound_claim().capacity("3Gi").shared();
    row.volume = bound_volume().capacity("5Gi").shared();
  }
  SUBCASE("it has grown") {
    row.claim =
        bound_claim().capacity("3Gi").set("/status/allocatedResources/storage", "3Gi").shared();
  }
  SUBCASE("its size is not known") {
    row.claim = bound_claim().unset("/status", "capacity").shared();
  }
  CHECK(row.is_nothing());
}

TEST_CASE("what is on record for a claim that needs nothing goes") {
  for (const State state : kAllStates) {
    Row row;
    row.claim = bound_claim().capacity("3Gi").shared();
    row.resize(state);
    if (state == State::kSucceeded || state == State::kFailed) {
      CHECK(row.next_is<for_resize::Forget>().operation == row.resizes[0].operation);
    } else if (state == State::kEnding) {
      CHECK(is_plain_wait(row.next()));
    } else {
      CHECK(row.next_is<for_resize::Cancel>().operation == row.resizes[0].operation);
    }
  }
}

TEST_CASE("the size stands in the claim's status before anything is done") {
  Row row;
  row.has_way = false;
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
  row.claim = bound_claim().growing("2Gi", "").shared();
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
}

TEST_CASE("an expansion that has begun is finished before a larger one") {
  Row row("2Gi");
  row.has_way = true;
  CHECK(row.next_is<for_resize::Start>().operation.size_bytes == 2 * kGi);
}

TEST_CASE("marks that the API server has dropped count as those of the status") {
  Row row;
  row.has_way = true;
  row.memory.dropped = {.allocated = "2Gi", .status = std::string(kResizeInProgress)};
  CHECK(row.next_is<for_resize::Start>().operation.size_bytes == 2 * kGi);
  row.has_failed("2Gi", 1, Duration::zero());
  CHECK(row.next_is<for_resize::Start>().operation.size_bytes == 2 * kGi);
  row.memory.dropped.allocated = "5Gi";  // by a newer API server the request may be lowered
  row.has_failed("5Gi", 1, Duration::zero());
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
  row.memory.dropped.allocated = "1Gi";  // the cache shows the end of that expansion
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
  row.claim = bound_claim().capacity("3Gi").shared();
  CHECK(row.is_nothing());
}

TEST_CASE("the marks of the status count for more than what was dropped once") {
  Row row("3Gi");
  row.has_way = true;
  row.memory.dropped = {.allocated = "2Gi", .status = std::string(kResizeInProgress)};
  CHECK(row.next_is<for_resize::Start>().operation.size_bytes == 3 * kGi);
}

TEST_CASE("an expansion that has not failed is finished before a lower one") {
  Row row("5Gi");
  row.has_way = true;
  CHECK(row.next_is<for_resize::Start>().operation.size_bytes == 5 * kGi);
  for (const State state : {State::kWaiting, State::kRunning}) {
    Row busy("5Gi");
    busy.has_failed("5Gi", 1, minutes(1));
    busy.resize(state, 5, 2);
    CHECK(busy.next_is<for_resize::Follow>().resize.operation == busy.resizes[0].operation);
  }
  Row done("5Gi");
  done.resize(State::kSucceeded, 5);
  CHECK(done.next_is<for_resize::GrowVolume>().size.text == "5Gi");
}

TEST_CASE("an expansion that failed gives way to a lower request") {
  Row row("5Gi");
  SUBCASE("as this process remembers") { row.has_failed("5Gi", 2, minutes(1)); }
  SUBCASE("as is on record") { row.resize(State::kFailed, 5); }
  SUBCASE("for good") {
    row.claim = bound_claim().growing("5Gi", std::string(kResizeInfeasible)).shared();
    row.has_failed("5Gi", 2, minutes(15));
  }
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
}

TEST_CASE("a lower request never shrinks the volume") {
  Row row("5Gi");
  row.volume = bound_volume().capacity("5Gi").shared();
  row.has_failed("5Gi", 1, Duration::zero());
  row.has_way = true;
  CHECK(row.next_is<for_resize::Start>().operation.size_bytes == 5 * kGi);
  row.resize(State::kSucceeded, 5, 2);
  CHECK(row.next_is<for_resize::Finish>().size.text == "5Gi");
}

TEST_CASE("marks that an expansion left are taken off") {
  Row row;
  row.claim = bound_claim().capacity("3Gi").growing("3Gi").shared();
  row.volume = bound_volume().capacity("3Gi").shared();
  const auto finish = row.next_is<for_resize::Finish>();
  CHECK(finish.size.text == "3Gi");
  CHECK(finish.limit == Limit::kSameAsBefore);
}

TEST_CASE("what the node cannot have is tried again slowly, and at once when it is another size") {
  Row row;
  row.claim = bound_claim().growing("3Gi", std::string(kResizeInfeasible)).shared();
  row.has_failed("3Gi", 1, minutes(15));
  CHECK(row.next_is<for_resize::Wait>().at_most == minutes(15));
  row.resize(State::kFailed).progress.infeasible = true;
  CHECK(row.next_is<for_resize::Forget>().operation == row.resizes[0].operation);
  row.resizes.clear();
  row.now += minutes(15);
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
  row.now -= minutes(15);
  row.claim = bound_claim().request("4Gi").growing("3Gi", std::string(kResizeInfeasible)).shared();
  CHECK(row.next_is<for_resize::Begin>().size.text == "4Gi");
}

TEST_CASE("a failure of an expansion before is not told, or waited after, again") {
  Row row;
  row.resize(State::kFailed).progress.message = "no space";
  CHECK(row.next_is<for_resize::Forget>().operation == row.resizes[0].operation);
  row.resizes.clear();
  CHECK(row.next_is<for_resize::Begin>().size.text == "3Gi");
}

TEST_CASE("two sizes never compete for a directory") {
  Row row("3Gi");
  row.has_way = true;
  for (const State state : {State::kWaiting, State::kRunning, State::kLate}) {
    row.resizes.clear();
    row.resize(state, 2);
    CHECK(row.next_is<for_resize::Cancel>().operation == row.resizes[0].operation);
  }
  row.resizes.clear();
  row.resize(State::kEnding, 2);
  CHECK(is_plain_wait(row.next()));
  row.resizes[0].progress.message = "it does not go";
  CHECK(row.next_is<for_resize::Follow>().resize.operation == row.resizes[0].operation);
  row.resizes[0].progress.acts_no_more = true;
  CHECK(row.next_is<for_resize::Start>().operation.attempt == 2);
}

TEST_CASE("the work says all that the node has to know") {
  Row row("3Gi");
  CHECK(std::holds_alternative<for_resize::AskForWay>(row.next()));
  row.has_way = true;
  const auto operation = row.next_is<for_resize::Start>().operation;
  CHECK(operation.kind == Kind::kResize);
  CHECK(operation.volume_name == "pvc-uid-a");
  CHECK(operation.claim == k8s::ObjectKey{"default", "a"});
  CHECK(operation.owner_uid == "uid-a");
  CHECK(operation.attempt == 1);
  CHECK(operation.storage_class == "local-path");
  CHECK(operation.node == "n1");
  CHECK(operation.base_path == "/data");
  CHECK(operation.path == "/data/pvc-uid-a_default_a");
  CHECK(operation.size_bytes == 3 * kGi);
  CHECK(operation.claim_uid == "uid-a");
  const auto rebound = testing::volume("pvc-uid-before").claim("default", "a").capacity("1Gi");
  row.volume = testing::VolumeBuilder(rebound).host_path("/data/b").node("n1").shared();
  row.claim = bound_claim().volume("pvc-uid-before").growing("3Gi").shared();
  CHECK(row.next_is<for_resize::Start>().operation.claim_uid.empty());
}

TEST_CASE("the work goes by the base path of the volume's own node") {
  Row row("3Gi");
  row.has_way = true;
  config::Config paths = *row.config;
  paths.paths.node_path_map["big"] = {"/data/prod"};
  paths.paths.mount_nodes.insert("n1");
  row.config = std::make_shared<const config::Config>(std::move(paths));
  row.volume = bound_volume().host_path("/data/prod/db").shared();
  const auto operation = row.next_is<for_resize::Start>().operation;
  CHECK(operation.base_path == "/data");
  CHECK(operation.require_mount);
}

TEST_CASE("without a way to limit directories only the numbers grow") {
  Row row("3Gi");
  row.has_way = false;
  CHECK(row.next_is<for_resize::GrowVolume>().size.text == "3Gi");
  row.volume = bound_volume().capacity("3Gi").shared();
  const auto finish = row.next_is<for_resize::Finish>();
  CHECK(finish.size.text == "3Gi");
  CHECK(finish.limit == Limit::kNone);
}

TEST_CASE("nothing is done on a node that is not clear, or to a path that is anybody's") {
  Row row("3Gi");
  row.has_way = true;
  SUBCASE("the node is gone") { row.node = {VolumeNode::Kind::kGone, "n1", "n1"}; }
  SUBCASE("it is not clear") { row.node = {VolumeNode::Kind::kUnclear, "", "who knows"}; }
  SUBCASE("a part of the system") { row.volume = bound_volume().host_path("/etc").shared(); }
  SUBCASE("a base path") { row.volume = bound_volume().host_path("/data").shared(); }
  CHECK(row.next_is<for_resize::Refuse>().message != "");
  row.has_failed("3Gi", 0, minutes(15));
  CHECK(row.next_is<for_resize::Wait>().at_most == minutes(15));
}

TEST_CASE("the work is followed to its end, and the volume comes before the claim") {
  for (const State state : {State::kWaiting, State::kRunning, State::kEnding}) {
    Row row("3Gi");
    row.resize(state);
    CHECK(row.next_is<for_resize::Follow>().resize.operation == row.resizes[0].operation);
  }
  Row row("3Gi");
  row.resize(State::kSucceeded);
  CHECK(row.next_is<for_resize::GrowVolume>().size.text == "3Gi");
  row.volume = bound_volume().capacity("3Gi").shared();
  const auto finish = row.next_is<for_resize::Finish>();
  CHECK(finish.size.text == "3Gi");
  CHECK(finish.limit == Limit::kEnforced);
}

TEST_CASE("a failure is told once, waited after, and tried again for the same size") {
  Row row("3Gi");
  row.has_way = true;
  row.resize(State::kFailed).progress.message = "no";
  const auto failed = row.next_is<for_resize::Failed>();
  CHECK(failed.progress.message == "no");
  CHECK(failed.size.text == "3Gi");
  row.has_failed("3Gi", 1, seconds(5));
  CHECK(row.next_is<for_resize::Wait>().at_most == seconds(5));
  row.now += seconds(5);
  const auto again = row.next_is<for_resize::Start>();
  CHECK(again.operation.attempt == 2);
  CHECK(again.operation.size_bytes == 3 * kGi);
}

TEST_CASE("what is late is told, then cancelled") {
  Row row("3Gi");
  row.resize(State::kLate);
  CHECK(row.next_is<for_resize::Failed>().operation == row.resizes[0].operation);
  row.has_failed("3Gi", 1, seconds(5));
  CHECK(row.next_is<for_resize::Cancel>().operation == row.resizes[0].operation);
}

TEST_CASE("work that vanished is told like a failure") {
  Row row("3Gi");
  row.has_way = true;
  row.resize(State::kRunning);
  row.memory.in_flight = row.resizes[0].operation;
  row.resizes.clear();
  row.lost = {.state = State::kFailed, .message = "gone"};
  CHECK(row.next_is<for_resize::Failed>().progress.message == "gone");
  row.has_failed("3Gi", 1, Duration::zero());
  CHECK(row.next_is<for_resize::Start>().operation.attempt == 2);
}

TEST_CASE("a size that the node cannot have is written down as such, by whoever sees it") {
  Row row("3Gi");
  row.resize(State::kFailed).progress.infeasible = true;
  CHECK(row.next_is<for_resize::Infeasible>().size.text == "3Gi");
  row.has_failed("3Gi", 1, minutes(15));  // counted, and not written down yet
  CHECK(row.next_is<for_resize::Infeasible>().size.text == "3Gi");
}

TEST_CASE("a script that was taken away because it fails stops nothing") {
  Row row("3Gi");
  row.has_failed("3Gi", 1, Duration::zero());
  row.resize(State::kFailed);
  row.has_way = false;
  CHECK(row.next_is<for_resize::Forget>().operation == row.resizes[0].operation);
  row.resizes.clear();
  CHECK(row.next_is<for_resize::GrowVolume>().size.text == "3Gi");
}

TEST_CASE("whether a claim wants to grow can be told without anything else") {
  CHECK(wants_resize(*bound_claim().shared()));
  CHECK_FALSE(wants_resize(*bound_claim().capacity("3Gi").shared()));
  CHECK(wants_resize(*bound_claim().capacity("3Gi").growing("3Gi").shared()));
  CHECK(wants_resize(
      *bound_claim().capacity("3Gi").growing("4Gi", std::string(kResizeInfeasible)).shared()));
  CHECK_FALSE(
      wants_resize(*bound_claim().capacity("3Gi").growing("4Gi", "NodeResizePending").shared()));
  CHECK_FALSE(wants_resize(*testing::claim("a").request("3Gi").shared()));
  CHECK_FALSE(wants_resize(*bound_claim().request("absurd").shared()));
}

/// The volume has a limit of its own, and its class keeps something.
Row limited_row() {
  Row row("3Gi");
  row.volume = bound_volume().annotation("local.path.provisioner/quota", "hard").shared();
  row.storage_class =
      testing::storage_class().parameter("quota", "none").parameter("reserve", "1Gi").shared();
  row.has_way = true;
  return row;
}

TEST_CASE("a volume with a limit gets a new one, whatever its class says by now") {
  const Row row = limited_row();
  const auto start = row.next_is<for_resize::Start>();
  CHECK(start.operation.limits == operation::Limits{.hard = true, .reserve = "1Gi"});
}

TEST_CASE("a class that asks for limits does not give them to volumes that were made without") {
  Row row("3Gi");
  row.has_way = true;
  row.storage_class =
      testing::storage_class().parameter("quota", "hard").parameter("quotaInodes", "9").shared();
  CHECK(row.next_is<for_resize::Start>().operation.limits == operation::Limits{});
}

TEST_CASE("a volume with a limit does not grow in numbers only") {
  Row row = limited_row();
  SUBCASE("there is nothing to change it with") {
    row.has_way = false;
    CHECK(row.next_is<for_resize::Refuse>().message.find("resizeCommand") != std::string::npos);
  }
  SUBCASE("the script says nothing of it") {
    auto& done = row.resize(State::kSucceeded);
    testing::change(done.operation, [](auto& operation) { operation.limits.hard = true; });
    const auto failed = row.next_is<for_resize::Failed>();
    CHECK(failed.progress.reason == "LimitsMissing");
    CHECK(failed.progress.message.find("parameter quota") != std::string::npos);
    row.has_failed("3Gi", 1, minutes(1));
    CHECK(row.next_is<for_resize::Wait>().at_most == minutes(1));
    SUBCASE("and gives way to a lower request") {
      row.claim = bound_claim().growing("3Gi").request("2Gi").shared();
      CHECK(row.next_is<for_resize::Begin>().size.text == "2Gi");
    }
    SUBCASE("until it does") {
      done.progress.kept.size = true;
      (void)row.next_is<for_resize::GrowVolume>();
    }
  }
}

TEST_CASE("a script that says that there is no limit makes the Event that says so") {
  Row row("3Gi");
  row.volume = bound_volume().capacity("3Gi").shared();
  row.has_way = true;
  auto& done = row.resize(State::kSucceeded);
  CHECK(row.next_is<for_resize::Finish>().limit == Limit::kEnforced);
  done.progress.kept.size = false;
  CHECK(row.next_is<for_resize::Finish>().limit == Limit::kNone);
}

}  // namespace
}  // namespace lpp::provisioner::resize_rows
