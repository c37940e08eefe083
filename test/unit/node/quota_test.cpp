// SPDX-License-Identifier: Apache-2.0
#include "node/quota.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// With a file system that has limits (test/quota/run.sh), without a right to do as one likes.

namespace {

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

MakeRequest limited(const std::string& id, Limits limits) {
  MakeRequest request{.id = id, .path = id};
  request.limits = limits;
  return request;
}

}  // namespace

TEST_CASE("a volume with a limit holds as much and no more, and df in it shows the limit" *
          NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(limited("pvc-1", {.bytes = 8 * kMiB}));
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  CHECK(ProjectQuota::is_own(made->project) == BaseFolder::has_projects());
  const Filled filled = fill(base.at("pvc-1/data"), 64 * kMiB);
  CHECK(is_full(filled.error));
  CHECK(filled.bytes <= 8 * kMiB);
  CHECK(filled.bytes > 7 * kMiB);
  struct statfs shown {};
  REQUIRE(::statfs(base.at("pvc-1").c_str(), &shown) == 0);
  const bool shows_limit = shown.f_blocks * static_cast<std::uint64_t>(shown.f_bsize) == 8 * kMiB;
  CHECK(shows_limit == BaseFolder::has_projects());

  // Others are not held by it.
  REQUIRE(volumes.make(limited("pvc-2", {})).ok());
  CHECK(fill(base.at("pvc-2/data"), 9 * kMiB).error == 0);

  ::sync();  // btrfs counts when it commits
  const auto usage = volumes.usage();
  REQUIRE(usage.ok());
  CHECK(usage->promised_bytes == 8 * kMiB);
  REQUIRE(usage->volumes.size() == 2);
  REQUIRE(usage->volumes[0].use.has_value());
  CHECK(usage->volumes[0].use->bytes > 7 * kMiB);
  CHECK(usage->volumes[0].use->inodes ==
        (BaseFolder::has_projects() ? std::optional<std::uint64_t>(2) : std::nullopt));
  CHECK_FALSE(usage->volumes[1].use.has_value());
}

TEST_CASE("a limit grows at once, shrinks to what is held at most, and goes with the volume" *
          NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(limited("pvc-1", {.bytes = 4 * kMiB}));
  REQUIRE(made.ok());
  CHECK(is_full(fill(base.at("pvc-1/data"), 64 * kMiB).error));
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.bytes = 12 * kMiB}, .limited = true}).ok());
  CHECK(fill(base.at("pvc-1/data"), 7 * kMiB).error == 0);
  CHECK(is_full(fill(base.at("pvc-1/data"), 64 * kMiB).error));
  ::sync();  // btrfs counts when it commits
  const auto less = volumes.resize({.id = "pvc-1", .limits = {.bytes = 5 * kMiB}, .limited = true});
  REQUIRE_FALSE(less.ok());
  CHECK(less.error().is(ErrorCode::kInvalid));
  CHECK(volumes.list()->volumes[0].limits.bytes == 12 * kMiB);
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.bytes = 16 * kMiB}, .limited = true}).ok());
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.bytes = 14 * kMiB}, .limited = true}).ok());
  CHECK(volumes.resize({.id = "absent", .limits = {.bytes = 1}, .limited = true})
            .error()
            .is(ErrorCode::kNotFound));

  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto quota = ProjectQuota::open(kernel, folder.get());
  REQUIRE(quota.ok());
  const auto use = quota->use(made->project);
  REQUIRE(use.ok());
  CHECK((!*use || !(*use)->limits.any()));
}

TEST_CASE("the number of files is limited too" * NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(limited("pvc-1", {.inodes = 10})).ok());
  int made = 0;
  while (made < 100 && fill(base.at("pvc-1/" + std::to_string(made)), 0).error == 0) ++made;
  CHECK(made == 9);  // the directory is the tenth
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.inodes = 20}, .limited = true}).ok());
  CHECK(fill(base.at("pvc-1/more"), 0).error == 0);
  CHECK(volumes.resize({.id = "pvc-1", .limits = {.inodes = 5}, .limited = true})
            .error()
            .is(ErrorCode::kInvalid));
}

