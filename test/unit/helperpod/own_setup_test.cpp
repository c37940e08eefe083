// SPDX-License-Identifier: Apache-2.0
// What a setup of somebody's own finds where ours looks at the disk before it.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "beside_records_scene.h"

namespace lpp::helperpod {
namespace own_setup {
namespace {

using namespace beside_records;  // NOLINT(google-build-using-namespace)

Operation make_of(const Base& scene, const std::string& way) {
  scene.make("other");
  Operation make = scene.removal(way);
  make.kind = operation::Kind::kMake;
  return make;
}

TEST_CASE("a setup that makes its directory only finds the folders of a path pattern") {
  FOR_EACH_BASE(scene) {
    scene.own_setup("mkdir \"$VOL_DIR\"");
    const auto said = scene.base().parent_path() / "said";
    for (const char* way : {"v", "ns/claim/v", "ns/a b/v", "other/deep/er/v"}) {
      CAPTURE(way);
      Operation make = make_of(scene, way);
      const std::string right = std::exchange(make.disk, "disk-1");
      CHECK(scene.set_up(make, "c-1", said).exit_code == kUnfitExitCode);
      const bool has_its_own = std::string_view(way) != "v";
      CHECK((has_its_own && fs::exists((scene.base() / way).parent_path())) == false);
      make.disk = "disk-1 " + right;
      const Run run = scene.set_up(make, "c-1", said);
      CHECK_MESSAGE(run.exit_code == 0, run.output);
      REQUIRE(fs::is_directory(scene.base() / way));
      const auto mode = fs::status((scene.base() / way).parent_path()).permissions();
      CHECK((mode & fs::perms(022)) == fs::perms::none);
    }
  }
}

TEST_CASE("no folder of a path pattern is made through a link") {
  FOR_EACH_BASE(scene) {
    const Operation make = make_of(scene, "ns/claim/v");
    fs::create_directory(scene.base() / "elsewhere");
    fs::create_directory_symlink("elsewhere", scene.base() / "ns");
    scene.own_setup("echo its own word");
    const Run run = scene.set_up(make, "c-1", scene.base().parent_path() / "said");
    CHECK(run.output == "its own word\n");
    CHECK(fs::is_empty(scene.base() / "elsewhere"));
  }
}

TEST_CASE("that nothing was made is said where the template wants it said") {
  FOR_EACH_BASE(scene) {
    Operation make = make_of(scene, "v");
    make.disk = "disk-1";
    scene.own_setup("true");
    const fs::path said = scene.base().parent_path() / "said $HOME";
    const std::string from_template =
        "spec: {containers: [{terminationMessagePath: '" + said.string() + "'}]}";
    const Run run = scene.set_up(make, "c-1", "/nowhere/said", from_template.c_str());
    CHECK(run.exit_code == kUnfitExitCode);
    CHECK(testing::text_of(said).ends_with("\ndirectory: absent\n"));
  }
}

}  // namespace
}  // namespace own_setup
}  // namespace lpp::helperpod
