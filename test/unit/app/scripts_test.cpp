// SPDX-License-Identifier: Apache-2.0
// The scripts of the manifest, run by busybox (as in the helper pods) and by the machine's shell.

#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "fakes/needs.h"
#include "script_scene.h"

namespace lpp::app::scripts {

namespace fs = std::filesystem;
using lpp::testing::Environment;
using lpp::testing::Run;
using lpp::testing::Scripts;
using lpp::testing::shells;

namespace {

unsigned mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

std::pair<uid_t, gid_t> owner_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return {info.st_uid, info.st_gid};
}

}  // namespace

TEST_CASE("setup makes a directory that every user may use, whatever the umask") {
  const mode_t before = umask(077);
  FOR_EACH_SHELL(scripts) {
    const Run result = scripts.setup(scripts.base() / "v1");
    CAPTURE(result.output);
    CHECK(result.exit_code == 0);
    CHECK(mode_of(scripts.base() / "v1") == 0777);
  }
  umask(before);
}

TEST_CASE("setup closes a base directory that has just been made and leaves any other as it is") {
  FOR_EACH_SHELL(scripts) {
    fs::create_directory(scripts.base() / "lost+found");  // a disk of its own
    CHECK(scripts.setup(scripts.base() / "v1").exit_code == 0);
    CHECK(mode_of(scripts.base()) == 0700);
    fs::permissions(scripts.base(), fs::perms(0755));
    CHECK(scripts.setup(scripts.base() / "v2").exit_code == 0);
    CHECK(mode_of(scripts.base()) == 0755);
  }
}

TEST_CASE("below folders of a path pattern setup closes the base folder and none of the others") {
  FOR_EACH_SHELL(scripts) {
    const fs::path first = scripts.base() / "ns" / "claim" / "one";
    fs::create_directories(first.parent_path());  // by the kubelet
    CHECK(scripts.setup(first, scripts.way_to(first)).exit_code == 0);
    CHECK(mode_of(scripts.base()) == 0700);
    CHECK(mode_of(first.parent_path()) == 0755);
    CHECK(mode_of(first) == 0777);
    fs::permissions(scripts.base(), fs::perms(0755));
    const fs::path second = scripts.base() / "ns" / "other" / "two";
    CHECK(scripts.setup(second, scripts.way_to(second)).exit_code == 0);
    CHECK(mode_of(scripts.base()) == 0755);
    CHECK(mode_of(second.parent_path()) == 0755);
    CHECK(mode_of(second) == 0777);
  }
}

TEST_CASE("setup applies permissions and may be run again") {
  FOR_EACH_SHELL(scripts) {
    const std::string dir = scripts.base() / "v1";
    for (int attempt = 0; attempt < 2; ++attempt) {
      CHECK(scripts.setup(dir, {{"VOL_PERM", "2750"}}).exit_code == 0);
      CHECK(mode_of(dir) == 02750);
    }
  }
}

TEST_CASE("setup sets the mode of a directory that was there, and leaves its content") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "v1";
    for (const auto& [asked, mode] : {std::pair{"", 0777U}, {"0750", 0750U}, {"01777", 01777U}}) {
      for (const unsigned before : {0000U, 0700U, 0755U, 0777U, 02770U}) {
        fs::create_directories(dir);
        fs::permissions(dir, fs::perms(before));
        std::ofstream(dir / "data") << "kept";
        fs::permissions(dir / "data", fs::perms(0600));
        CHECK(scripts.setup(dir, {{"VOL_PERM", asked}}).exit_code == 0);
        CHECK(mode_of(dir) == mode);
        CHECK(mode_of(dir / "data") == 0600);
        fs::remove_all(dir);
      }
    }
  }
}

LPP_ROOT_TEST_CASE("setup gives the directory to the user and the group asked for") {
  FOR_EACH_SHELL(scripts) {
    const std::string dir = scripts.base() / "v1";
    CHECK(scripts.setup(dir, {{"VOL_USER", "1234"}}).exit_code == 0);
    CHECK(owner_of(dir) == std::pair<uid_t, gid_t>(1234, 0));
    CHECK(scripts.setup(dir, {{"VOL_GROUP", "5678"}}).exit_code == 0);
    CHECK(owner_of(dir) == std::pair<uid_t, gid_t>(1234, 5678));
    CHECK(scripts.setup(dir, {{"VOL_USER", "1"}, {"VOL_GROUP", "2"}, {"VOL_PERM", "6770"}})
              .exit_code == 0);
    CHECK(owner_of(dir) == std::pair<uid_t, gid_t>(1, 2));
    CHECK(mode_of(dir) == 06770);
  }
}

