// SPDX-License-Identifier: Apache-2.0
// What a claim has waited for comes when the claim may be gone, and its cache does not show it, or
// when it is on its way out.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "provisioner/claim_reconciler.h"
#include "unit/provisioner/scene.h"

namespace lpp::provisioner::claim_waited {
namespace {

using operation::Kind;
using testing::claim;
using testing::ClaimBuilder;

constexpr const char* kVolume = "pvc-uid-a";
constexpr const char* kDirectory = "/data/pvc-uid-a_default_a";

/// Of a volume that had the name before.
operation::Operation removal_of(const std::string& node, const std::string& path) {
  operation::Operation removal;
  removal.kind = Kind::kRemove;
  removal.volume_name = kVolume;
  removal.node = node;
  removal.path = path;
  return removal;
}

struct Bed : testing::Scene {
  Bed() { put(wanted); }

  Action step() { return reconciler.step({{"default", "a"}, "uid-a"}); }
  void set_paths(const std::string& node, std::vector<std::string> paths) {
    config::Config next = *config.current();
    next.generation += 1;
    next.paths.node_path_map[node] = std::move(paths);
    use(std::move(next));
  }
  /// Somebody else has the claim's directory.
  void put_in_the_way() {
    put(testing::volume("before").host_path(kDirectory).node("n1").phase("Bound"));
  }
  void clear_the_way() { volumes.erase({"", "before"}); }
  void api_shows_it_again() { api_shows(wanted); }
  std::size_t asked() const { return transport.count("GET", "/persistentvolumeclaims"); }
  std::size_t published() const { return transport.count("POST", "/persistentvolumes"); }
  bool is_counted_as_queued() const {
    const auto all = figures.in_flight(9);
    return std::any_of(all.begin(), all.end(),
                       [](const auto& one) { return one.step == Step::kQueued; });
  }

