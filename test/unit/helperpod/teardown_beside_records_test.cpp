// SPDX-License-Identifier: Apache-2.0
// Helper pods that remove what agents have made, and begun to remove: our script around the
// manifest's teardown, run by busybox and the machine's shell on what src/node has left.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "beside_records_scene.h"

namespace lpp::helperpod {
namespace {

using namespace beside_records;

const std::string kTheirs = "what another claim has written";

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
      // Nothing of it is left, nor of the folders that a pattern has made.
      CHECK(LPP_MUST(scene.volumes().list()).volumes.empty());
      std::vector<std::string> left;
      for (const auto& entry : fs::directory_iterator(scene.base())) {
        left.push_back(entry.path().filename());
      }
      CHECK(left == std::vector<std::string>{std::string(node::kRecordFolder)});
    }
  }
}

TEST_CASE("of what is not surely the volume's alone nothing goes with its directory") {
  FOR_EACH_BASE(scene) {
    const auto record =
        scene.base() / node::kRecordFolder / ("volume." + node::id_of_path("ns/claim/v") + ".json");
    scene.make("ns/claim/v");
    REQUIRE(fs::exists(record));
    bool stays = true;
    SUBCASE("a limit that only an agent can lift") {
      std::string text = testing::text_of(record);
      text.replace(text.find("\"project\":0"), 11, "\"project\":7");
      std::ofstream(record) << text;
    }
    SUBCASE("a record of nobody knows which claim") {
      std::string text = testing::text_of(record);
      text.replace(text.find("uid-1"), 5, "");
      std::ofstream(record) << text;
    }
    SUBCASE("a neighbour below the same folder") {
      fs::create_directory(scene.base() / "ns" / "other");
      stays = false;
    }
    SUBCASE("a folder that is a link by now") {
      fs::create_directory(scene.base() / "elsewhere");
      fs::remove_all(scene.base() / "ns" / "claim");
      fs::create_directory(scene.base() / "elsewhere" / "empty");
      fs::remove(scene.base() / "ns");
      fs::create_directory_symlink("elsewhere", scene.base() / "ns");
      fs::create_directory(scene.base() / "elsewhere" / "claim");
      (void)scene.helper_pod(scene.removal("ns/claim/v"));
      CHECK(fs::exists(scene.base() / "elsewhere" / "claim"));
      return;
    }
    const Run run = scene.helper_pod(scene.removal("ns/claim/v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.base() / "ns" / "claim"));
    CHECK(fs::exists(record) == stays);
    CHECK(fs::exists(scene.base() / "ns") == !stays);
  }
}

TEST_CASE("a helper pod makes no claim's what another cluster has on record") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    LPP_MUST(scene.volumes().identities("c-1"));
    Operation make = scene.making("v", "uid-1");
    std::string cluster = "c-2";
    bool refused = true;
    SUBCASE("of another cluster") {}
    SUBCASE("of a cluster that begins like it") { cluster = "c-"; }
    SUBCASE("nobody knows which cluster this is") { cluster.clear(); }
    SUBCASE("of this cluster") {
      cluster = "c-1";
      refused = false;
    }
    SUBCASE("of the claim itself") {
      make.owner_uid = "uid-2";
      refused = false;
    }
    const auto said = scene.base().parent_path() / "said";
    std::ofstream(scene.base().parent_path() / "setup") << "echo made > '" + said.string() + "'";
    const Run run = scene.set_up(make, cluster, said);
    CHECK(testing::text_of(said).find(refused ? "directory: absent" : "made") != std::string::npos);
    CHECK((run.exit_code != 0) == refused);
    CHECK((run.output.find("adopt it") != std::string::npos) == refused);
  }
}

TEST_CASE("a helper pod makes nothing on another disk than volumes there name") {
  FOR_EACH_BASE(scene) {
    Operation make = scene.making("ns/v");
    bool refused = true;
    SUBCASE("another one is there") {
      scene.make("other");
      LPP_MUST(scene.volumes().identity());
      make.disk = "disk-1";
    }
    SUBCASE("none is there") { make.disk = "disk-1"; }
    SUBCASE("it is there") {
      scene.make("other");
      make.disk = LPP_MUST(scene.volumes().identity());
      refused = false;
    }
    SUBCASE("it is there, and volumes name another one as well") {
      scene.make("other");
      make.disk = "disk-1 " + LPP_MUST(scene.volumes().identity());
      refused = false;
    }
    SUBCASE("nobody knows which it is") {
      make.disk.clear();
      refused = false;
    }
    const auto said = scene.base().parent_path() / "said";
    std::ofstream(scene.base().parent_path() / "setup") << "echo made > '" + said.string() + "'";
    const Run run = scene.set_up(make, "c-1", said);
    CHECK(run.exit_code == (refused ? kUnfitExitCode : 0));
    CHECK(testing::text_of(said).find(refused ? "directory: absent" : "made") != std::string::npos);
    CHECK((run.output.find("on disk disk-1") != std::string::npos) == refused);
    CHECK(fs::exists(scene.base() / "ns") == !refused);
  }
}