TEST_CASE("setup fails with a reason when an owner or mode cannot be applied") {
  FOR_EACH_SHELL(scripts) {
    const std::string dir = scripts.base() / "v1";
    for (const Environment& wrong :
         {Environment{{"VOL_USER", "no such user"}}, Environment{{"VOL_PERM", "rwx"}},
          Environment{{"VOL_PERM", "-R"}}, Environment{{"VOL_USER", "-R"}}}) {
      const Run result = scripts.setup(dir, wrong);
      CHECK(result.exit_code != 0);
      CHECK_FALSE(result.output.empty());
    }
  }
}

TEST_CASE("neither script goes through a symbolic link on the way to the directory") {
  FOR_EACH_SHELL(scripts) {
    const fs::path outside = scripts.base().parent_path() / "outside";
    fs::create_directories(outside / "claim");
    fs::permissions(outside, fs::perms(0700));
    std::ofstream(outside / "claim" / "data") << "kept";
    // An earlier volume of the claim's owner left a link where the way of the next one leads. The
    // kubelet follows it for the folder that it shows as VOL_DIR's parent.
    for (const fs::path& link : {scripts.base() / "ns", scripts.base() / "team" / "ns"}) {
      fs::create_directories(link.parent_path());
      fs::create_directory_symlink(outside, link);
      for (const fs::path& dir : {link / "claim", link / "claim" / "one", link / "new" / "one"}) {
        CAPTURE(dir);
        for (const Run& result : {scripts.setup(dir, scripts.way_to(dir)),
                                  scripts.teardown(dir, scripts.way_to(dir))}) {
          CHECK(result.exit_code == 1);
          CHECK(result.output.find("symbolic link") != std::string::npos);
        }
      }
      CHECK(fs::is_symlink(link));
      fs::remove(link);
    }
    CHECK(mode_of(outside) == 0700);
    CHECK(fs::exists(outside / "claim" / "data"));
    CHECK_FALSE(fs::exists(outside / "claim" / "one"));
    CHECK_FALSE(fs::exists(outside / "new"));
  }
}

TEST_CASE("links inside a volume lead neither script out of it") {
  FOR_EACH_SHELL(scripts) {
    const fs::path other = scripts.base() / "other";
    fs::create_directory(other);
    std::ofstream(other / "data") << "kept";
    fs::permissions(other / "data", fs::perms(0600));
    const fs::path dir = scripts.base() / "v1";
    fs::create_directory(dir);
    fs::create_directory_symlink(other, dir / "link");
    fs::create_symlink(other / "data", dir / "file");
    fs::create_directory_symlink("/", dir / "root");
    CHECK(scripts.setup(dir, {{"VOL_PERM", "0777"}, {"VOL_USER", "1234"}}).exit_code ==
          (geteuid() == 0 ? 0 : 1));
    CHECK(mode_of(other / "data") == 0600);
    CHECK(owner_of(other / "data").first == geteuid());
    CHECK(scripts.teardown(dir).exit_code == 0);
    CHECK_FALSE(fs::exists(dir));
    CHECK(fs::exists(other / "data"));
  }
}

TEST_CASE("neither script touches what a symbolic link points to") {
  FOR_EACH_SHELL(scripts) {
    const fs::path target = scripts.base() / "target";
    const fs::path link = scripts.base() / "v1";
    fs::create_directory(target);
    fs::permissions(target, fs::perms(0700));
    std::ofstream(target / "data") << "kept";
    fs::create_directory_symlink(target, link);
    for (const Run& result :
         {scripts.setup(link, {{"VOL_PERM", "0777"}}), scripts.teardown(link)}) {
      CHECK(result.exit_code == 1);
      CHECK(result.output.find("symbolic link") != std::string::npos);
    }
    CHECK(mode_of(target) == 0700);
    CHECK(fs::exists(target / "data"));
    CHECK(fs::is_symlink(link));
  }
}

