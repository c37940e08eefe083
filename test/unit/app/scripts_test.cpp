// The scripts of the manifest, run by busybox (as in the helper pods) and by the machine's shell.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "manifest_file.h"
#include "script_run.h"

namespace fs = std::filesystem;
using lpp::testing::Environment;
using lpp::testing::ManifestFile;
using lpp::testing::Run;
using lpp::testing::run;
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

/// A base folder as kubelet would make it, and the scripts under one shell.
class Scripts {
 public:
  explicit Scripts(std::vector<std::string> shell) : shell_(std::move(shell)) {
    std::string pattern = (fs::temp_directory_path() / "lpp-scripts-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    root_ = fs::canonical(pattern);
    fs::create_directory(base());
    fs::permissions(base(), fs::perms(0755));
    const ManifestFile manifest;
    for (const std::string name : {"setup", "teardown"}) {
      std::string text = manifest.data(name);
      const std::string message = "/dev/termination-log";
      for (std::size_t at = 0; (at = text.find(message, at)) != std::string::npos;) {
        text.replace(at, message.size(), this->message());
      }
      std::ofstream(root_ / name) << text;
    }
  }
  ~Scripts() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Scripts(const Scripts&) = delete;
  Scripts& operator=(const Scripts&) = delete;

  fs::path base() const { return root_ / "base"; }
  /// What stands for the container's termination message; a runtime makes it.
  fs::path message() const { return root_ / "message"; }
  /// What the helper pod of a volume below folders of a path pattern gets besides: the base folder,
  /// mounted a second time.
  Environment way_to(const fs::path& dir) const {
    return {{"VOL_BASE_DIR", base().string()},
            {"VOL_SUB_DIR", dir.lexically_relative(base()).string()}};
  }

  Run setup(const std::string& dir, const Environment& more = {}) const {
    return script("setup", dir, "create", more);
  }
  Run teardown(const std::string& dir, const Environment& more = {}) const {
    return script("teardown", dir, "delete", more);
  }

 private:
  Run script(const std::string& name, const std::string& dir, const std::string& action,
             const Environment& more) const {
    auto command = shell_;
    command.insert(command.end(), {(root_ / name).string(), "-p", dir, "-s", "1073741824", "-m",
                                   "Filesystem", "-a", action});
    Environment environment = {
        {"VOL_DIR", dir}, {"VOL_MODE", "Filesystem"}, {"VOL_SIZE_BYTES", "1073741824"},
        {"VOL_USER", ""}, {"VOL_GROUP", ""},          {"VOL_PERM", ""}};
    for (const auto& given : more) {
      std::erase_if(environment, [&](const auto& entry) { return entry.first == given.first; });
      environment.push_back(given);
    }
    return run(command, environment);
  }

  std::vector<std::string> shell_;
  fs::path root_{};
};

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A process that outlived its pod: exchanges two names of its volume until it is told to stop.
class Exchanger {
 public:
  Exchanger(const fs::path& volume, std::string one, std::string other)
      : folder_(open(volume.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
        thread_([this, one = std::move(one), other = std::move(other)] {
          while (!stop_) {
            renameat2(folder_, one.c_str(), folder_, other.c_str(), RENAME_EXCHANGE);
          }
        }) {}
  ~Exchanger() {
    stop_ = true;
    thread_.join();
    close(folder_);
  }
  Exchanger(const Exchanger&) = delete;
  Exchanger& operator=(const Exchanger&) = delete;

 private:
  std::atomic<bool> stop_{false};
  int folder_;
  std::thread thread_;
};

#define FOR_EACH_SHELL(scripts)      \
  for (const auto& shell : shells()) \
    for (bool once = true; once;)    \
      for (const Scripts scripts(shell); once; once = false)

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

TEST_CASE("setup closes a base folder that has just been made and leaves any other as it is") {
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

TEST_CASE("setup gives the directory to the user and the group asked for") {
  if (geteuid() != 0) {
    MESSAGE("needs root");
    return;
  }
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

TEST_CASE("teardown removes the folders that became empty, up to the base folder and never it") {
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

TEST_CASE("teardown does not delete through a mount") {
  FOR_EACH_SHELL(scripts) {
    const fs::path dir = scripts.base() / "v 1\\0";
    const fs::path mounted = dir / "m n";
    fs::create_directories(mounted);
    if (mount("none", mounted.c_str(), "tmpfs", 0, nullptr) != 0) {
      MESSAGE("may not mount here");
      return;
    }
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

TEST_CASE("a volume whose folders become links while it is removed takes nothing else with it") {
  const char* wanted = std::getenv("LPP_ATTACKED_REMOVALS");
  const int removals = wanted != nullptr ? std::atoi(wanted) : 15;
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
        const Exchanger a(dir, "d0", "link0");
        const Exchanger b(dir, "d1", "link1");
        const Exchanger c(dir, "d2", "link2");
        const Exchanger d(dir, "d3", "link3");
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
