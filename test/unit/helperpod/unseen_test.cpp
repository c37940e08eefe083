// SPDX-License-Identifier: Apache-2.0
// A disk that does not answer: what a script cannot look at is not taken for what is not there.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "beside_records_scene.h"

namespace lpp::helperpod {
namespace unseen_paths {
namespace {

using namespace beside_records;

/// Fails with the words of the disk.
void check_says_so(const Run& run) {
  CHECK(run.exit_code != 0);
  CHECK_MESSAGE(run.output.find("Input/output error") != std::string::npos, run.output);
}

TEST_CASE("nothing is removed where its record, its place or a begun removal cannot be seen") {
  for (const bool has_begun : {false, true}) {
    CAPTURE(has_begun);
    FOR_EACH_BASE(scene) {
      scene.make("v", "uid-2");
      if (has_begun) {
        scene.begin_to_remove("v", "uid-2");
        fs::create_directory(scene.base() / "v");
        std::ofstream(scene.base() / "v" / "data") << "x";
      }
      Operation removal = scene.removal("v");
      for (const char* uid : {"uid-1", "uid-2", ""}) {
        CAPTURE(uid);
        removal.claim_uid = uid;
        for (const fs::path& path : {scene.record("v"), scene.gone("v"), scene.base() / "v"}) {
          CAPTURE(path.string());
          scene.hide(path);
          check_says_so(scene.helper_pod(removal));
          CHECK(fs::exists(scene.base() / "v" / (has_begun ? "data" : "19/19")));
          CHECK(fs::exists(scene.gone("v") / "volume/19/19") == has_begun);
          CHECK(fs::exists(scene.record("v")));
        }
      }
    }
  }
}

TEST_CASE("nothing is done where whose disk it is cannot be seen") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    Operation operation = scene.removal("v");
    operation.disk.clear();
    scene.hide(scene.identity_file());
    check_says_so(scene.helper_pod(operation, true));
    CHECK(fs::exists(scene.base() / "v/19/19"));
    CHECK(fs::exists(scene.record("v")));
  }
}

TEST_CASE("nothing is made where a record, whose it is, or a begun removal cannot be seen") {
  FOR_EACH_BASE(scene) {
    scene.make("v", "uid-2");
    LPP_MUST(scene.volumes().identities("c-2"));
    Operation make = scene.making("v", "uid-1");
    make.disk.clear();
    const fs::path made = scene.base().parent_path() / "made";
    scene.own_setup("echo made > '" + made.string() + "'");
    const fs::path said = scene.base().parent_path() / "said";
    for (const fs::path& path : {scene.record("v"), scene.identity_file(), scene.gone("v")}) {
      CAPTURE(path.string());
      scene.hide(path);
      check_says_so(scene.set_up(make, "c-1", said));
      CHECK_FALSE(fs::exists(made));
    }
  }
}

TEST_CASE("a record with a limit stays where the directory that has it cannot be seen") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    LPP_MUST(scene.volumes().identities("c-1"));
    std::string text = testing::text_of(scene.record("v"));
    text.replace(text.find("\"project\":0"), 11, "\"project\":7");
    std::ofstream(scene.record("v")) << text;
    const Operation make = scene.making("v", "uid-2");
    scene.own_setup("true");
    scene.hide(scene.base() / "v");
    check_says_so(scene.set_up(make, "c-1", scene.base().parent_path() / "said"));
    CHECK(fs::exists(scene.record("v")));
  }
}

TEST_CASE("a directory that cannot be seen is not told to be absent when it is taken back") {
  for (const char* way : {"v", "ns/v"}) {
    for (const bool has_disk : {false, true}) {
      CAPTURE(way);
      CAPTURE(has_disk);
      FOR_EACH_BASE(scene) {
        scene.make(way);
        Operation undo = scene.removal(way);
        undo.kind = operation::Kind::kTakeBack;
        undo.only_if_empty = true;
        if (!has_disk) undo.disk.clear();
        scene.hide(way == std::string("v") ? "./v" : "./ns");
        check_says_so(scene.take_back(undo));
        CHECK_FALSE(fs::exists(scene.base().parent_path() / "said"));
        CHECK(fs::exists(scene.base() / way / "19/19"));
      }
    }
  }
}

TEST_CASE("the manifest's teardown does not take for gone what it cannot see") {
  FOR_EACH_SHELL(scripts) {
    for (const char* way : {"v", "ns/v"}) {
      CAPTURE(way);
      fs::create_directories(scripts.base() / way);
      std::ofstream(scripts.base() / way / "data") << "x";
      std::ofstream(scripts.message()).flush();
      const auto dir = scripts.base() / way;
      scripts.begin_teardown_with(unseen(way == std::string("v") ? "./v" : "./ns"));
      check_says_so(scripts.teardown(dir, scripts.way_to(dir)));
      CHECK(testing::text_of(scripts.message()).empty());
      CHECK(fs::exists(dir / "data"));
    }
  }
}

}  // namespace
}  // namespace unseen_paths
}  // namespace lpp::helperpod
