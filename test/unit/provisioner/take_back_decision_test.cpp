// What is decided of directories that are taken back, in the scenes that are hard to get right.

#include <doctest/doctest.h>

#include "fakes/builders.h"
#include "provisioner/claim_decision.h"
#include "provisioner/volume_decision.h"

namespace lpp::provisioner {
namespace {

using operation::Operation;
using State = operation::Progress::State;

constexpr const char* kUid = "0b3e8c1c-7f7e-4a1b-9a55-3d1f6a4ef001";

Operation made_on(const std::string& node, int attempt = 1) {
  Operation make;
  make.volume_name = std::string("pvc-") + kUid;
  make.owner_uid = kUid;
  make.claim = {"default", "a"};
  make.node = node;
  make.base_path = "/data";
  make.path = "/data/kept";
  make.attempt = attempt;
  make.shape = operation::Shape{};
  return make;
}

Make a_make(const Operation& operation, std::optional<State> state) {
  Make make;
  make.begun = {.operation = std::make_shared<const Operation>(operation), .never_published = true};
  if (state) make.progress = operation::Progress{.state = *state};
  return make;
}

TakingBack a_take_back(Operation operation, int attempt, State state) {
  operation.kind = operation::Kind::kTakeBack;
  operation.attempt = attempt;
  operation.only_if_empty = true;
  return {std::make_shared<const Operation>(operation), {.state = state}};
}

/// A claim on n1, of a class that waits for a consumer.
struct DecisionScene : ClaimScene {
  DecisionScene() {
    now = TimePoint{} + std::chrono::hours(1);
    provisioner_name = testing::kProvisionerName;
    volume_name = std::string("pvc-") + kUid;
    storage_class = testing::storage_class()
                        .parameter("pathPattern", "kept")
                        .parameter("allowUnsafePathPattern", "true")
                        .shared();
    config::Config paths;
    paths.paths.node_path_map["DEFAULT_PATH_FOR_NON_LISTED_NODES"] = {"/data"};
    config = std::make_shared<const config::Config>(paths);
    select("n1");
  }
  void select(const std::string& name) {
    claim = testing::claim("a").uid(kUid).node(name).shared();
    node = testing::node(name).shared();
    node_name = name;
  }
};

template <typename T>
const T* as(const ClaimDecision& decision) {
  return std::get_if<T>(&decision);
}

}  // namespace

TEST_CASE("an attempt to take a directory back that failed gives way to the next one") {
  DecisionScene scene;
  scene.claim = nullptr;
  scene.makes = {a_make(made_on("n1"), State::kSucceeded)};
  scene.taking_back = {a_take_back(made_on("n1"), 1, State::kFailed),
                       a_take_back(made_on("n1"), 2, State::kRunning)};
  scene.memory.take_back["n1"] = {.number = 1};
  const auto first = decide(scene);
  REQUIRE(as<for_claim::Forget>(first) != nullptr);
  CHECK(as<for_claim::Forget>(first)->operation->attempt == 1);
  // Without it the second one is followed, and its success is seen.
  scene.taking_back.erase(scene.taking_back.begin());
  CHECK(as<for_claim::Wait>(decide(scene)) != nullptr);
  scene.taking_back[0].progress.state = State::kSucceeded;
  CHECK(as<for_claim::FinishTakeBack>(decide(scene)) != nullptr);
}

TEST_CASE("what was given up is not published, though its claim has come back") {
  DecisionScene scene;
  scene.makes = {a_make(made_on("n1"), State::kSucceeded)};
  CHECK(as<for_claim::Publish>(decide(scene)) != nullptr);
  scene.makes[0].begun.given_up = true;
  CHECK(as<for_claim::TakeBack>(decide(scene)) != nullptr);
  scene.taking_back = {a_take_back(made_on("n1"), 1, State::kRunning)};
  CHECK(as<for_claim::Wait>(decide(scene)) != nullptr);
}

TEST_CASE("removals and take-backs of one name count their attempts together") {
  DecisionScene scene;
  scene.claim = nullptr;
  scene.makes = {a_make(made_on("n1"), State::kFailed)};
  Operation earlier = made_on("n1", 3);
  earlier.kind = operation::Kind::kRemove;
  scene.removals = {{std::make_shared<const Operation>(earlier), {.state = State::kSucceeded}}};
  const auto decision = decide(scene);
  REQUIRE(as<for_claim::TakeBack>(decision) != nullptr);
  CHECK(as<for_claim::TakeBack>(decision)->attempt == 4);

  VolumeScene removal;
  removal.name = scene.volume_name;
  removal.provisioner_name = testing::kProvisionerName;
  removal.volume = testing::volume(removal.name).host_path("/data/kept").released().shared();
  removal.is_wanted = true;
  removal.node = {.name = "n2"};
  removal.config = scene.config;
  removal.last_take_back = 2;
  const auto begun = decide(removal);
  REQUIRE(std::holds_alternative<for_volume::Remove>(begun));
  CHECK(std::get<for_volume::Remove>(begun).operation.attempt == 3);
}

TEST_CASE("a claim goes on elsewhere while what it left on a node cannot be taken back") {
  for (const State state : {State::kWaiting, State::kRunning, State::kEnding}) {
    CAPTURE(static_cast<int>(state));
    DecisionScene scene;
    scene.select("n2");
    scene.makes = {a_make(made_on("n1"), State::kSucceeded)};
    scene.taking_back = {a_take_back(made_on("n1"), 1, state)};
    const auto decision = decide(scene);
    REQUIRE(as<for_claim::Start>(decision) != nullptr);
    CHECK(as<for_claim::Start>(decision)->operation.node == "n2");
  }
}

TEST_CASE("on a shared filesystem the next node's make takes over, and nothing is taken back") {
  DecisionScene scene;
  Operation first = made_on("n1");
  first.shared = true;
  scene.select("n2");
  scene.makes = {a_make(first, State::kSucceeded)};
  CHECK(as<for_claim::TakeBack>(decide(scene)) == nullptr);
  Operation second = first;
  second.node = "n2";
  second.attempt = 2;
  scene.makes.push_back(a_make(second, State::kRunning));
  CHECK(as<for_claim::Forget>(decide(scene)) != nullptr);
}

TEST_CASE("a teardown that an older version recorded for an unsafe name is stopped") {
  DecisionScene scene;
  scene.claim = nullptr;
  auto old = a_take_back(made_on("n1"), 1, State::kWaiting);
  Operation teardown = *old.operation;
  teardown.only_if_empty = false;
  old.operation = std::make_shared<const Operation>(teardown);
  scene.taking_back = {old};
  CHECK(as<for_claim::Cancel>(decide(scene)) != nullptr);
  // If the make says that it made the directory, it goes on.
  scene.makes = {a_make(made_on("n1"), State::kSucceeded)};
  scene.makes[0].begun.made = true;
  CHECK(as<for_claim::Cancel>(decide(scene)) == nullptr);
}

TEST_CASE("nothing is taken back while another attempt may still be at work there") {
  for (const State state : {State::kRunning, State::kEnding}) {
    DecisionScene scene;
    scene.claim = nullptr;
    scene.makes = {a_make(made_on("n1", 2), State::kFailed), a_make(made_on("n1", 1), state)};
    CHECK(as<for_claim::Wait>(decide(scene)) != nullptr);
  }
}

TEST_CASE("a directory that setup found goes only if it is empty, whatever its name") {
  Operation named = made_on("n1");
  named.path = std::string("/data/pvc-") + kUid + "_default_a";
  Make make = a_make(named, State::kSucceeded);
  CHECK(may_tear_down(make));
  make.begun.found = true;
  CHECK_FALSE(may_tear_down(make));
  make.begun.made = true;  // by an earlier attempt
  CHECK(may_tear_down(make));
}

TEST_CASE("nothing is made or shown where a removal may still be at work") {
  Operation removal = made_on("n1");
  removal.kind = operation::Kind::kRemove;
  for (const State state : {State::kWaiting, State::kRunning, State::kLate, State::kEnding}) {
    CAPTURE(static_cast<int>(state));
    DecisionScene scene;
    scene.removals = {{std::make_shared<const Operation>(removal), {.state = state}}};
    CHECK(as<for_claim::Wait>(decide(scene)) != nullptr);
    scene.makes = {a_make(made_on("n1"), State::kSucceeded)};
    CHECK(as<for_claim::Wait>(decide(scene)) != nullptr);
    scene.removals[0].progress.message = "it does not go";
    CHECK(as<for_claim::TakeBackStuck>(decide(scene)) != nullptr);
    scene.removals[0].progress = {.state = State::kEnding, .acts_no_more = true};
    CHECK(as<for_claim::Publish>(decide(scene)) != nullptr);
  }
}

TEST_CASE("what a script said of a directory counts only while it is on record") {
  Make make = a_make(made_on("n1"), State::kSucceeded);
  CHECK_FALSE(may_tear_down(make));
  make.begun.made = true;
  CHECK(may_tear_down(make));
  make.progress.reset();
  CHECK_FALSE(may_tear_down(make));
  make.progress = operation::Progress{.state = State::kSucceeded};
  make.begun.never_published = false;
  CHECK_FALSE(may_tear_down(make));
}

}  // namespace lpp::provisioner
