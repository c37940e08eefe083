// SPDX-License-Identifier: Apache-2.0
// What the scripts say of their work, and what tenants may try while they run.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/unique_fd.h"
#include "fakes/setting.h"
#include "harness/name_exchanger.h"
#include "script_scene.h"

namespace lpp::app::scripts_attack {

namespace fs = std::filesystem;
using lpp::testing::Environment;
using lpp::testing::NameExchanger;
using lpp::testing::Run;
using lpp::testing::Scripts;
using lpp::testing::shells;
using lpp::testing::text_of;

/// Directories in each other, until their path is longer than that.
void make_deep(const fs::path& top, const std::string& name, std::size_t length) {
  UniqueFd folder(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t size = top.string().size(); size <= length; size += 1 + name.size()) {
    REQUIRE(::mkdirat(folder.get(), name.c_str(), 0755) == 0);
    folder.reset(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
}

TEST_CASE("setup says at the end whether it made the directory, and nothing when it fails") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "ns" / "v1";
    CHECK(scripts.setup(dir.parent_path()).exit_code == 0);  // no message wanted: no failure
    CHECK_FALSE(fs::exists(scripts.message()));
    const auto said = [&](const Environment& more) {
      std::ofstream(scripts.message(), std::ios::trunc);
      auto all = scripts.way_to(dir);
      all.insert(all.end(), more.begin(), more.end());
      const Run result = scripts.setup(dir, all);
      CHECK((result.exit_code == 0) == more.empty());
      return text_of(scripts.message());
    };
    CHECK(said({}) == "directory: made\n");
    CHECK(said({}) == "directory: found\n");
    CHECK(said({{"VOL_PERM", "rwx"}}).empty());
    CHECK(fs::exists(dir));
  }
}

TEST_CASE("setup takes back the directory that it made when it fails, and no other") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "v1";
    for (const Environment& wrong :
         {Environment{{"VOL_USER", "no such user"}}, Environment{{"VOL_PERM", "rwx"}}}) {
      CHECK(scripts.setup(dir, wrong).exit_code != 0);
      CHECK_FALSE(fs::exists(dir));
      fs::create_directory(dir);
      CHECK(scripts.setup(dir, wrong).exit_code != 0);
      CHECK(fs::exists(dir));
      fs::remove(dir);
    }
  }
}

TEST_CASE("teardown removes names of any bytes, many of them, and deep trees") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "v1";
    fs::create_directory(dir);
    for (int byte = 1; byte < 256; ++byte) {
      if (byte == '/') continue;
      const std::string c(1, static_cast<char>(byte));
      for (const std::string& name : {c + "f", "." + c + "f", ".." + c, "-" + c + "\n"}) {
        std::ofstream(dir / name) << "x";
      }
      fs::create_directory(dir / (c + "d"));
    }
    fs::path deep = dir;
    for (int level = 0; level < 120; ++level) deep /= "d";
    fs::create_directories(deep);
    std::ofstream(deep / "f") << "x";
    fs::create_directory(dir / "many");
    for (int i = 0; i < 300; ++i) std::ofstream(dir / "many" / std::to_string(i));
    const Run result = scripts.teardown(dir);
    CAPTURE(result.output);
    CHECK(result.exit_code == 0);
    CHECK_FALSE(fs::exists(dir));
  }
}

TEST_CASE("teardown says that a path is too long for its shell, and takes nothing else for it") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "v1";
    fs::create_directory(dir);
    // Many short names or few long ones: other ways through the script.
    std::string name(200, 'd');
    SUBCASE("of long names") {}
    SUBCASE("of short names") { name.resize(20); }
    make_deep(dir, name, 4600);
    // As a shell does that has no other way than the kernel's.
    scripts.begin_teardown_with(
        "cd() { command cd \"$@\" && [ ${#PWD} -le 4095 ] || { PWD=; return 1; }; }\n");
    const Run result = scripts.teardown(dir);
    CAPTURE(result.output);
    CHECK(result.exit_code != 0);
    CHECK(result.output.find("more than 4,095 bytes") != std::string::npos);
    CHECK(result.output.find("still run") == std::string::npos);
  }
}

TEST_CASE(
    "a volume whose directories become links while it is removed takes nothing else with it") {
  const int removals = lpp::testing::setting("LPP_ATTACKED_REMOVALS", 15);
  FOR_EACH_SHELL(scripts) {
    const fs::path other = scripts.base() / "other";
    int lost = 0;
    for (int round = 0; round < removals; ++round) {
      for (int i = 0; i < 20; ++i) {
        fs::create_directories(other / "in");
        std::ofstream(other / ("f" + std::to_string(i))) << "kept";
        std::ofstream(other / "in" / std::to_string(i)) << "kept";
      }
      const fs::path dir = scripts.base() / "v1";
      for (int i = 0; i < 4; ++i) {
        const std::string n = std::to_string(i);
        fs::create_directories(dir / ("d" + n) / "in");
        for (int f = 0; f < 20; ++f) std::ofstream(dir / ("d" + n) / ("f" + std::to_string(f)));
        fs::create_directory_symlink("../other", dir / ("link" + n));
      }
      {
        const NameExchanger a(dir, {{"d0", "link0"}});
        const NameExchanger b(dir, {{"d1", "link1"}});
        const NameExchanger c(dir, {{"d2", "link2"}});
        const NameExchanger d(dir, {{"d3", "link3"}});
        for (int run = 0; run < 20 && scripts.teardown(dir).exit_code != 0; ++run) {
        }
      }
      CHECK_FALSE(fs::exists(dir));
      for (int i = 0; i < 20; ++i) {
        if (text_of(other / ("f" + std::to_string(i))) != "kept" ||
            text_of(other / "in" / std::to_string(i)) != "kept") {
          ++lost;
          break;
        }
      }
    }
    CAPTURE(removals);
    CHECK(lost == 0);
  }
}

}  // namespace lpp::app::scripts_attack