  const ClaimBuilder wanted = claim("a").node("n1");
  ClaimReconciler reconciler{world, memories};
};

/// What the API server says by then of the claim.
struct Later {
  const char* what;
  std::function<void(Bed&)> say;
};

const Later kLater[] = {
    {"it is gone", [](Bed& bed) { bed.api_shows_no_claim(); }},
    {"it was made again", [](Bed& bed) { bed.api_shows(ClaimBuilder(bed.wanted).uid("later")); }},
    {"it is on its way out", [](Bed& bed) { bed.api_shows(ClaimBuilder(bed.wanted).deleting()); }},
    {"it is on another node", [](Bed& bed) { bed.api_shows(ClaimBuilder(bed.wanted).node("n2")); }},
    {"it is bound", [](Bed& bed) { bed.api_shows(ClaimBuilder(bed.wanted).volume("another")); }},
    {"nothing", [](Bed& bed) { bed.claim_reads.reply(500); }},
};

/// What the claim waits for, and how it comes.
struct Wait {
  const char* what;
  std::function<void(Bed&)> begin;
  std::function<void(Bed&)> end;
};

const Wait kWaitsForAMake[] = {
    {"its directory", [](Bed& bed) { bed.put_in_the_way(); },
     [](Bed& bed) { bed.clear_the_way(); }},
    {"its volume's name",
     [](Bed& bed) { bed.put(testing::volume(kVolume).claim("default", "a", "uid-of-another")); },
     [](Bed& bed) {
       bed.volumes.erase({"", kVolume});
     }},
    {"its class",
     [](Bed& bed) {
       bed.classes.erase({"", "local-path"});
     },
     [](Bed& bed) { bed.put(testing::storage_class()); }},
    {"a class of ours", [](Bed& bed) { bed.put(testing::storage_class().provisioner("another")); },
     [](Bed& bed) { bed.put(testing::storage_class()); }},
    {"its node's path",
     [](Bed& bed) {
       bed.set_paths("n1", {});
       bed.transport.on("PATCH", "/persistentvolumeclaims/a").reply(500);
     },
     [](Bed& bed) { bed.set_paths("n1", {"/data"}); }},
    {"its node",
     [](Bed& bed) {
       bed.nodes.erase({"", "n1"});
       bed.transport.on("GET", "/nodes/n1").reply(200, testing::node("n1").json().dump());
     },
     [](Bed& bed) { bed.put(testing::node("n1")); }},
    {"the removal of the volume before",
     [](Bed& bed) {
       bed.executor.records.push_back(
           {removal_of("n1", kDirectory), {.state = operation::Progress::State::kRunning}});
     },
     [](Bed& bed) { bed.executor.vanish(Kind::kRemove, kVolume); }},
    {"the removal of the volume before, which does not get on",
     [](Bed& bed) {
       bed.executor.records.push_back(
           {removal_of("n1", kDirectory),
            {.state = operation::Progress::State::kRunning, .message = "no such image"}});
     },
     [](Bed& bed) { bed.executor.vanish(Kind::kRemove, kVolume); }},
    {"its next attempt",
     [](Bed& bed) {
       (void)bed.step();
       bed.executor.fail(Kind::kMake, kVolume, "exit code 1");
     },
     [](Bed& bed) { bed.clock.advance(std::chrono::hours(1)); }},
};

const Wait kWaitsForAVolume[] = {
    {"its directory", [](Bed& bed) { bed.put_in_the_way(); },
     [](Bed& bed) { bed.clear_the_way(); }},
    {"its disk",
     [](Bed& bed) {
       bed.executor.last(Kind::kMake, kVolume).progress.standing =
           operation::Progress::Standing::kAwaited;
     },
     [](Bed& bed) {
       bed.executor.last(Kind::kMake, kVolume).progress.standing =
           operation::Progress::Standing::kCertain;
     }},
};

}  // namespace

TEST_CASE("what a claim waited for is not done for it unless the API server says that it waits") {
  for (const Wait& wait : kWaitsForAMake) {
    for (const Later& later : kLater) {
      CAPTURE(wait.what);
      CAPTURE(later.what);
      Bed bed;
      wait.begin(bed);
      (void)bed.step();
      const auto started = bed.executor.started.size();
      const auto announced = bed.told("Normal Provisioning:");
      later.say(bed);
      wait.end(bed);
      const Action next = bed.step();
      CHECK(bed.executor.started.size() == started);
      CHECK(bed.told("Normal Provisioning:") == announced);
      CHECK(bed.ledger.decisions() == 0);
      if (later.what != std::string_view("nothing")) {
        CHECK(next == Action::await_change(kRecheck));
        CHECK_FALSE(bed.is_counted_as_queued());
      }
      bed.api_shows_it_again();
      bed.clock.advance(std::chrono::hours(1));
      (void)bed.step();
      CHECK(bed.executor.started.size() == started + 1);
    }
  }
}

TEST_CASE("what a volume waited for brings none unless the API server says that the claim waits") {
  for (const Wait& wait : kWaitsForAVolume) {
    for (const Later& later : kLater) {
      CAPTURE(wait.what);
      CAPTURE(later.what);
      Bed bed;
      bed.transport.on("POST", "/persistentvolumes").reply(201);
      (void)bed.step();
      bed.executor.succeed(Kind::kMake, kVolume);
      wait.begin(bed);
      (void)bed.step();
      later.say(bed);
      wait.end(bed);
      (void)bed.step();
      CHECK(bed.published() == 0);
      bed.api_shows_it_again();
      (void)bed.step();
      CHECK(bed.published() == 1);
    }
  }
}

TEST_CASE("a volume's name that was taken at the API server only is waited for, too") {
  Bed bed;
  bed.transport.on("POST", "/persistentvolumes").reply(409, testing::kAlreadyExists);
  bed.transport.on("GET", std::string("/persistentvolumes/") + kVolume)
      .reply(200, testing::volume(kVolume).claim("default", "a", "uid-of-another").json().dump());
  (void)bed.step();
  bed.executor.succeed(Kind::kMake, kVolume);
  (void)bed.step();
  CHECK(bed.told("exists but is not the one for this claim") == 1);
  CHECK(bed.published() == 1);
  bed.api_shows_no_claim();
  (void)bed.step();
  CHECK(bed.published() == 1);
}

TEST_CASE("a claim on its way out gets no volume, and what was made for it is taken back") {
  Bed bed;
  bed.put(ClaimBuilder(bed.wanted).deleting());
  (void)bed.step();
  CHECK(bed.executor.started.empty());
  bed.put(bed.wanted);
  (void)bed.step();
  bed.executor.run(Kind::kMake, kVolume);
  bed.put(ClaimBuilder(bed.wanted).deleting());
  bed.clock.advance(std::chrono::minutes(1));
  (void)bed.step();
  REQUIRE(bed.figures.in_flight(9).size() == 1);
  CHECK(bed.figures.in_flight(9)[0].age == std::chrono::minutes(1));
  bed.executor.succeed(Kind::kMake, kVolume, operation::Directory::kMade);
  (void)bed.step();
  CHECK(bed.published() == 0);
  CHECK(bed.figures.in_flight(9).empty());
  CHECK(bed.executor.has(Kind::kMake, kVolume));
  bed.claims.erase({"default", "a"});
  bed.api_shows_no_claim();
  bed.transport.on("GET", std::string("/persistentvolumes/") + kVolume).reply(404);
  (void)bed.step();
  REQUIRE(bed.executor.started.size() == 2);
  CHECK(bed.executor.started.back().kind == Kind::kTakeBack);
  CHECK_FALSE(bed.executor.started.back().only_if_empty);
}

TEST_CASE("a claim of a shared filesystem, which has no node, is asked for after a removal") {
  Bed bed;
  config::Config shared;
  shared.paths.shared_file_system_path = "/shared";
  bed.use(std::move(shared));
  bed.put(testing::storage_class().binding_mode("Immediate"));
  const auto wanted = claim("a");
  bed.put(wanted);
  bed.executor.records.push_back({removal_of("", "/shared/pvc-uid-a_default_a"),
                                  {.state = operation::Progress::State::kRunning}});
  (void)bed.step();
  bed.executor.vanish(Kind::kRemove, kVolume);
  bed.api_shows_no_claim();
  (void)bed.step();
  CHECK(bed.executor.started.empty());
  bed.api_shows(wanted);
  (void)bed.step();
  CHECK(bed.executor.started.size() == 1);
}

TEST_CASE("a claim that has waited for nothing but its turn is not asked for") {
  Bed bed;
  bed.transport.on("POST", "/persistentvolumes").reply(201);
  bed.executor.is_full = true;
  for (int i = 0; i < 3; ++i) (void)bed.step();
  bed.executor.is_full = false;
  (void)bed.step();
  CHECK(bed.executor.started.size() == 1);
  bed.executor.succeed(Kind::kMake, kVolume);
  (void)bed.step();
  CHECK(bed.published() == 1);
  CHECK(bed.asked() == 0);
}

TEST_CASE("a claim that has waited is asked for once, when it has its directory and its turn") {
  Bed bed;
  bed.transport.on("POST", "/persistentvolumes").reply(201);
  bed.put_in_the_way();
  for (int i = 0; i < 3; ++i) (void)bed.step();
  CHECK(bed.asked() == 0);
  bed.clear_the_way();
  bed.executor.is_full = true;
  for (int i = 0; i < 3; ++i) (void)bed.step();
  CHECK(bed.asked() == 0);
  bed.executor.is_full = false;
  (void)bed.step();
  CHECK(bed.asked() == 1);
  CHECK(bed.executor.started.size() == 1);
  bed.executor.succeed(Kind::kMake, kVolume);
  (void)bed.step();
  CHECK(bed.published() == 1);
  CHECK(bed.asked() == 1);
}

TEST_CASE("a claim that has waited is asked for again when its make could not be begun") {
  Bed bed;
  bed.put_in_the_way();
  (void)bed.step();
  bed.clear_the_way();
  bed.executor.error = Error{ErrorCode::kForbidden, "no pods for you"};
  (void)bed.step();
  bed.executor.error.reset();
  bed.api_shows_no_claim();
  (void)bed.step();
  CHECK(bed.executor.started.empty());
  CHECK(bed.asked() == 2);
}

TEST_CASE("a claim that is gone as its volume is hears nothing of who has its directory now") {
  Bed bed;
  (void)bed.step();
  bed.executor.succeed(Kind::kMake, kVolume);
  bed.transport.on("POST", "/persistentvolumes").reply(201);
  (void)bed.step();
  const auto volume = testing::volume(kVolume).claim("default", "a").host_path(kDirectory);
  bed.volumes.put(volume.key(), volume.shared());
  (void)bed.step();
  bed.volumes.erase(volume.key());
  bed.put_in_the_way();
  bed.api_shows_no_claim();
  (void)bed.step();
  CHECK(bed.told("overlaps") == 0);
  bed.api_shows_it_again();
  (void)bed.step();
  CHECK(bed.told("overlaps") == 1);
}

TEST_CASE("a claim whose turn came, and that could not be asked for, waits for its turn anew") {
  Bed bed;
  bed.put_in_the_way();
  (void)bed.step();
  bed.clear_the_way();
  bed.executor.is_full = true;
  (void)bed.step();
  bed.executor.is_full = false;
  bed.claim_reads.reply(500);
  (void)bed.step();
  bed.clock.advance(std::chrono::hours(1));
  bed.executor.is_full = true;
  (void)bed.step();
  CHECK(bed.told("turn") == 0);
}

}  // namespace lpp::provisioner::claim_waited
