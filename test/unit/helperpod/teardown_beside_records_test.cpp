// SPDX-License-Identifier: Apache-2.0
// Helper pods that remove what agents have made, and begun to remove: our script around the
// manifest's teardown, run by busybox and the machine's shell on what src/node has left.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <stop_token>

#include "harness/must.h"
#include "node/kernel.h"
#include "node/volumes.h"
#include "own_script.h"
#include "unit/app/script_scene.h"

namespace lpp::helperpod {
namespace {

namespace fs = std::filesystem;
using operation::Operation;
using testing::Run;

const std::string kTheirs = "what another claim has written";

/// A base path with the volume of claim "uid-1", and what removes it.
class Base : public testing::Scripts {
 public:
  explicit Base(const std::vector<std::string>& shell) : Scripts(shell), shell_(shell) {}

  Operation removal(const std::string& way) const {
    return {.kind = operation::Kind::kRemove,
            .volume_name = "pvc-1",
            .owner_uid = "uid-of-volume",
            .claim_uid = "uid-1",
            .node = "n1",
            .base_path = base(),
            .path = base() / way,
            .volume_mode = "Filesystem",
            .disk = LPP_MUST(volumes().identity())};
  }
  /// By an agent, with twenty folders of files.
  void make(const std::string& way, const std::string& uid = "uid-1") const {
    LPP_MUST(volumes().make({.id = node::id_of_path(way), .path = way, .uid = uid}));
    for (int folder = 0; folder < 20; ++folder) {
      const fs::path inside = base() / way / std::to_string(folder);
      fs::create_directory(inside);
      for (int file = 0; file < 20; ++file) std::ofstream(inside / std::to_string(file)) << "x";
    }
  }
  /// By an agent that ends right then.
  void begin_to_remove(const std::string& way) const {
    std::stop_source stop;
    node::RemoveRequest request{.id = node::id_of_path(way), .path = way, .uid = "uid-1"};
    request.stop = stop.get_token();
    request.may_begin = [&] {
      stop.request_stop();
      return true;
    };
    REQUIRE_FALSE(volumes().remove(request).ok());
    REQUIRE_FALSE(fs::exists(base() / way));
    REQUIRE(fs::exists(gone(way)));
  }
  fs::path gone(const std::string& way) const {
    return base() / node::kRecordFolder / ("gone." + node::id_of_path(way));
  }
  Run helper_pod(const Operation& operation, bool beside_agents = false) const {
    return run_own_script(operation, {.config_map = "c", .beside_agents = beside_agents}, shell_,
                          {{"/script/teardown", (base().parent_path() / "teardown").string()}});
  }
  node::Volumes volumes() const { return LPP_MUST(node::Volumes::open(kernel_, base(), {})); }

 private:
  const std::vector<std::string> shell_;
  mutable node::Kernel kernel_;
};

#define FOR_EACH_BASE(scene)                  \
  for (const auto& shell : testing::shells()) \
    for (bool once = true; once;)             \
      for (const Base scene(shell); once; once = false)

TEST_CASE("a helper pod removes what an agent has made") {
  FOR_EACH_BASE(scene) {
    for (const char* way : {"v", "ns/claim/v", "ns/a b"}) {
      CAPTURE(way);
      scene.make(way);
      const Run run = scene.helper_pod(scene.removal(way));
      CHECK_MESSAGE(run.exit_code == 0, run.output);
      CHECK_FALSE(fs::exists(scene.base() / way));
    }
  }
}

TEST_CASE("a helper pod ends a removal that an agent has begun") {
  FOR_EACH_BASE(scene) {
    for (const char* way : {"v", "ns/claim/v", "ns/a b"}) {
      CAPTURE(way);
      scene.make(way);
      scene.begin_to_remove(way);
      Operation removal = scene.removal(way);
      SUBCASE("of a volume that names its disk") {}
      SUBCASE("of any volume where there are agents") { removal.disk.clear(); }
      const Run run = scene.helper_pod(removal, removal.disk.empty());
      CHECK_MESSAGE(run.exit_code == 0, run.output);
      CHECK_FALSE(fs::exists(scene.gone(way)));
      // What an agent finds when it comes back is a record alone.
      const auto usage = LPP_MUST(scene.volumes().usage());
      const auto inventory = LPP_MUST(scene.volumes().inventory(usage, 10));
      REQUIRE(inventory.leftovers.size() == 1);
      CHECK(inventory.leftovers[0].lost);
      CHECK_FALSE(inventory.leftovers[0].has_data);
      CHECK(LPP_MUST(scene.volumes().remove(
                {.id = node::id_of_path(way), .removal = node::Removal::kIfEmpty})) ==
            node::Removed::kAbsent);
    }
  }
}

TEST_CASE("what stands in the place of a volume that is being removed is not touched") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v");
    fs::create_directory(scene.base() / "v");
    std::ofstream(scene.base() / "v" / "data") << kTheirs;
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.gone("v")));
    CHECK(testing::text_of(scene.base() / "v" / "data") == kTheirs);
  }
}