TEST_CASE("a helper pod takes nothing back from another disk than it was made on") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::remove_all(scene.base() / "v");
    fs::create_directory(scene.base() / "v");
    Operation undo = scene.removal("v");
    undo.kind = operation::Kind::kTakeBack;
    undo.only_if_empty = true;
    bool gone = true;
    SUBCASE("an empty one, and its disk is there") {}
    SUBCASE("an empty one, and another disk is there") {
      undo.disk = "disk-1";
      gone = false;
    }
    SUBCASE("one that may have been made on any of several, and one of them is there") {
      undo.disk = "disk-1 " + undo.disk;
    }
    SUBCASE("one that was made, and its disk is there") { undo.only_if_empty = false; }
    SUBCASE("one that was made, and another disk is there") {
      undo.only_if_empty = false;
      undo.disk = "disk-1";
      gone = false;
    }
    const Run run = scene.take_back(undo);
    CHECK_MESSAGE((run.exit_code == 0) == gone, run.output);
    CHECK(fs::exists(scene.base() / "v") != gone);
    CHECK((run.output.find("on disk disk-1") != std::string::npos) != gone);
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

TEST_CASE(
    "what an agent was emptying in its place goes with what it has moved out of great depth") {
  for (const bool in_its_place : {true, false}) {
    CAPTURE(in_its_place);
    FOR_EACH_BASE(scene) {
      scene.make("ns/v");
      fs::create_directories(scene.gone("ns/v") / "deep.1" / "below");
      if (in_its_place) {
        std::string text = testing::text_of(scene.record("ns/v"));
        const std::string state = R"("state":"present")";
        REQUIRE(text.find(state) != std::string::npos);
        text.replace(text.find(state), state.size(), R"("state":"removing")");
        std::ofstream(scene.record("ns/v")) << text;
      }
      const Run run = scene.helper_pod(scene.removal("ns/v"));
      CHECK_MESSAGE(run.exit_code == 0, run.output);
      CHECK_FALSE(fs::exists(scene.gone("ns/v")));
      // Else it has left its place, and another one got its number.
      CHECK(fs::exists(scene.base() / "ns/v/19/19") != in_its_place);
      CHECK(fs::exists(scene.record("ns/v")) != in_its_place);
    }
  }
}

TEST_CASE("a directory that is another claim's by its record is not removed") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK(run.exit_code != 0);
    CHECK(run.output.find("Retain") != std::string::npos);
    CHECK(fs::exists(scene.base() / "v" / "19" / "19"));
    // Another one in its place may be its data, put back from a backup.
    fs::rename(scene.base() / "v", scene.base() / "theirs");
    fs::create_directory(scene.base() / "v");
    std::ofstream(scene.base() / "v" / "data") << "x";
    const Run other = scene.helper_pod(scene.removal("v"));
    CHECK(other.exit_code != 0);
    CHECK(other.output.find(scene.record("v").string()) != std::string::npos);
    CHECK(fs::exists(scene.base() / "v" / "data"));
    // By hand, as it says.
    fs::remove(scene.record("v"));
    CHECK(scene.helper_pod(scene.removal("v")).exit_code == 0);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
  }
}

TEST_CASE(
    "of a subvolume, whose number no script sees, the record's claim alone tells whose it is") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    const Run refused = scene.helper_pod_on_btrfs(scene.removal("v"));
    CHECK(refused.exit_code != 0);
    CHECK(refused.output.find("Retain") != std::string::npos);
    CHECK(fs::exists(scene.base() / "v" / "19" / "19"));
    Operation removal = scene.removal("v");
    removal.claim_uid = "uid-2";
    const Run run = scene.helper_pod_on_btrfs(removal);
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
    CHECK_FALSE(fs::exists(scene.record("v")));
  }
}

TEST_CASE("a subvolume goes that was about to leave its place for its removal") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::create_directory(scene.gone("v"));
    const Run run = scene.helper_pod_on_btrfs(scene.removal("v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
    CHECK_FALSE(fs::exists(scene.gone("v")));
    CHECK_FALSE(fs::exists(scene.record("v")));
    // Of one that has left it what stands there by now is somebody else's.
    scene.make("v");
    scene.begin_to_remove("v");
    fs::create_directory(scene.base() / "v");
    std::ofstream(scene.base() / "v" / "data") << kTheirs;
    CHECK(scene.helper_pod_on_btrfs(scene.removal("v")).exit_code == 0);
    CHECK_FALSE(fs::exists(scene.gone("v")));
    CHECK(testing::text_of(scene.base() / "v" / "data") == kTheirs);
  }
}

