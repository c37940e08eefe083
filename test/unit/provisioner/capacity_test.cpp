// SPDX-License-Identifier: Apache-2.0
// What the scheduler is told of free space: the computation, a row a test.

#include "provisioner/capacity.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/builders.h"

namespace lpp::provisioner {
namespace {

using testing::NodeBuilder;
using testing::StorageClassBuilder;

constexpr const char* kTold = "local-path.example.org";

StorageClassBuilder fast() { return StorageClassBuilder("fast").provisioner(kTold); }

/// Nodes n1 with /data, n2 with /data and /ssd; all are told 1000 bytes, of which 600 are free.
struct CapacityTable {
  CapacityScene scene;
  config::Config config;

  CapacityTable() {
    scene.provisioner = kTold;
    put(fast());
    put(NodeBuilder("n1"));
    put(NodeBuilder("n2"));
    config.paths.node_path_map["n1"] = {"/data"};
    config.paths.node_path_map["n2"] = {"/data", "/ssd"};
    for (const CapacityScene::Place& place :
         {CapacityScene::Place{"n1", "/data"}, {"n2", "/data"}, {"n2", "/ssd"}}) {
      scene.rooms[place] = {.space = {.size = 1000, .free = 600}};
    }
  }
  void put(const StorageClassBuilder& one) { scene.classes.push_back(one.shared()); }
  void put(const NodeBuilder& one) { scene.nodes.push_back(one.shared()); }
  std::vector<Capacity> all() {
    scene.config = std::make_shared<const config::Config>(config);
    return wanted_capacities(scene);
  }
  /// "fast n1 600, fast n2 600"; "?" where nothing is known.
  std::string wanted() {
    std::string text;
    for (const Capacity& one : all()) {
      text += (text.empty() ? "" : ", ") + one.storage_class + " " + one.hostname + " " +
              (one.known ? std::to_string(one.bytes) : "?");
    }
    return text;
  }
};

TEST_CASE("each node has what its best path can take") {
  CapacityTable table;
  CHECK(table.wanted() == "fast n1 600, fast n2 600");
  table.scene.rooms[{"n2", "/ssd"}].space.free = 900;
  CHECK(table.wanted() == "fast n1 600, fast n2 900");
  SUBCASE("a path whose disk is missing has none, whatever is told of it, or nothing") {
    table.scene.unfit = {{"n2", "/ssd"}, {"n1", "/data"}};
    table.scene.rooms.erase({"n1", "/data"});
    CHECK(table.wanted() == "fast n1 0, fast n2 600");
    table.scene.rooms.erase({"n2", "/data"});
    CHECK(table.wanted() == "fast n1 0, fast n2 ?");
  }
  SUBCASE("only the path that the class names counts") {
    table.scene.classes = {fast().parameter("nodePath", "/data").shared()};
    CHECK(table.wanted() == "fast n1 600, fast n2 600");
  }
  SUBCASE("a node without that path has none") {
    table.scene.classes = {fast().parameter("nodePath", "/ssd").shared()};
    CHECK(table.wanted() == "fast n2 900");
  }
  SUBCASE("nor has one without paths, or one that the configuration does not have") {
    table.config.paths.node_path_map["n1"] = {};
    table.put(NodeBuilder("n3"));
    CHECK(table.wanted() == "fast n2 900");
  }
  SUBCASE("classes of other names have nothing, and each class has its own configuration") {
    table.put(StorageClassBuilder("plain"));
    table.put(StorageClassBuilder("slow").provisioner(kTold));
    table.config.classes["slow"].node_path_map["n2"] = {"/data"};
    CHECK(table.wanted() == "fast n1 600, fast n2 900, slow n2 600");
  }
}

TEST_CASE("a node is named by its label, which need not be its name") {
  CapacityTable table;
  table.scene.nodes = {NodeBuilder("n1").label("kubernetes.io/hostname", "host-1").shared()};
  CHECK(table.wanted() == "fast host-1 600");
  table.scene.nodes = {NodeBuilder("n1").label("kubernetes.io/hostname", "").shared()};
  CHECK(table.wanted().empty());
}

TEST_CASE("a path of which nothing is known makes its node worth a try") {
  CapacityTable table;
  table.scene.rooms.erase({"n2", "/ssd"});
  CHECK(table.wanted() == "fast n1 600, fast n2 ?");
  CHECK(table.all()[1].bytes == kUnknownRoom);
}

TEST_CASE("what is wrong with a class is not a matter of space") {
  CapacityTable table;
  SUBCASE("a parameter") { table.scene.classes = {fast().parameter("quota", "soft").shared()}; }
  SUBCASE("no paths") { table.config.paths.node_path_map.clear(); }
  SUBCASE("a shared filesystem") { table.config.paths.shared_file_system_path = "/nfs"; }
  CHECK(table.wanted() == "fast  ?");  // everywhere, and the Event says the rest
}

TEST_CASE("without a name, or before there is a configuration, nothing is wanted") {
  CapacityTable table;
  table.scene.provisioner.clear();
  CHECK(table.wanted().empty());
  CHECK(wanted_capacities({.provisioner = kTold, .classes = {fast().shared()}}).empty());
}

TEST_CASE("reserve is always taken off, promises only without overcommit") {
  struct Row {
    std::string reserve;
    std::string overcommit;
    std::int64_t free;
    std::int64_t promised;
    std::int64_t room;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"", "", 600, 900, 600},
           {"", "true", 600, 900, 600},
           {"", "false", 600, 900, 100},
           {"", "false", 600, 100, 600},  // what is used counts, promised or not
           {"", "false", 600, 5000, 0},
           {"10%", "", 600, 900, 500},
           {"10%", "false", 600, 850, 50},
           {"10%", "false", 600, 950, 0},
           {"700", "", 600, 0, 0},
           {"99%", "false", 1000, INT64_MAX, 0},
       }) {
    CAPTURE(row.reserve);
    CAPTURE(row.overcommit);
    CAPTURE(row.promised);
    auto builder = fast();
    if (!row.reserve.empty()) builder.parameter("reserve", row.reserve);
    if (!row.overcommit.empty()) builder.parameter("overcommit", row.overcommit);
    const PathRoom room{.space = {.size = 1000, .free = row.free}, .promised = row.promised};
    CHECK(room_for(builder.build(), room) == row.room);
  }
}

