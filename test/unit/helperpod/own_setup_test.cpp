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

using namespace beside_records;

Operation make_of(const Base& scene, const std::string& way) {
  scene.make("other");
  return scene.making(way);
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

/// By a path pattern: the claim was made again, and its agent is not there.
Operation make_again(const Base& scene) {
  scene.make("ns/v", "uid-1");
  LPP_MUST(scene.volumes().identities("c-1"));
  return scene.making("ns/v", "uid-2");
}

void replace_in(const fs::path& file, std::string_view what, std::string_view with) {
  std::string text = testing::text_of(file);
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  std::ofstream(file) << text.replace(at, what.size(), with);
}

/// By script.
void check_goes(const Base& scene) {
  Operation removal = scene.removal("ns/v");
  removal.claim_uid = "uid-2";
  const Run removed = scene.helper_pod(removal);
  CHECK_MESSAGE(removed.exit_code == 0, removed.output);
}

void check_is_the_claims(const Base& scene, bool has_cluster, bool by_agent) {
  const Operation make = make_again(scene);
  if (!has_cluster) replace_in(scene.identity_file(), "\"cluster\"", "\"former\"");
  const Run run = scene.set_up(make, "c-1", scene.base().parent_path() / "said");
  CHECK_MESSAGE(run.exit_code == 0, run.output);
  CHECK(fs::exists(scene.base() / "ns/v/0/0"));
  const auto volumes = scene.volumes();
  const std::string id = node::id_of_path("ns/v");
  const auto grown = volumes.resize({.id = id, .uid = "uid-2", .size = 2000});
  CHECK(grown.error().is(ErrorCode::kNotFound));
  if (by_agent) {
    CHECK(volumes.remove({.id = id, .path = "ns/v", .uid = "uid-2"}).ok());
  } else {
    check_goes(scene);
  }
  CHECK_FALSE(fs::exists(scene.base() / "ns/v"));
}

TEST_CASE("what a setup finds of a former claim is the claim's, and grows and goes with it") {
  for (const bool has_cluster : {true, false}) {
    for (const bool by_agent : {true, false}) {
      CAPTURE(has_cluster);
      CAPTURE(by_agent);
      FOR_EACH_BASE(scene) { check_is_the_claims(scene, has_cluster, by_agent); }
    }
  }
}

TEST_CASE("a limit on record holds nothing of what a setup makes anew") {
  FOR_EACH_BASE(scene) {
    const Operation make = make_again(scene);
    replace_in(scene.record("ns/v"), "\"project\":0", "\"project\":7");
    fs::remove_all(scene.base() / "ns/v");
    const Run run = scene.set_up(make, "c-1", scene.base().parent_path() / "said");
    CHECK_MESSAGE(run.exit_code == 0, run.output);
    REQUIRE(fs::exists(scene.base() / "ns/v"));
    check_goes(scene);
    CHECK_FALSE(fs::exists(scene.base() / "ns/v"));
  }
}

TEST_CASE("a setup leaves a former claim's record where that may be needed") {
  FOR_EACH_BASE(scene) {
    Operation make = make_again(scene);
    const auto record = scene.record("ns/v");
    std::string uid = "uid-1";
    int code = 0;
    SUBCASE("the setup fails") {
      scene.own_setup("exit 3");
      code = 3;
    }
    SUBCASE("a limit that only an agent can lift") {
      replace_in(record, "\"project\":0", "\"project\":7");
    }
    SUBCASE("it tells where the rest of a removal was") {
      fs::create_directories(scene.gone("ns/v") / "volume");
      code = 1;
    }
    SUBCASE("our own program in the setup has noted the claim") {
      uid = "uid-2";
      scene.own_setup("sed -i s/uid-1/uid-2/ '" + record.string() + "'");
    }
    SUBCASE("whose disk it is cannot be seen") {
      fs::remove(scene.identity_file());
      make.disk.clear();
    }
    SUBCASE("it cannot be read") {
      uid = "nonsense";
      std::ofstream(record) << "nonsense";
    }
    const Run run = scene.set_up(make, "c-1", scene.base().parent_path() / "said");
    CHECK_MESSAGE(run.exit_code == code, run.output);
    CHECK(testing::text_of(record).find(uid) != std::string::npos);
  }
}

TEST_CASE("nothing is made where a removal has not ended") {
  for (const bool has_record : {true, false}) {
    for (const bool has_data : {true, false}) {
      CAPTURE(has_record);
      CAPTURE(has_data);
      FOR_EACH_BASE(scene) {
        const Operation make = make_again(scene);
        scene.begin_to_remove("ns/v");
        if (!has_record) fs::remove(scene.record("ns/v"));
        if (!has_data) fs::remove_all(scene.gone("ns/v") / "volume");
        scene.own_setup("mkdir -p \"$VOL_DIR\"");
        const fs::path said = scene.base().parent_path() / "said";
        const Run run = scene.set_up(make, "c-1", said);
        CHECK(run.exit_code == 1);
        CHECK(run.output.find(scene.gone("ns/v")) != std::string::npos);
        CHECK(testing::text_of(said).ends_with("\ndirectory: absent\n"));
        CHECK_FALSE(fs::exists(scene.base() / "ns/v"));
        CHECK(fs::exists(scene.record("ns/v")) == has_record);
        CHECK(fs::exists(scene.gone("ns/v") / "volume/19/19") == has_data);
      }
    }
  }
}

}  // namespace
}  // namespace own_setup
}  // namespace lpp::helperpod