TEST_CASE("a directory that was there gets a limit if all that is in it will count" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  std::filesystem::create_directory(base.at("empty"));
  base.write("full/file");
  const auto found = volumes.make(limited("empty", {.bytes = kMiB}));
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  CHECK(found->origin == Origin::kFound);
  CHECK(is_full(fill(base.at("empty/data"), 8 * kMiB).error));
  CHECK(volumes.make(limited("full", {.bytes = kMiB})).error().is(ErrorCode::kInvalid));
  CHECK(base.has("full/file"));
  // Without its record nobody knows who gave it its project.
  CHECK(*volumes.remove({.id = "empty", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(fill(base.at("empty/data"), 2 * kMiB).error == 0);
  CHECK(volumes.make(limited("empty", {.bytes = 8 * kMiB})).error().is(ErrorCode::kInvalid));
  CHECK(volumes.adopt({.id = "empty", .path = "empty", .limits = {.bytes = 8 * kMiB}}).ok());
  CHECK(volumes.make(limited("empty", {.bytes = 9 * kMiB}))->limits.bytes == 9 * kMiB);
}

TEST_CASE(
    "volumes that are made at once never get more than there is, if nothing is overcommitted" *
    NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto space = volumes.space();
  REQUIRE(space.ok());
  // Room for three and a half, whoever comes first.
  const std::uint64_t size = space->available_bytes / 7 * 2;
  const auto codes = testing::at_once(8, [&](int process) {
    Kernel own;
    MakeRequest request = limited("pvc-" + std::to_string(process), {.bytes = size});
    request.size = size;
    request.room.overcommit = false;
    const auto made = base.volumes(own).make(request);
    return made.ok() ? 0 : made.error().is(ErrorCode::kUnfit) ? 4 : 1;
  });
  CHECK(std::ranges::count(codes, 0) == 3);
  CHECK(std::ranges::count(codes, 4) == 5);
  CHECK(volumes.list()->volumes.size() == 3);
  CHECK(volumes.usage()->promised_bytes == 3 * size);

  // Growing takes room, too, and what is held counts once.
  const std::string first = volumes.list()->volumes[0].id;
  CHECK(fill(base.at(first + "/data"), 16 * kMiB).error == 0);
  const auto grow = [&](std::uint64_t to) {
    return volumes.resize(
        {.id = first, .limits = {.bytes = to}, .size = to, .room = {.overcommit = false}});
  };
  CHECK(grow(size + size / 4).ok());
  CHECK(grow(2 * size).error().is(ErrorCode::kUnfit));
  CHECK(volumes.usage()->promised_bytes == 3 * size + size / 4);
}

TEST_CASE("a directory that is in use is adopted with all that is in it" * NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto adopt = [&](Limits limits) {
    return volumes.adopt(
        {.id = "pvc-1", .path = "web/pvc-1", .limits = limits, .size = limits.bytes});
  };
  CHECK(adopt({.bytes = kMiB}).error().is(ErrorCode::kNotFound));
  std::filesystem::create_directories(base.at("web/pvc-1/a/b"));
  REQUIRE(fill(base.at("web/pvc-1/one"), 2 * kMiB).error == 0);
  REQUIRE(fill(base.at("web/pvc-1/a/b/two"), 2 * kMiB).error == 0);
  REQUIRE(fill(base.at("web/outside"), 3 * kMiB).error == 0);
  std::filesystem::create_symlink(base.at("web/outside"), base.at("web/pvc-1/link"));
  REQUIRE(::mkfifo(base.at("web/pvc-1/pipe").c_str(), 0600) == 0);
  // A pod has a file open, and goes on to write into it.
  const UniqueFd open(
      ::open(base.at("web/pvc-1/a/b/two").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));

  CHECK(adopt({.bytes = 3 * kMiB}).error().is(ErrorCode::kInvalid));
  const auto adopted = adopt({.bytes = 6 * kMiB});
  REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
  CHECK(adopted->origin == Origin::kFound);
  const auto usage = volumes.usage();
  REQUIRE(usage->volumes[0].use.has_value());
  CHECK(usage->volumes[0].use->bytes >= 4 * kMiB);
  CHECK(usage->volumes[0].use->bytes < 5 * kMiB);
  CHECK(is_full(fill(base.at("web/pvc-1/a/three"), 8 * kMiB).error));
  const std::string block(kMiB, 'x');
  CHECK(::write(open.get(), block.data(), block.size()) < static_cast<ssize_t>(block.size()));
  CHECK(fill(base.at("web/outside"), 3 * kMiB).error == 0);

  // Again it gets another limit; one in that project gets its own.
  CHECK(adopt({.bytes = 8 * kMiB})->limits.bytes == 8 * kMiB);
  CHECK(volumes.make({.id = "pvc-1", .path = "web/pvc-1"})->limits.bytes == 8 * kMiB);
  // For another claim it is on record for that one.
  const auto given = volumes.adopt({.id = "pvc-1",
                                    .path = "web/pvc-1",
                                    .claim = "web/later",
                                    .uid = "u-2",
                                    .limits = {.bytes = 8 * kMiB}});
  REQUIRE_MESSAGE(given.ok(), given.error().message);
  CHECK(volumes.list()->volumes.at(0).claim == "web/later");
  CHECK(volumes.list()->volumes.at(0).uid == "u-2");
  std::filesystem::create_directory(base.at("web/pvc-2"));
  const UniqueFd second(kernel.open(base.at("web/pvc-2").c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(ProjectQuota::set_project(kernel, second.get(), adopted->project).ok());
  const auto other = volumes.adopt({.id = "pvc-2", .path = "web/pvc-2", .limits = {.bytes = kMiB}});
  REQUIRE_MESSAGE(other.ok(), other.error().message);
  CHECK(other->project != adopted->project);
  CHECK(volumes.adopt({.id = "pvc-3", .path = "web/pvc-1", .limits = {.bytes = kMiB}})
            .error()
            .is(ErrorCode::kInvalid));
  // Nobody made it for the volume: a take-back leaves it.
  CHECK(*volumes.remove({.id = "pvc-1", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(base.has("web/pvc-1/a/b/two"));
}

TEST_CASE("an adoption tells how far it is, stops when asked to, and goes on the next time" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  std::filesystem::create_directory(base.at("a"));
  constexpr int kFiles = 10'000;
  make_files(base.at("a"), kFiles);
  std::stop_source stop;
  std::uint64_t told = 0;
  AdoptRequest request{.id = "pvc-1", .path = "a", .limits = {.bytes = kMiB}};
  request.stop = stop.get_token();
  request.progress = [&](std::uint64_t done) {
    told = done;
    stop.request_stop();
  };
  CHECK(volumes.adopt(request).error().is(ErrorCode::kCancelled));
  CHECK(told > 0);
  CHECK(told < kFiles);
  request.stop = {};
  const auto adopted = volumes.adopt(request);
  REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
  CHECK(told > kFiles / 2);
  CHECK(volumes.usage()->volumes.at(0).use->inodes == kFiles + 1);
}

TEST_CASE("a directory that was there changes no limit of another volume's project" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto victim = volumes.make(limited("pvc-1", {.bytes = 4 * kMiB}));
  REQUIRE(victim.ok());
  // Its owner may give a directory any project.
  std::filesystem::create_directories(base.at("web/pvc-2"));
  const UniqueFd folder(kernel.open(base.at("web/pvc-2").c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(ProjectQuota::set_project(kernel, folder.get(), victim->project).ok());
  MakeRequest request{.id = "pvc-2", .path = "web/pvc-2"};
  request.limits = {.bytes = 64 * kMiB};
  SUBCASE("with something in it") {
    REQUIRE(fill(base.at("web/pvc-2/data"), kMiB).error == 0);
    CHECK(volumes.make(request).error().is(ErrorCode::kInvalid));
  }
  SUBCASE("empty") {
    const auto made = volumes.make(request);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->project != victim->project);
    CHECK(fill(base.at("web/pvc-2/data"), 6 * kMiB).error == 0);
  }
  SUBCASE("adopted") {
    REQUIRE(fill(base.at("web/pvc-2/data"), kMiB).error == 0);
    const auto adopted =
        volumes.adopt({.id = "pvc-2", .path = "web/pvc-2", .limits = {.bytes = 64 * kMiB}});
    REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
    CHECK(adopted->project != victim->project);
  }
  const std::uint64_t held = fill(base.at("pvc-1/data"), 64 * kMiB).bytes;
  CHECK(held > 2 * kMiB);
  CHECK(held <= 4 * kMiB);
}

TEST_CASE("a make again gives what is there the size that is asked for now, or says why not" *
          NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(limited("pvc-1", {.bytes = 4 * kMiB}));
  REQUIRE(made.ok());
  REQUIRE(volumes.make(limited("pvc-1", {.bytes = 8 * kMiB})).ok());
  CHECK(fill(base.at("pvc-1/data"), 6 * kMiB).error == 0);
  CHECK(is_full(fill(base.at("pvc-1/data"), 64 * kMiB).error));
  ::sync();  // btrfs counts when it commits
  CHECK(volumes.make(limited("pvc-1", {.bytes = 4 * kMiB})).error().is(ErrorCode::kInvalid));
  CHECK(volumes.list()->volumes[0].limits.bytes == 8 * kMiB);
  CHECK(volumes.make(limited("pvc-1", {}))->limits.bytes == 8 * kMiB);
}

TEST_CASE("a make again for the same claim lowers nothing" * NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto make = [&](const std::string& uid, std::uint64_t bytes) {
    MakeRequest request = limited("pvc-1", {.bytes = bytes});
    request.uid = uid;
    request.size = bytes;
    const auto made = volumes.make(request);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->size == made->limits.bytes);
    return made->limits.bytes;
  };
  CHECK(make("u-1", 8 * kMiB) == 8 * kMiB);
  CHECK(make("u-1", 4 * kMiB) == 8 * kMiB);  // as an old order asks for, of before it has grown
  CHECK(make("u-1", 16 * kMiB) == 16 * kMiB);
  CHECK(volumes.list()->volumes[0].limits.bytes == 16 * kMiB);
  CHECK(make("u-2", 4 * kMiB) == 4 * kMiB);  // what another claim had it is not to get
}

TEST_CASE("a make again for the same claim sets the number of files that is asked for" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(limited("pvc-2", {.bytes = kMiB, .inodes = 9})).ok());
  MakeRequest fewer = limited("pvc-2", {.bytes = kMiB, .inodes = 8});
  fewer.uid = "u-3";
  CHECK(volumes.make(fewer)->limits.inodes == 8);
  fewer.limits.inodes = 7;  // files do not grow with a claim: what is asked for counts
  CHECK(volumes.make(fewer)->limits.inodes == 7);
}

TEST_CASE("what is refused to another claim it does not get at the next attempt" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  MakeRequest request = limited("pvc-1", {.bytes = 16 * kMiB});
  request.uid = "u-1";
  request.size = request.limits.bytes;
  REQUIRE(volumes.make(request).ok());
  REQUIRE(fill(base.at("pvc-1/data"), 8 * kMiB).error == 0);
  request.uid = "u-2";
  request.size = request.limits.bytes = 4 * kMiB;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    CAPTURE(attempt);
    const auto made = volumes.make(request);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().is(ErrorCode::kInvalid));
  }
  request.size = request.limits.bytes = 12 * kMiB;  // it holds less
  REQUIRE(volumes.make(request).ok());
  CHECK(volumes.list()->volumes.at(0).limits.bytes == 12 * kMiB);
  CHECK(volumes.list()->volumes.at(0).size == 12 * kMiB);
}

TEST_CASE("a make again gives a limit to a directory that had none" * NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(limited("pvc-2", {})).ok());
  REQUIRE(volumes.make(limited("pvc-2", {.bytes = 4 * kMiB})).ok());
  CHECK(is_full(fill(base.at("pvc-2/data"), 64 * kMiB).error));
  REQUIRE(volumes.make(limited("pvc-3", {})).ok());
  CHECK(fill(base.at("pvc-3/data"), kMiB).error == 0);
  CHECK(volumes.make(limited("pvc-3", {.bytes = 4 * kMiB})).error().is(ErrorCode::kInvalid));
}

TEST_CASE("no limit is told of a directory that has left it, or of another one in its place" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto grow = [&] {
    return volumes.resize({.id = "pvc-1", .limits = {.bytes = 16 * kMiB}, .limited = true});
  };
  const auto check_is_refused = [&] {
    for (const auto& result : {volumes.make(limited("pvc-1", {.bytes = 8 * kMiB})), grow()}) {
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().is(ErrorCode::kInvalid));
      CHECK(result.error().message.find("node adopt") != std::string::npos);
    }
    CHECK(volumes.list()->volumes.at(0).limits.bytes == 8 * kMiB);
  };
  REQUIRE(volumes.make(limited("pvc-1", {.bytes = 8 * kMiB})).ok());
  // As root in a container can.
  {
    const UniqueFd folder(kernel.open(base.at("pvc-1").c_str(), O_RDONLY | O_DIRECTORY));
    REQUIRE(ProjectQuota::set_project(kernel, folder.get(), 0).ok());
  }
  check_is_refused();
  REQUIRE(volumes.adopt({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 8 * kMiB}}).ok());
  CHECK(volumes.make(limited("pvc-1", {.bytes = 8 * kMiB})).ok());
  // As after somebody has restored its files into a directory of their own.
  std::filesystem::rename(base.at("pvc-1"), base.at("former"));
  std::filesystem::create_directory(base.at("pvc-1"));
  CHECK_FALSE(grow().ok());
  CHECK(volumes.list()->volumes.at(0).limits.bytes == 8 * kMiB);
}

TEST_CASE("an adoption leaves alone a project that is not ours, which others may be in" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  constexpr std::uint32_t kForeign = 77;
  for (const char* name : {"web/pvc-1", "web/other"}) {
    std::filesystem::create_directories(base.at(name));
    const UniqueFd folder(kernel.open(base.at(name).c_str(), O_RDONLY | O_DIRECTORY));
    REQUIRE(ProjectQuota::set_project(kernel, folder.get(), kForeign).ok());
  }
  REQUIRE(fill(base.at("web/pvc-1/data"), kMiB).error == 0);
  const auto adopted =
      volumes.adopt({.id = "pvc-1", .path = "web/pvc-1", .limits = {.bytes = 2 * kMiB}});
  REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
  CHECK(ProjectQuota::is_own(adopted->project));
  CHECK(volumes.usage()->volumes[0].use->bytes >= kMiB);
  CHECK(is_full(fill(base.at("web/pvc-1/data"), 8 * kMiB).error));
  CHECK(fill(base.at("web/other/data"), 8 * kMiB).error == 0);
}

TEST_CASE("a base folder that belongs to a project itself is refused for limits" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(ProjectQuota::set_project(kernel, folder.get(), 77).ok());
  const auto made = volumes.make(limited("pvc-1", {.bytes = kMiB}));
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().is(ErrorCode::kUnfit));
  CHECK(made.error().message.find("project 77") != std::string::npos);
  REQUIRE(ProjectQuota::set_project(kernel, folder.get(), 0).ok());
}

TEST_CASE("processes that make volumes at once never share a project" * NeedsLimits()) {
  const BaseFolder base;
  constexpr int kProcesses = 4;
  constexpr int kEach = 8;
  const auto codes = testing::at_once(kProcesses, [&](int process) {
    Kernel kernel;
    const auto volumes = base.volumes(kernel);
    bool all = true;
    for (int i = 0; i < kEach; ++i) {
      const std::string id = std::to_string(process) + "-" + std::to_string(i);
      all = volumes.make(limited(id, {.bytes = kMiB})).ok() && all;
    }
    return all ? 0 : 1;
  });
  CHECK(codes == std::vector<int>(kProcesses, 0));
  Kernel kernel;
  const auto listing = base.volumes(kernel).list();
  REQUIRE(listing.ok());
  std::set<std::uint32_t> projects;
  for (const Volume& volume : listing->volumes) projects.insert(volume.project);
  CHECK(projects.size() == kProcesses * kEach);
  for (const Volume& volume : listing->volumes) {
    CHECK(base.volumes(kernel).remove({.id = volume.id}).ok());
  }
}

TEST_CASE("a volume of a former life goes though its limit was changed or its project left" *
          NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(limited("pvc-1", {.bytes = 4 * kMiB})).ok());
  // The owner of a directory can take it out of its project, or put another one into it.
  std::filesystem::create_directory(base.at("pvc-1/other"));
  const UniqueFd other(kernel.open(base.at("pvc-1/other").c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(ProjectQuota::set_project(kernel, other.get(), 78).ok());
  base.write("pvc-1/other/file");
  std::string deep = "pvc-1/other";
  for (int i = 0; i < 40; ++i) deep += "/d";
  base.write(deep + "/file");
  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(base.content().empty());
}
