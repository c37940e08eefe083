// SPDX-License-Identifier: Apache-2.0
#include "config/file_source.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "harness/temp_dir.h"
#include "unit/config/observed_texts.h"

namespace lpp::config {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::trunc) << text;
}

/// Blind re-reading is off: what a test sees has come from inotify.
FileSource::Options told_only() {
  return {.settle = std::chrono::milliseconds(5),
          .settle_limit = std::chrono::milliseconds(100),
          .recheck_blind = std::chrono::hours(1),
          .recheck = std::chrono::hours(1),
          .max_bytes = 1000};
}

struct Started {
  explicit Started(const fs::path& file, FileSource::Options options = told_only())
      : source(file.string(), clock, options) {
    source.start(seen.observer());
  }
  SystemClock clock;
  ObservedTexts seen;
  FileSource source;
};

using Texts = std::vector<std::string>;

TEST_CASE("the first state of a file is observed before start returns") {
  const testing::TempDir folder;
  write(folder / "config.json", "one");
  const Started file(folder / "config.json");
  CHECK(file.seen.all() == Texts{"one"});
  CHECK(file.source.name() == (folder / "config.json").string());
}

TEST_CASE("a missing file is an error that names it, and is seen when it comes") {
  const testing::TempDir folder;
  Started file(folder / "config.json");
  REQUIRE(file.seen.count() == 1);
  CHECK(file.seen.last() == "error: " + (folder / "config.json").string() +
                                ": cannot be read: No such file or directory");
  write(folder / "config.json", "now");
  CHECK(file.seen.wait_for("now"));
}

TEST_CASE("every way of changing a file is seen") {
  const testing::TempDir folder;
  const fs::path path = folder / "config.json";
  write(path, "one");
  Started file(path);

  SUBCASE("written in place") {
    write(path, "two");
    CHECK(file.seen.wait_for("two"));
  }
  SUBCASE("another file renamed over it") {
    write(folder / "new", "two");
    fs::rename(folder / "new", path);
    CHECK(file.seen.wait_for("two"));
  }
  SUBCASE("deleted and created again") {
    fs::remove(path);
    CHECK(file.seen.wait_for("error: "));
    write(path, "two");
    CHECK(file.seen.wait_for("two"));
  }
  SUBCASE("renamed away and back") {
    fs::rename(path, folder / "away");
    CHECK(file.seen.wait_for("error: "));
    fs::rename(folder / "away", path);
    CHECK(file.seen.wait_for("one"));
  }
  SUBCASE("replaced by a hard link") {
    write(folder / "other", "two");
    fs::remove(path);
    fs::create_hard_link(folder / "other", path);
    CHECK(file.seen.wait_for("two"));
  }
  SUBCASE("replaced by a folder") {
    fs::remove(path);
    fs::create_directory(path);
    CHECK(file.seen.wait_for("error: " + path.string() + ": is not a regular file"));
  }
  SUBCASE("replaced by a named pipe, which must not hold the reader") {
    fs::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK(file.seen.wait_for("error: " + path.string() + ": is not a regular file"));
  }
  SUBCASE("grown beyond the limit") {
    write(path, std::string(1001, 'x'));
    CHECK(file.seen.wait_for("error: " + path.string() + ": is longer than 1000 bytes"));
    write(path, std::string(1000, 'x'));
    CHECK(file.seen.wait_for("xxx"));
  }
  // Whatever has come: the next change is seen as well.
  fs::remove_all(path);
  write(path, "three");
  CHECK(file.seen.wait_for("three"));
}

TEST_CASE("the symlink swap of a mounted ConfigMap is seen, again and again") {
  const testing::TempDir folder;
  const auto version = [&](int n, const std::string& text) {
    const fs::path dir = folder / ("..2026_" + std::to_string(n));
    fs::create_directory(dir);
    write(dir / "config.json", text);
    fs::create_symlink(dir.filename(), folder / "..data_tmp");
    fs::rename(folder / "..data_tmp", folder / "..data");
    fs::remove_all(folder / ("..2026_" + std::to_string(n - 1)));
  };
  version(1, "v1");
  fs::create_symlink("..data/config.json", folder / "config.json");
  Started file(folder / "config.json");
  CHECK(file.seen.last() == "v1");
  for (int n = 2; n <= 6; ++n) {
    version(n, "v" + std::to_string(n));
    CHECK(file.seen.wait_for("v" + std::to_string(n)));
  }
  for (const auto& text : file.seen.all()) CHECK(text.rfind("error", 0) != 0);
}

TEST_CASE("a change of the file that a symlink leads to is seen") {
  const testing::TempDir folder;
  const testing::TempDir elsewhere;
  write(elsewhere / "real.json", "one");
  fs::create_symlink(elsewhere / "real.json", folder / "config.json");
  Started file(folder / "config.json");
  write(elsewhere / "real.json", "two");
  CHECK(file.seen.wait_for("two"));
  // The link is turned to another file: from now on that one counts.
  const testing::TempDir third;
  write(third / "other.json", "three");
  fs::create_symlink(third / "other.json", folder / "tmp");
  fs::rename(folder / "tmp", folder / "config.json");
  CHECK(file.seen.wait_for("three"));
  write(third / "other.json", "four");
  CHECK(file.seen.wait_for("four"));
}

TEST_CASE("the same text and the same error are not told twice") {
  const testing::TempDir folder;
  const fs::path path = folder / "config.json";
  write(path, "one");
  Started file(path);
  write(path, "one");
  write(folder / "unrelated", "x");
  fs::permissions(path, fs::perms::owner_read);
  fs::permissions(path, fs::perms::owner_all);
  write(folder / "new", "two");  // renamed, so that no half of it can be seen
  fs::rename(folder / "new", path);
  REQUIRE(file.seen.wait_for("two"));
  CHECK(file.seen.all() == Texts{"one", "two"});
}

