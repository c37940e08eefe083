// SPDX-License-Identifier: Apache-2.0
#include "k8s/token_source.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <future>

#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "harness/temp_dir.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::eventually;
using lpp::testing::FakeClock;
using lpp::testing::TempDir;
using namespace std::chrono_literals;

TEST_CASE("a token file is read again after 50 seconds, by its path") {
  FakeClock clock;
  const TempDir folder;
  folder.write("a", "one\n");
  std::filesystem::create_symlink(folder.path("a"), folder.path("token"));
  TokenSource source("", folder.path("token"), clock);
  CHECK(source.token().value() == "one");
  // As the kubelet does: another file behind the same name.
  folder.write("b", "two\n");
  std::filesystem::create_symlink(folder.path("b"), folder.path("next"));
  std::filesystem::rename(folder.path("next"), folder.path("token"));
  clock.advance(49s);
  CHECK(source.token().value() == "one");
  clock.advance(1s);
  CHECK(source.token().value() == "two");
}

TEST_CASE("while the file cannot be used the last good token serves") {
  FakeClock clock;
  const TempDir folder;
  const std::string file = folder.write("token", "good");
  TokenSource source("", file, clock);
  CHECK(source.token().value() == "good");
  SUBCASE("missing") { folder.remove("token"); }
  SUBCASE("empty") { folder.write("token", " \n"); }
  SUBCASE("not a token") { folder.write("token", "a\nX-Evil: b"); }
  clock.advance(50s);
  CHECK(source.token().value() == "good");
  folder.write("token", "better");
  clock.advance(50s);
  CHECK(source.token().value() == "better");
}

TEST_CASE("while the file's disk hangs the last good token serves") {
  FakeClock clock;
  const TempDir folder;
  TokenSource source("", folder.write("token", "good"), clock);
  CHECK(source.token().value() == "good");
  folder.remove("token");
  // To open a pipe that nobody writes to hangs, like a file of a server that is away.
  REQUIRE(::mkfifo(folder.path("token").c_str(), 0600) == 0);
  for (int i = 0; i < 3; ++i) {
    clock.advance(50s);
    auto token = std::async(std::launch::async, [&] { return source.token(); });
    CHECK(eventually([&] {
      clock.advance(100ms);
      return token.wait_for(0s) == std::future_status::ready;
    }));
    CHECK(token.get().value() == "good");
  }
  // The one read that hangs comes to its end.
  std::ofstream(folder.path("token")) << "better";
  folder.remove("token");
  folder.write("token", "best");
  CHECK(eventually([&] {
    clock.advance(50s);
    return source.token().value() == "best";
  }));
}

TEST_CASE("a file that never held a token is an error that names it") {
  FakeClock clock;
  const TempDir folder;
  TokenSource source("", folder.path("token"), clock);
  const auto missing = source.token();
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().is(ErrorCode::kUnauthorized));
  CHECK(missing.error().message.find(folder.path("token")) != std::string::npos);
  // It is looked at again at once: nothing serves in its place.
  folder.write("token", "now");
  CHECK(source.token().value() == "now");
}

TEST_CASE("a fixed token serves until the file can be read") {
  FakeClock clock;
  const TempDir folder;
  CHECK(TokenSource("fixed", "", clock).token().value() == "fixed");
  CHECK(TokenSource("", "", clock).token().value().empty());
  TokenSource both("fixed", folder.path("token"), clock);
  CHECK(both.token().value() == "fixed");
  folder.write("token", "from file");
  clock.advance(50s);
  CHECK(both.token().value() == "from file");
}

TEST_CASE("a refused token is read again soon, but not for every refusal") {
  FakeClock clock;
  const TempDir folder;
  TokenSource source("", folder.write("token", "one"), clock);
  CHECK(source.token().value() == "one");
  folder.write("token", "two");
  source.invalidate();
  CHECK(source.token().value() == "one");
  clock.advance(1s);
  CHECK(source.token().value() == "two");
}
