// SPDX-License-Identifier: Apache-2.0
// The script that takes a directory back only if it is empty, run by busybox and the machine's
// shell, with what the helper pod would give it.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "harness/temp_dir.h"
#include "own_script.h"

namespace lpp::helperpod {
namespace {

namespace fs = std::filesystem;
using testing::Run;

class Taker {
 public:
  explicit Taker(std::vector<std::string> shell) : shell_(std::move(shell)) {
    fs::create_directory(base());
  }

  fs::path base() const { return fs::path(folder_.path()) / "base"; }
  /// Runs the script for the directory; what it says became of it.
  std::string take_back(const fs::path& dir) {
    const operation::Operation operation{.kind = operation::Kind::kTakeBack,
                                         .volume_name = "pvc-1",
                                         .owner_uid = "1",
                                         .node = "n1",
                                         .base_path = base(),
                                         .path = dir,
                                         .only_if_empty = true};
    const fs::path said = fs::path(folder_.path()) / "said";
    fs::remove(said);
    run = run_own_script(operation, {.config_map = "c"}, shell_,
                         {{"/dev/termination-log", said.string()}});
    std::string line;
    std::getline(std::ifstream(said), line);
    return line;
  }
  Run run{};

 private:
  const testing::TempDir folder_{};
  const std::vector<std::string> shell_;
};

#define FOR_EACH_TAKER(taker)                 \
  for (const auto& shell : testing::shells()) \
    for (bool once = true; once;)             \
      for (Taker taker(shell); once; once = false)

TEST_CASE("an empty directory is taken back, with empty folders around it up to the base") {
  FOR_EACH_TAKER(taker) {
    for (const char* way : {"v", "ns/claim/v", "-rf", "ns/-v", "a b/c'd\"e/$HOME `id` *", "ü/ ",
                            "new\nline/x", "back\\slash\\n/y"}) {
      CAPTURE(way);
      fs::create_directories(taker.base() / way);
      CHECK(taker.take_back(taker.base() / way) == "directory: removed");
      CHECK(taker.run.exit_code == 0);
      CHECK_MESSAGE(fs::is_empty(taker.base()), taker.run.output);
    }
  }
}

TEST_CASE("folders around a directory that was taken back stay when they hold something else") {
  FOR_EACH_TAKER(taker) {
    fs::create_directories(taker.base() / "ns" / "a" / "v");
    fs::create_directories(taker.base() / "ns" / "b");
    CHECK(taker.take_back(taker.base() / "ns" / "a" / "v") == "directory: removed");
    CHECK(taker.run.exit_code == 0);
    CHECK_FALSE(fs::exists(taker.base() / "ns" / "a"));
    CHECK(fs::exists(taker.base() / "ns" / "b"));
  }
}

TEST_CASE("what is not an empty directory is kept") {
  struct Row {
    const char* what;
    std::function<void(const fs::path& dir, const fs::path& outside)> put;
  };
  const std::vector<Row> rows = {
      {"with a file in it", [](const auto& dir, const auto&) { std::ofstream(dir / ".data"); }},
      {"with a folder in it",
       [](const auto& dir, const auto&) { fs::create_directory(dir / "lost+found"); }},
      {"a file",
       [](const auto& dir, const auto&) {
         fs::remove(dir);
         std::ofstream(dir) << "x";
       }},
      {"a link",
       [](const auto& dir, const auto& outside) {
         fs::remove(dir);
         fs::create_directory_symlink(outside, dir);
       }},
      {"a link to nothing",
       [](const auto& dir, const auto&) {
         fs::remove(dir);
         fs::create_symlink("nothing", dir);
       }},
  };
  for (const Row& row : rows) {
    for (const char* way : {"v", "ns/claim/v"}) {
      FOR_EACH_TAKER(taker) {
        CAPTURE(row.what);
        CAPTURE(way);
        const fs::path dir = taker.base() / way;
        const fs::path outside = taker.base() / "outside";
        fs::create_directories(dir);
        fs::create_directories(outside);
        row.put(dir, outside);
        CHECK(taker.take_back(dir) == "directory: kept");
        CHECK(taker.run.exit_code == 0);
        CHECK(fs::exists(fs::symlink_status(dir)));
        CHECK(fs::exists(outside));
      }
    }
  }
}

TEST_CASE("a directory that is not there is called absent") {
  FOR_EACH_TAKER(taker) {
    CHECK(taker.take_back(taker.base() / "v") == "directory: absent");
    CHECK(taker.run.exit_code == 0);
    fs::create_directories(taker.base() / "ns" / "claim");
    CHECK(taker.take_back(taker.base() / "ns" / "claim" / "v") == "directory: absent");
    CHECK_FALSE(fs::exists(taker.base() / "ns"));
    CHECK(taker.take_back(taker.base() / "ns" / "claim" / "v") == "directory: absent");
    CHECK(taker.run.exit_code == 0);
  }
}

TEST_CASE("nothing is taken back through a symbolic link on the way") {
  FOR_EACH_TAKER(taker) {
    const fs::path outside = taker.base().parent_path() / "outside";
    fs::create_directories(outside / "claim" / "v");
    for (const char* leaf : {"claim", "claim/v", "new/v"}) {
      fs::create_directory_symlink(outside, taker.base() / "ns");
      CAPTURE(leaf);
      CHECK(taker.take_back(taker.base() / "ns" / leaf) == "directory: kept");
      CHECK(taker.run.exit_code == 0);
      CHECK(fs::is_symlink(taker.base() / "ns"));
      CHECK(fs::is_directory(outside / "claim" / "v"));
      fs::remove(taker.base() / "ns");
    }
  }
}

TEST_CASE("a script that could not look says nothing and fails") {
  FOR_EACH_TAKER(taker) {
    fs::remove(taker.base());
    CHECK(taker.take_back(taker.base() / "v").empty());
    CHECK(taker.run.exit_code != 0);
  }
}

}  // namespace
}  // namespace lpp::helperpod