TEST_CASE("what the node tells of its promises goes before the sum of the sizes") {
  const auto room = [](const std::string& overcommit, const std::string& reserve,
                       operation::Promises promises) {
    const auto storage_class =
        fast().parameter("overcommit", overcommit).parameter("reserve", reserve).build();
    // 400 are used; all sizes together would be 900.
    return room_for(storage_class,
                    {.space = {.size = 1000, .free = 600}, .promised = 900, .promises = promises});
  };
  for (const char* reserve : {"0%", "10%"}) {
    const std::int64_t kept = reserve == std::string("0%") ? 0 : 100;
    CHECK(room("true", reserve, {.unused = 500}) == 600 - kept);
    // Volumes use all of the 400, then 100 of it, then nothing: the rest is others'.
    CHECK(room("false", reserve, {.unused = 300, .used = 400}) == 300 - kept);
    CHECK(room("false", reserve, {.unused = 450, .used = 100}) == 150 - kept);
    CHECK(room("false", reserve, {.unused = 900}) == 0);
    // What volumes without limits use is part of what others use.
    CHECK(room("false", reserve, {.unused = 200, .used = 100, .unlimited = 300}) == 400 - kept);
    CHECK(room("false", reserve, {.unused = 200, .used = 100, .unlimited = 350}) == 350 - kept);
    CHECK(room("false", reserve, {}) == 600 - kept);
  }
}

