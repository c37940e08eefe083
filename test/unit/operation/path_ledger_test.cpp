// SPDX-License-Identifier: Apache-2.0
// Who holds which directory: operations on record, decisions, and the volumes that are there.

#include "operation/path_ledger.h"

#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace lpp::operation {
namespace {

Operation make(const std::string& volume, const std::string& node, const std::string& path) {
  Operation operation;
  operation.volume_name = volume;
  operation.owner_uid = "uid-" + volume;
  operation.node = node;
  operation.base_path = "/data";
  operation.path = path;
  return operation;
}

Operation shared(Operation operation) {
  operation.shared = true;
  return operation;
}

struct Cluster final : Surroundings {
  std::optional<Holder> volume_in_the_way(const Operation& operation) const override {
    if (operation.path != volume_path) return std::nullopt;
    return Holder{.volume_name = "live", .path = volume_path, .is_volume = true};
  }
  bool may_be_one_node(std::string_view a, std::string_view b) const override {
    return a == b || gone.contains(std::string(a)) || gone.contains(std::string(b));
  }
  std::string volume_path{};
  std::set<std::string> gone{};
};

struct Scene {
  Cluster cluster{};
  PathLedger ledger{cluster};

  bool takes(const Operation& operation) { return !ledger.take(operation); }
};

TEST_CASE("a directory that overlaps one being made or removed waits, on the nodes that see both") {
  struct Row {
    const char* what;
    Operation first;
    Operation second;
    bool waits;
  };
  const auto on = [](const char* node, const char* path) { return make("b", node, path); };
  const Operation first = make("a", "n1", "/data/x/y");
  for (const Row& row : std::vector<Row>{
           {"the same", first, on("n1", "/data/x/y"), true},
           {"inside", first, on("n1", "/data/x/y/z"), true},
           {"around", first, on("n1", "/data/x"), true},
           {"beside", first, on("n1", "/data/x/yz"), false},
           {"on another node", first, on("n2", "/data/x/y"), false},
           {"on a node that may be the same", first, on("away", "/data/x/y"), true},
           {"anywhere", first, on("", "/data/x/y"), true},
           {"shared, on another node", shared(first), shared(on("n2", "/data/x/y")), true},
           {"shared, beside", shared(first), shared(on("n2", "/data/x/z")), false},
       }) {
    for (const bool recorded : {false, true}) {
      CAPTURE(row.what);
      CAPTURE(recorded);
      Scene scene;
      scene.cluster.gone = {"away"};
      const auto item = std::make_shared<const Operation>(row.first);
      if (recorded) {
        scene.ledger.add(item);
      } else {
        REQUIRE(scene.takes(row.first));
      }
      const auto holder = scene.ledger.take(row.second);
      REQUIRE(holder.has_value() == row.waits);
      if (!row.waits) continue;
      CHECK(holder->volume_name == "a");
      CHECK(holder->path == "/data/x/y");
      CHECK_FALSE(holder->is_volume);
      if (recorded) {
        scene.ledger.remove(item);
      } else {
        scene.ledger.release(row.first);
      }
      CHECK(scene.takes(row.second));
    }
  }
}

TEST_CASE("operations of one volume are never in each other's way") {
  Scene scene;
  const Operation first = make("a", "n1", "/data/x");
  scene.ledger.add(std::make_shared<const Operation>(first));
  CHECK(scene.takes(first));
  Operation back = first;
  back.kind = Kind::kTakeBack;
  CHECK(scene.takes(back));
  CHECK(scene.ledger.decisions() == 2);
  CHECK_FALSE(scene.takes(make("b", "n1", "/data/x")));
}

TEST_CASE("a volume that is there is in the way, and nothing is decided") {
  Scene scene;
  scene.cluster.volume_path = "/data/x";
  const auto holder = scene.ledger.take(make("a", "n1", "/data/x"));
  REQUIRE(holder);
  CHECK(holder->is_volume);
  CHECK(holder->volume_name == "live");
  CHECK(scene.ledger.decisions() == 0);
  scene.cluster.volume_path.clear();
  CHECK(scene.takes(make("b", "n1", "/data/x")));
}

TEST_CASE("a decision is held once, however often it is made, until it is released") {
  Scene scene;
  const Operation mine = make("a", "n1", "/data/x");
  CHECK(scene.takes(mine));
  CHECK(scene.takes(mine));
  CHECK(scene.ledger.decisions() == 1);
  scene.ledger.release(make("b", "n1", "/data/x"));  // another's
  CHECK(scene.ledger.decisions() == 1);
  scene.ledger.release(mine);
  scene.ledger.release(mine);
  CHECK(scene.ledger.decisions() == 0);
  CHECK(scene.takes(make("b", "n1", "/data/x")));
}

TEST_CASE("an operation decided again for another place holds both until it is released") {
  Scene scene;
  CHECK(scene.takes(make("a", "n1", "/data/x")));
  CHECK(scene.takes(make("a", "n1", "/data/y")));
  CHECK(scene.takes(make("a", "n2", "/data/y")));
  CHECK_FALSE(scene.takes(make("b", "n1", "/data/x")));
  CHECK_FALSE(scene.takes(make("b", "n1", "/data/y")));
  CHECK_FALSE(scene.takes(make("b", "n2", "/data/y")));
  scene.ledger.release(make("a", "n1", "/data/y"));
  CHECK(scene.ledger.decisions() == 0);
}

TEST_CASE("all decisions for a volume are released together, records stay") {
  Scene scene;
  Operation again = make("a", "n1", "/data/x");
  const auto recorded = std::make_shared<const Operation>(make("a", "n1", "/data/r"));
  scene.ledger.add(recorded);
  CHECK(scene.takes(again));
  again.attempt = 2;
  CHECK(scene.takes(again));
  scene.ledger.release("nobody");
  scene.ledger.release("a");
  CHECK(scene.ledger.decisions() == 0);
  CHECK(scene.takes(make("b", "n1", "/data/x")));
  CHECK_FALSE(scene.takes(make("b", "n1", "/data/r")));
  scene.ledger.remove(recorded);
  scene.ledger.remove(recorded);
  CHECK(scene.takes(make("b", "n1", "/data/r")));
}

TEST_CASE("of those who decide for one directory at the same time one gets it") {
  for (int round = 0; round < 50; ++round) {
    Scene scene;
    std::atomic<int> got = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&scene, &got, i] {
          if (scene.takes(make("v" + std::to_string(i), "n1", "/data/x"))) ++got;
        });
      }
    }
    CHECK(got == 1);
  }
}

TEST_CASE("what is being made below a base path is known, each volume once") {
  Scene scene;
  const auto recorded = std::make_shared<const Operation>(make("a", "n1", "/data/a"));
  scene.ledger.add(recorded);
  Operation again = *recorded;
  again.attempt = 2;
  REQUIRE(scene.takes(again));
  REQUIRE(scene.takes(make("b", "n1", "/data/x/b")));
  REQUIRE(scene.takes(make("c", "n2", "/data/c")));
  Operation removal = make("d", "n1", "/data/d");
  removal.kind = Kind::kRemove;
  REQUIRE(scene.takes(removal));
  std::set<std::string> names;
  for (const auto& one : scene.ledger.makes_below("n1", "/data")) names.insert(one->volume_name);
  CHECK(names == std::set<std::string>{"a", "b"});
  CHECK(scene.ledger.makes_below("n1", "/data").size() == 2);
  CHECK(scene.ledger.makes_below("n1", "/dat").empty());
}

}  // namespace
}  // namespace lpp::operation