TEST_CASE("what is left without a record is told and not taken for removed") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v");
    fs::remove(scene.base() / node::kRecordFolder / "volume.v.json");
    for (const bool something_stands_there : {false, true}) {
      CAPTURE(something_stands_there);
      if (something_stands_there) {
        fs::create_directory(scene.base() / "v");
        std::ofstream(scene.base() / "v" / "data") << kTheirs;
      }
      const Run run = scene.helper_pod(scene.removal("v"));
      CHECK(run.exit_code != 0);
      CHECK(run.output.find("gone.v") != std::string::npos);
      CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19"));
      CHECK(fs::exists(scene.base() / "v") == something_stands_there);
    }
    CHECK(testing::text_of(scene.base() / "v" / "data") == kTheirs);
  }
}

TEST_CASE("what a removal without a record has left empty goes with the directory in its place") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::create_directory(scene.gone("v"));
    fs::remove(scene.base() / node::kRecordFolder / "volume.v.json");
    CHECK(scene.helper_pod(scene.removal("v")).exit_code == 0);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
    CHECK_FALSE(fs::exists(scene.gone("v")));
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
    CHECK(run.exit_code != 0);
    CHECK(run.output.find("Retain") != std::string::npos);
    CHECK(left() == before);
  }
}

TEST_CASE("what was another claim's and is being removed is told with what a person can do") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v");
    fs::create_directory(scene.base() / "v");
    std::ofstream(scene.base() / "v" / "data") << "x";
    Operation removal = scene.removal("v");
    removal.claim_uid = "uid-2";
    const Run run = scene.helper_pod(removal);
    CHECK(run.exit_code != 0);
    CHECK(run.output.find(scene.gone("v")) != std::string::npos);
    CHECK(run.output.find(scene.record("v")) != std::string::npos);
    CHECK(fs::exists(scene.base() / "v" / "data"));
    CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19"));
    fs::remove_all(scene.gone("v"));
    fs::remove(scene.record("v"));
    CHECK(scene.helper_pod(removal).exit_code == 0);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
  }
}

TEST_CASE("nobody is told to remove the record of a directory that has not left its place") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    fs::create_directory(scene.gone("v"));
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK(run.exit_code != 0);
    CHECK(run.output.find("by hand") == std::string::npos);
    CHECK(fs::exists(scene.base() / "v" / "19" / "19"));
  }
}

TEST_CASE("a removal that an agent has begun of what a script made ends for its claim only") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::remove(scene.record("v"));
    scene.begin_to_remove("v");
    fs::create_directory(scene.base() / "v");
    std::ofstream(scene.base() / "v" / "data") << "x";
    Operation next = scene.removal("v");
    next.claim_uid = "uid-2";
    CHECK(scene.helper_pod(next).exit_code != 0);
    CHECK(fs::exists(scene.base() / "v" / "data"));
    CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19"));
    fs::remove_all(scene.base() / "v");
    const Run run = scene.helper_pod(scene.removal("v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.gone("v")));
    CHECK_FALSE(fs::exists(scene.record("v")));
  }
}

TEST_CASE("what is left with a record of no claim goes unless something else stands in the place") {
  FOR_EACH_BASE(scene) {
    for (const char* uid : {"uid-1", "uid-2", ""}) {
      CAPTURE(uid);
      scene.make("v");
      scene.begin_to_remove("v");
      std::string text = testing::text_of(scene.record("v"));
      text.replace(text.find("uid-1"), 5, "");
      std::ofstream(scene.record("v")) << text;
      Operation removal = scene.removal("v");
      removal.claim_uid = uid;
      fs::create_directory(scene.base() / "v");
      std::ofstream(scene.base() / "v" / "data") << kTheirs;
      for (const bool has_data : {true, false}) {
        if (!has_data) fs::rename(scene.gone("v") / "volume", scene.base() / "away");
        const Run run = scene.helper_pod(removal);
        CHECK(run.exit_code != 0);
        CHECK(run.output.find(scene.gone("v")) != std::string::npos);
        CHECK(run.output.find(scene.record("v")) != std::string::npos);
        CHECK(testing::text_of(scene.base() / "v" / "data") == kTheirs);
        CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19") == has_data);
      }
      fs::rename(scene.base() / "away", scene.gone("v") / "volume");
      fs::remove_all(scene.base() / "v");
      const Run run = scene.helper_pod(removal);
      CHECK_MESSAGE(run.exit_code == 0, run.output);
      CHECK_FALSE(fs::exists(scene.gone("v")));
    }
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