TEST_CASE("what stands in its place when a removal is run again is not touched either") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::rename(scene.base() / "v", scene.base() / "kept");  // its inode is nobody else's
    fs::create_directory(scene.gone("v"));                  // emptied, and killed before it went
    fs::create_directory(scene.base() / "v");
    std::ofstream(scene.base() / "v" / "data") << kTheirs;
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.gone("v")));
    CHECK(testing::text_of(scene.base() / "v" / "data") == kTheirs);
  }
}

TEST_CASE("what an agent has moved out of great depth goes with the rest") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v");
    fs::create_directories(scene.gone("v") / "deep.1" / "below");
    fs::create_directories(scene.gone("v") / "deep.2");
    std::ofstream(scene.gone("v") / "deep.1" / "below" / "file") << "x";
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.gone("v")));
  }
}

TEST_CASE("a directory that is another claim's by its record is not removed") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK(run.exit_code != 0);
    CHECK(run.output.find("Retain") != std::string::npos);
    CHECK(fs::exists(scene.base() / "v" / "19" / "19"));
    // One that was made in its place has no record.
    fs::rename(scene.base() / "v", scene.base() / "theirs");
    fs::create_directory(scene.base() / "v");
    CHECK(scene.helper_pod(scene.removal("v")).exit_code == 0);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
  }
}

TEST_CASE("what is left without a record is told and not taken for removed") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v");
    fs::remove(scene.base() / node::kRecordFolder / "volume.v.json");
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK(run.exit_code != 0);
    CHECK(run.output.find("gone.v") != std::string::npos);
    CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19"));
  }
}

TEST_CASE("what was another claim's and is being removed is not touched") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v");
    Operation removal = scene.removal("v");
    removal.claim_uid = "uid-2";
    const auto left = [&] {
      return std::distance(fs::recursive_directory_iterator(scene.gone("v")), {});
    };
    const auto before = left();
    const Run run = scene.helper_pod(removal);
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK(left() == before);
  }
}

TEST_CASE(
    "a folder that was made for a removal which has moved nothing yet goes with the directory") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::create_directory(scene.gone("v"));
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
  }
}

TEST_CASE("on another disk, or none, nothing is removed") {
  FOR_EACH_BASE(scene) {
    for (const char* way : {"v", "ns/claim/v"}) {
      CAPTURE(way);
      scene.make(way);
      Operation removal = scene.removal(way);
      const std::string mine = removal.disk;
      SUBCASE("another one") { removal.disk = "other"; }
      SUBCASE("the beginning of its name") { removal.disk = mine.substr(0, mine.size() - 1); }
      SUBCASE("none") { fs::rename(scene.base() / node::kRecordFolder, scene.base() / "away"); }
      const Run run = scene.helper_pod(removal);
      CHECK(run.exit_code != 0);
      CHECK(run.output.find(removal.disk) != std::string::npos);
      CHECK(fs::exists(scene.base() / way / "19" / "19"));
      if (fs::exists(scene.base() / "away")) {
        fs::rename(scene.base() / "away", scene.base() / node::kRecordFolder);
      }
    }
  }
}

}  // namespace
}  // namespace lpp::helperpod