TEST_CASE("both scripts refuse a path that is not clean or not below a base folder") {
  FOR_EACH_SHELL(scripts) {
    const std::string base = scripts.base();
    std::ofstream(scripts.base() / "data") << "kept";
    for (const std::string& dir :
         {std::string(), std::string("/"), std::string("//"), std::string("/."),
          std::string("/tmp"), std::string("relative"), std::string("relative/v1"), base + "/",
          base + "/.", base + "/..", base + "/../base", base + "/./v1", base + "//v1"}) {
      CAPTURE(dir);
      for (const Run& result : {scripts.setup(dir), scripts.teardown(dir)}) {
        CHECK(result.exit_code == 1);
        CHECK(result.output.find("path") != std::string::npos);
      }
    }
    CHECK(fs::exists(scripts.base() / "data"));
    CHECK(mode_of(scripts.base()) == 0755);
  }
}

TEST_CASE("teardown removes the directory with its content and nothing beside it") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "pvc-1_ns_a b'c\"$(x)*";
    const fs::path other = scripts.base() / "pvc-1_ns_a";
    fs::create_directories(dir / "deep" / "er");
    fs::create_directories(other);
    std::ofstream(dir / "deep" / "-rf") << "x";
    fs::create_symlink(other, dir / "link");
    const Run result = scripts.teardown(dir);
    CAPTURE(result.output);
    CHECK(result.exit_code == 0);
    CHECK_FALSE(fs::exists(dir));
    CHECK(fs::exists(other));
    CHECK(scripts.teardown(dir).exit_code == 0);  // already gone
  }
}

TEST_CASE(
    "teardown removes the directories that became empty, up to the base directory and never it") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "ns" / "claim" / "one";
    const fs::path other = scripts.base() / "ns" / "other" / "two";
    fs::create_directories(dir);
    fs::create_directories(other);
    CHECK(scripts.teardown(dir, scripts.way_to(dir)).exit_code == 0);
    CHECK_FALSE(fs::exists(dir.parent_path()));
    CHECK(fs::exists(other));
    // Killed after the directory was gone: the next run goes on with the folders.
    fs::remove(other);
    CHECK(scripts.teardown(other, scripts.way_to(other)).exit_code == 0);
    CHECK_FALSE(fs::exists(scripts.base() / "ns"));
    CHECK(fs::exists(scripts.base()));
    // Or after a part of the folders was gone.
    fs::create_directory(scripts.base() / "ns");
    CHECK(scripts.teardown(dir, scripts.way_to(dir)).exit_code == 0);
    CHECK(fs::is_empty(scripts.base()));
    // Without the base folder's name nothing above the directory is touched.
    fs::create_directories(dir);
    CHECK(scripts.teardown(dir).exit_code == 0);
    CHECK(fs::exists(dir.parent_path()));
  }
}

TEST_CASE("a directory of any name is made and removed unchanged") {
  FOR_EACH_SHELL(scripts) {
    for (const std::string name : {"a b", "-rf", "$(touch x)", "a\\b", "ä\nb", "*", "'\""}) {
      CAPTURE(name);
      const fs::path dir = scripts.base() / name;
      CHECK(scripts.setup(dir, {{"VOL_PERM", "0700"}}).exit_code == 0);
      CHECK(fs::is_directory(dir));
      CHECK(mode_of(dir) == 0700);
      CHECK(scripts.teardown(dir).exit_code == 0);
      CHECK_FALSE(fs::exists(dir));
    }
    CHECK(fs::is_empty(scripts.base()));
  }
}

TEST_CASE("neither script takes a file for the directory") {
  FOR_EACH_SHELL(scripts) {
    const fs::path file = scripts.base() / "v1";
    std::ofstream(file) << "kept";
    CHECK(scripts.setup(file).exit_code != 0);
    CHECK(scripts.teardown(file).exit_code == 1);
    CHECK(fs::is_regular_file(file));
  }
}

LPP_ROOT_TEST_CASE("teardown does not delete through a mount") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "v 1\\0";
    const fs::path mounted = dir / "m n";
    fs::create_directories(mounted);
    REQUIRE(mount("none", mounted.c_str(), "tmpfs", 0, nullptr) == 0);
    std::ofstream(mounted / "data") << "kept";
    const Run result = scripts.teardown(dir);
    CHECK(result.exit_code == 1);
    CHECK(result.output.find("something is mounted at") != std::string::npos);
    CHECK(fs::exists(mounted / "data"));
    REQUIRE(umount(mounted.c_str()) == 0);
    CHECK(scripts.teardown(dir).exit_code == 0);
    CHECK_FALSE(fs::exists(dir));
  }
}

}  // namespace lpp::app::scripts
