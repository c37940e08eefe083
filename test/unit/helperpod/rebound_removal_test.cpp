// SPDX-License-Identifier: Apache-2.0
// Helper pods that remove a volume which was bound to another claim since it was made: nobody knows
// any more which claim the records tell of.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "beside_records_scene.h"

namespace lpp::helperpod {
namespace rebound {
namespace {

using namespace beside_records;

Operation removal_of(const Base& scene, const std::string& way) {
  Operation removal = scene.removal(way);
  removal.claim_uid.clear();
  return removal;
}

TEST_CASE("of a volume that was bound to another claim nothing is left") {
  FOR_EACH_BASE(scene) {
    for (const char* way : {"v", "ns/claim/v"}) {
      CAPTURE(way);
      for (const bool has_begun : {false, true}) {
        CAPTURE(has_begun);
        scene.make(way);
        if (has_begun) fs::create_directory(scene.gone(way));  // and nothing was moved yet
        const Run run = scene.helper_pod(removal_of(scene, way));
        CHECK_MESSAGE(run.exit_code == 0, run.output);
        CHECK_FALSE(fs::exists(scene.base() / way));
        CHECK_FALSE(fs::exists(scene.base() / "ns"));
        CHECK_FALSE(fs::exists(scene.record(way)));
        CHECK_FALSE(fs::exists(scene.gone(way)));
      }
      // All was removed but what tells so.
      scene.make(way);
      fs::remove_all(scene.base() / way);
      fs::create_directory(scene.gone(way));
      CHECK(scene.helper_pod(removal_of(scene, way)).exit_code == 0);
      CHECK_FALSE(fs::exists(scene.record(way)));
      CHECK_FALSE(fs::exists(scene.gone(way)));
    }
  }
}

TEST_CASE("what may be another claim's is told and left, whatever stands in its place") {
  FOR_EACH_BASE(scene) {
    const fs::path place = scene.base() / "v";
    const auto is_told = [&] {
      const Run run = scene.helper_pod(removal_of(scene, "v"));
      return run.exit_code != 0 && run.output.find("gone.v") != std::string::npos;
    };
    scene.make("v");
    scene.begin_to_remove("v");
    CHECK(is_told());
    CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19"));

    fs::create_directory(place);
    std::ofstream(place / "data") << "x";
    CHECK(is_told());
    CHECK(fs::exists(scene.gone("v") / "volume" / "19" / "19"));
    CHECK(fs::exists(place / "data"));

    fs::rename(scene.gone("v") / "volume", scene.base() / "kept");  // its inode is nobody else's
    CHECK(is_told());
    CHECK(fs::exists(place / "data"));

    fs::remove_all(place);
    fs::rename(scene.base() / "kept", place);
    std::ofstream(scene.gone("v") / "data") << "x";
    CHECK(is_told());
    CHECK(fs::exists(scene.gone("v") / "data"));
    CHECK(fs::exists(place / "19" / "19"));
    CHECK(fs::exists(scene.record("v")));
  }
}

TEST_CASE("what an agent has taken away of a volume that was bound to another claim goes") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    scene.begin_to_remove("v", "");
    const Run run = scene.helper_pod(removal_of(scene, "v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.gone("v")));
    CHECK_FALSE(fs::exists(scene.record("v")));
  }
}

TEST_CASE("nothing goes whose record cannot be read") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    std::string text = testing::text_of(scene.record("v"));
    SUBCASE("it is cut") { text.resize(text.size() / 2); }
    SUBCASE("it is empty") { text.clear(); }
    SUBCASE("it tells of no claim") { text = "{}"; }
    std::ofstream(scene.record("v")) << text;
    for (const bool is_rebound : {false, true}) {
      const Run run = scene.helper_pod(is_rebound ? removal_of(scene, "v") : scene.removal("v"));
      CHECK(run.exit_code != 0);
      CHECK(run.output.find(scene.record("v").string()) != std::string::npos);
      CHECK(fs::exists(scene.base() / "v" / "19" / "19"));
    }
  }
}

TEST_CASE(
    "a subvolume that was bound to another claim goes, but not while anything is left of it") {
  FOR_EACH_BASE(scene) {
    scene.make("ns/v");
    fs::create_directory(scene.gone("ns/v"));
    const Run told = scene.helper_pod_on_btrfs(removal_of(scene, "ns/v"));
    CHECK(told.exit_code != 0);
    CHECK(told.output.find("gone.") != std::string::npos);
    CHECK(fs::exists(scene.base() / "ns" / "v" / "19" / "19"));
    fs::remove(scene.gone("ns/v"));
    const Run run = scene.helper_pod_on_btrfs(removal_of(scene, "ns/v"));
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    CHECK_FALSE(fs::exists(scene.base() / "ns"));
  }
}

TEST_CASE("a directory that the records do not tell of is removed, and they stay") {
  FOR_EACH_BASE(scene) {
    scene.make("v");
    fs::rename(scene.base() / "v", scene.base() / "kept");
    fs::create_directory(scene.base() / "v");
    CHECK(scene.helper_pod(removal_of(scene, "v")).exit_code == 0);
    CHECK_FALSE(fs::exists(scene.base() / "v"));
    CHECK(fs::exists(scene.record("v")));
    CHECK(fs::exists(scene.base() / "kept" / "19" / "19"));
  }
}

}  // namespace
}  // namespace rebound
}  // namespace lpp::helperpod