TEST_CASE("a change below one percent is not worth a write") {
  for (const auto& row : std::initializer_list<std::tuple<std::int64_t, std::int64_t, bool>>{
           {1000, 1000, false},
           {1000, 991, false},
           {1000, 1009, false},
           {1000, 990, true},
           {1000, 1010, true},
           {0, 0, false},
           {0, 1, true},
           {50, 0, true},
           {kUnknownRoom, 1, true},
           {1, kUnknownRoom, true}}) {
    CAPTURE(std::get<0>(row));
    CAPTURE(std::get<1>(row));
    const auto& [before, after, worth] = row;
    CHECK(is_worth_writing(before, after) == worth);
  }
}

TEST_CASE("the objects are those that the scheduler looks for") {
  const Capacity one{.storage_class = "fast", .hostname = "n1", .bytes = 600};
  const auto object = capacity_object(one, kTold, "storage");
  CHECK(object["metadata"]["namespace"] == "storage");
  CHECK(object["metadata"]["name"] == one.object_name(kTold));
  CHECK(object["metadata"]["labels"] ==
        nlohmann::json{{"local.path.provisioner/capacity-of", kTold}});
  CHECK(object["storageClassName"] == "fast");
  CHECK(object["nodeTopology"]["matchLabels"]["kubernetes.io/hostname"] == "n1");
  CHECK(object["capacity"] == "600");
  CHECK(object["maximumVolumeSize"] == "600");
  CHECK(capacity_patch(kUnknownRoom)["capacity"] == "1Ei");
  CHECK(capacity_patch(5 << 20)["maximumVolumeSize"] == "5Mi");
  CHECK(capacity_patch(0)["capacity"] == "0");
  CHECK(capacity_patch(1536)["capacity"] == "1536");
  // Every node, which a selector that is missing would not be.
  const auto anywhere = capacity_object({.storage_class = "fast"}, kTold, "storage");
  CHECK(anywhere["nodeTopology"] == nlohmann::json::object());

  const auto driver = driver_object(kTold);
  CHECK(driver["metadata"]["name"] == kTold);
  CHECK(driver["spec"]["storageCapacity"] == true);
  CHECK(driver["spec"]["attachRequired"] == false);
  CHECK_FALSE(driver["spec"].contains("preventPodSchedulingIfMissing"));
}

TEST_CASE("an object's name is that of its node, class and provisioner, and of no other") {
  const Capacity one{.storage_class = "fast", .hostname = "n1", .bytes = 600};
  CHECK(one.object_name(kTold) == Capacity(one).object_name(kTold));
  CHECK(one.object_name(kTold) != one.object_name("other"));
  CHECK(one.object_name(kTold) != Capacity{.storage_class = "fast"}.object_name(kTold));
  CHECK(one.object_name(kTold) !=
        Capacity{.storage_class = "slow", .hostname = "n1"}.object_name(kTold));
}

TEST_CASE("what was told once does not count for ever, and what is confirmed does") {
  operation::SpaceBoard board;
  FreshSpace fresh;
  TimePoint now{std::chrono::hours(1)};
  const CapacityScene::Place n1{"n1", "/data"};
  const CapacityScene::Place n2{"n2", "/data"};
  board.note("n1", "/data", {.size = 10, .free = 1});
  board.note("n2", "/data", {.size = 10, .free = 2});
  CHECK(fresh.look(board, now).size() == 2);
  now += kToldCounts - std::chrono::seconds(1);
  CHECK(fresh.look(board, now).at(n1).free == 1);
  board.confirm("n1");
  now += std::chrono::seconds(1);
  auto seen = fresh.look(board, now);
  CHECK(seen.contains(n1));
  CHECK_FALSE(seen.contains(n2));
  // The same value, told again, is news.
  board.note("n2", "/data", {.size = 10, .free = 2});
  CHECK(fresh.look(board, now).at(n2).free == 2);
  board.forget("n1");
  CHECK_FALSE(fresh.look(board, now).contains(n1));
}

}  // namespace
}  // namespace lpp::provisioner