TEST_CASE("a writer that needs several steps is read when it is done") {
  const testing::TempDir folder;
  const fs::path path = folder / "config.json";
  write(path, "old");
  testing::FakeClock clock;
  ObservedTexts seen;
  FileSource::Options options = told_only();
  options.settle = std::chrono::hours(1);  // never quiet for long enough: the limit decides
  options.settle_limit = std::chrono::seconds(1);
  FileSource source(path.string(), clock, options);
  source.start(seen.observer());
  std::ofstream(path, std::ios::trunc) << "";
  for (const char* part : {"a", "b", "c"}) std::ofstream(path, std::ios::app) << part;
  CHECK(testing::eventually([&] {
    clock.advance(std::chrono::seconds(2));
    fs::permissions(path, fs::perms::owner_all);  // one more event, after the limit
    return seen.count() >= 2;
  }));
  source.stop();
  CHECK(seen.all() == Texts{"old", "abc"});
}

TEST_CASE("a folder that is never quiet does not hide a change for ever") {
  const testing::TempDir folder;
  const fs::path path = folder / "config.json";
  write(path, "one");
  FileSource::Options options = told_only();
  options.settle = std::chrono::hours(1);
  options.settle_limit = std::chrono::nanoseconds(0);
  Started file(path, options);
  write(path, "two");
  CHECK(file.seen.wait_for("two"));
}

TEST_CASE("a folder that is made later, or removed and made again, is found by looking") {
  const testing::TempDir folder;
  FileSource::Options options = told_only();
  options.recheck_blind = std::chrono::milliseconds(5);
  Started file(folder / "later/config.json", options);
  CHECK(file.seen.last().rfind("error: ", 0) == 0);
  fs::create_directory(folder / "later");
  write(folder / "later/config.json", "one");
  CHECK(file.seen.wait_for("one"));
  fs::remove_all(folder / "later");
  CHECK(file.seen.wait_for("error: "));
  fs::create_directory(folder / "later");
  write(folder / "later/config.json", "two");
  CHECK(file.seen.wait_for("two"));
  write(folder / "later/config.json", "three");
  CHECK(file.seen.wait_for("three"));
}

TEST_CASE("the target of a dangling symlink is found by looking") {
  const testing::TempDir folder;
  const testing::TempDir elsewhere;
  fs::create_symlink(elsewhere / "real.json", folder / "config.json");
  FileSource::Options options = told_only();
  options.recheck_blind = std::chrono::milliseconds(5);
  Started file(folder / "config.json", options);
  write(elsewhere / "real.json", "there");
  CHECK(file.seen.wait_for("there"));
}

TEST_CASE("a change that inotify cannot tell is found by looking") {
  const testing::TempDir folder;
  fs::create_directory(folder / "a");
  fs::create_directory(folder / "b");
  write(folder / "a/config.json", "one");
  write(folder / "b/config.json", "two");
  fs::create_symlink("a", folder / "current");
  FileSource::Options options = told_only();
  options.recheck = std::chrono::milliseconds(5);
  Started file(folder / "current/config.json", options);
  fs::create_symlink("b", folder / "tmp");
  fs::rename(folder / "tmp", folder / "current");  // the parent folder itself is swapped
  CHECK(file.seen.wait_for("two"));
}

TEST_CASE("nothing is observed after stop, which ends at once and may be repeated") {
  const testing::TempDir folder;
  const fs::path path = folder / "config.json";
  write(path, "one");
  Started file(path);
  file.source.stop();  // while it waits an hour for the next look
  write(path, "two");
  file.source.stop();
  CHECK(file.seen.all() == Texts{"one"});

  SystemClock clock;
  FileSource never_started(path.string(), clock, told_only());
  never_started.stop();
}

TEST_CASE("a file without a folder in its name is looked for in the working folder") {
  SystemClock clock;
  ObservedTexts seen;
  FileSource source("surely-not-there.json", clock, told_only());
  source.start(seen.observer());
  CHECK(seen.last().rfind("error: surely-not-there.json: cannot be read", 0) == 0);
}

TEST_CASE("an inline text is observed once") {
  ObservedTexts seen;
  const auto source = make_inline_source("--config", "{}");
  CHECK(source->name() == "--config");
  source->start(seen.observer());
  source->stop();
  CHECK(seen.all() == Texts{"{}"});
}

TEST_CASE("the error of a file says what kind it is") {
  const testing::TempDir folder;
  write(folder / "file", "x");
  const auto missing = read_text_file((folder / "no").string(), 10);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().is(ErrorCode::kNotFound));
  const auto below_file = read_text_file((folder / "file/x").string(), 10);
  REQUIRE_FALSE(below_file.ok());
  CHECK(below_file.error().is(ErrorCode::kNotFound));
  const auto too_long = read_text_file((folder / std::string(300, 'x')).string(), 10);
  REQUIRE_FALSE(too_long.ok());
  CHECK(too_long.error().is(ErrorCode::kInternal));
  write(folder / "big", "12345678901");
  const auto big = read_text_file((folder / "big").string(), 10);
  REQUIRE_FALSE(big.ok());
  CHECK(big.error().is(ErrorCode::kInvalid));
  CHECK(*read_text_file((folder / "big").string(), 11) == "12345678901");
  if (geteuid() != 0) {
    fs::permissions(folder / "file", fs::perms::none);
    const auto forbidden = read_text_file((folder / "file").string(), 10);
    REQUIRE_FALSE(forbidden.ok());
    CHECK(forbidden.error().is(ErrorCode::kForbidden));
  }
}

}  // namespace
}  // namespace lpp::config
