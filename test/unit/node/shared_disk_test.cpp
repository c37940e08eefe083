// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <linux/dqblk_xfs.h>

#include <utility>

#include "fakes/eventually.h"
#include "harness/file_text.h"
#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// Two base folders on one file system: no lock is common to both, and the numbers of projects are.

namespace {

MakeRequest limited(const std::string& id, std::uint64_t bytes) {
  return {.id = id, .path = id, .limits = {.bytes = bytes}, .size = bytes};
}

std::uint64_t limit_of(std::uint32_t project) {
  Kernel kernel;
  const UniqueFd folder(kernel.open(BaseFolder::root().c_str(), O_RDONLY | O_DIRECTORY));
  const auto use = ProjectQuota::open(kernel, folder.get())->use(project);
  return use.ok() && *use ? (*use)->limits.bytes : 0;
}

void tag(const std::string& path, std::uint32_t project) {
  Kernel kernel;
  const UniqueFd folder(kernel.open(path.c_str(), O_RDONLY | O_DIRECTORY));
  REQUIRE(ProjectQuota::set_project(kernel, folder.get(), project).ok());
}

/// Does something else right after a number was found to be free, or before a limit is set.
class MeetingKernel final : public Kernel {
 public:
  explicit MeetingKernel(std::function<void()> meanwhile, unsigned at = Q_XGETQUOTA)
      : meanwhile_(std::move(meanwhile)), at_(at) {}
  int quota(int fd, const char* device, unsigned command, std::uint32_t project,
            void* argument) override {
    if (at_ == Q_XSETQLIM && command == at_ && meanwhile_) std::exchange(meanwhile_, nullptr)();
    const int result = Kernel::quota(fd, device, command, project, argument);
    const int error = errno;
    if (command == at_ && meanwhile_) std::exchange(meanwhile_, nullptr)();
    errno = error;
    return result;
  }

 private:
  std::function<void()> meanwhile_;
  const unsigned at_;
};

/// A disk on which projects are counted, with directories that others tag at once.
class CountingKernel : public Kernel {
 public:
  int attributes(int /*fd*/, fsxattr& to) override {
    to = {};
    to.fsx_projid = project;
    to.fsx_xflags = handed_down ? FS_XFLAG_PROJINHERIT : 0;
    return 0;
  }
  int set_attributes(int /*fd*/, const fsxattr& from) override {
    project = from.fsx_projid;
    handed_down = (from.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0;
    if (project != 0) ++tagged;
    return 0;
  }
  int quota(int /*fd*/, const char* /*device*/, unsigned command, std::uint32_t number,
            void* argument) override {
    auto& quota = *static_cast<fs_disk_quota*>(argument);
    if (command == Q_XSETQLIM) {
      limits[number] = quota.d_blk_hardlimit * 512;
      return 0;
    }
    quota.d_id = number;
    quota.d_icount = others[number] + (project == number ? 1 + others_after_tagging : 0);
    quota.d_blk_hardlimit = limits[number] / 512;
    return 0;
  }

  std::uint32_t project = 0;
  bool handed_down = false;
  int tagged = 0;
  std::uint64_t others_after_tagging = 0;
  std::map<std::uint32_t, std::uint64_t> others{};
  std::map<std::uint32_t, std::uint64_t> limits{};
};

}  // namespace

TEST_CASE("a project is believed only when one directory has it") {
  const BaseFolder base;
  CountingKernel kernel;
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto quota = ProjectQuota::assumed(kernel, folder.get());
  SUBCASE("nobody comes in between") {
    const auto given = quota.give_project(folder.get(), "pvc-1");
    REQUIRE(given.ok());
    CHECK(kernel.project == *given);
    CHECK(kernel.handed_down);
  }
  SUBCASE("somebody always does") {
    kernel.project = 77;
    kernel.handed_down = true;
    kernel.others_after_tagging = 1;
    const auto given = quota.give_project(folder.get(), "pvc-1");
    REQUIRE_FALSE(given.ok());
    CHECK(given.error().is(ErrorCode::kUnavailable));
    CHECK(kernel.project == 77);
    CHECK(kernel.handed_down);
    CHECK(kernel.tagged < 20);
  }
}

TEST_CASE("whoever has the projects that a directory would get keeps it from none") {
  /// The number that is asked for first is somebody's, and a million behind it.
  class SquattedKernel final : public CountingKernel {
   public:
    int quota(int fd, const char* device, unsigned command, std::uint32_t number,
              void* argument) override {
      if (first == 0) first = number;
      const bool taken = number - first < 1'000'000 && project != number;
      const int result = CountingKernel::quota(fd, device, command, number, argument);
      if (taken) static_cast<fs_disk_quota*>(argument)->d_icount = 1;
      return result;
    }
    std::uint32_t first = 0;
  };
  const BaseFolder base;
  std::set<std::uint32_t> given;
  for (int i = 0; i < 10; ++i) {
    SquattedKernel kernel;
    const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
    const auto one =
        ProjectQuota::assumed(kernel, folder.get()).give_project(folder.get(), "pvc-1");
    REQUIRE_MESSAGE(one.ok(), one.error().message);
    CHECK(ProjectQuota::is_own(*one));
    given.insert(*one);
  }
  CHECK(given.size() == 10);  // nobody can tell which, to have those, too
}

TEST_CASE("where every project is somebody's the search ends and tells so") {
  class TakenKernel final : public CountingKernel {
   public:
    int quota(int fd, const char* device, unsigned command, std::uint32_t number,
              void* argument) override {
      ++asked;
      const int result = CountingKernel::quota(fd, device, command, number, argument);
      static_cast<fs_disk_quota*>(argument)->d_icount = 1;
      return result;
    }
    int asked = 0;
  };
  const BaseFolder base;
  TakenKernel kernel;
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto given =
      ProjectQuota::assumed(kernel, folder.get()).give_project(folder.get(), "pvc-1");
  REQUIRE_FALSE(given.ok());
  CHECK(given.error().is(ErrorCode::kUnavailable));
  CHECK(kernel.project == 0);
  CHECK(kernel.asked <= 1000);
}

TEST_CASE("limits of a number on record are lifted only where no file has it any more") {
  CountingKernel kernel;
  const auto quota = ProjectQuota::assumed(kernel, -1);
  kernel.limits[7] = 1024;
  kernel.others[7] = 1;
  REQUIRE(quota.release_unused(7, 0).ok());
  CHECK(kernel.limits[7] == 1024);
  REQUIRE(quota.release_unused(7, 1).ok());
  CHECK(kernel.limits[7] == 0);
  kernel.limits[7] = 1024;
  kernel.others[7] = 0;
  REQUIRE(quota.release_unused(7, 0).ok());
  CHECK(kernel.limits[7] == 0);
}

TEST_CASE("two base paths on one file system give no two volumes the same project" *
          NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  std::uint32_t first = 0;
  MeetingKernel meeting([&] {
    // The same id, and so the same number to begin with.
    const auto made = b.volumes(kernel).make(limited("pvc-1", 4 * kMiB));
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    first = made->project;
  });
  Result<Volume> second = Error{};
  SUBCASE("a new one") { second = a.volumes(meeting).make(limited("pvc-1", 8 * kMiB)); }
  SUBCASE("an empty directory that is there") {
    std::filesystem::create_directory(a.at("pvc-1"));
    second = a.volumes(meeting).make(limited("pvc-1", 8 * kMiB));
  }
  SUBCASE("a directory that is adopted") {
    a.write("pvc-1/file");
    a.write("pvc-1/folder/file");
    second =
        a.volumes(meeting).adopt({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 8 * kMiB}});
  }
  REQUIRE_MESSAGE(second.ok(), second.error().message);
  REQUIRE(first != 0);
  CHECK(second->project != first);
  CHECK(limit_of(first) == 4 * kMiB);
  CHECK(limit_of(second->project) == 8 * kMiB);
  CHECK(fill(b.at("pvc-1/data"), 64 * kMiB).bytes <= 4 * kMiB);
  CHECK(fill(a.at("pvc-1/data"), 64 * kMiB).bytes > 7 * kMiB);
}

TEST_CASE("processes that make the same ids at once in two base paths share no project" *
          NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  constexpr int kEach = 16;
  const auto codes = testing::at_once(4, [&](int process) {
    const int first = process < 2 ? 0 : kEach;
    Kernel kernel;
    const auto volumes = (process % 2 == 0 ? a : b).volumes(kernel);
    bool all = true;
    for (int i = first; i < first + kEach; ++i) {
      all = volumes.make(limited("pvc-" + std::to_string(i), kMiB)).ok() && all;
    }
    return all ? 0 : 1;
  });
  CHECK(codes == std::vector<int>(4, 0));
  Kernel kernel;
  std::set<std::uint32_t> projects;
  for (const BaseFolder* base : {&a, &b}) {
    const auto listing = base->volumes(kernel).list();
    for (const Volume& volume : listing->volumes) {
      projects.insert(volume.project);
      CHECK(limit_of(volume.project) == kMiB);
    }
  }
  CHECK(projects.size() == 4 * kEach);
  for (const BaseFolder* base : {&a, &b}) {
    const auto listing = base->volumes(kernel).list();
    for (const Volume& volume : listing->volumes) {
      CHECK(*base->volumes(kernel).remove({.id = volume.id}) == Removed::kRemoved);
      CHECK(limit_of(volume.project) == 0);
    }
  }
}

TEST_CASE("a record that a crash has left does not lift the limit of who has its project now" *
          NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  const auto volumes = a.volumes(kernel);
  REQUIRE(volumes.make(limited("pvc-1", 8 * kMiB)).ok());
  const std::string record = BaseFolder::record("volume.pvc-1.json");
  const std::string text = text_of(a.at(record));
  const std::uint32_t project = volumes.list()->volumes.at(0).project;
  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(limit_of(project) == 0);
  // As between lifting the limit and erasing the record; then somebody gets the same number.
  a.write(record, text);
  // XFS counts a moment later what has gone: until then it is somebody's.
  REQUIRE(eventually([&] {
    const auto other = b.volumes(kernel).make(limited("pvc-1", 4 * kMiB));
    REQUIRE_MESSAGE(other.ok(), other.error().message);
    if (other->project == project) return true;
    REQUIRE(*b.volumes(kernel).remove({.id = "pvc-1"}) == Removed::kRemoved);
    return false;
  }));
  SUBCASE("removed again") { CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kAbsent); }
  SUBCASE("swept") { CHECK(*volumes.sweep("pvc-1", {})); }
  SUBCASE("taken back") {
    CHECK(*volumes.remove({.id = "pvc-1", .removal = Removal::kTakeBack}) == Removed::kAbsent);
  }
  SUBCASE("made again") {
    const auto again = volumes.make(limited("pvc-1", 16 * kMiB));
    REQUIRE_MESSAGE(again.ok(), again.error().message);
    CHECK(again->project != project);
  }
  SUBCASE("something else stands there by now") {
    std::filesystem::create_directory(a.at("pvc-1"));
    CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  }
  CHECK(limit_of(project) == 4 * kMiB);
}

TEST_CASE("a crash before a project was seen to be its own lifts nobody's limit" *
          NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  const auto volumes = a.volumes(kernel);
  const auto other = b.volumes(kernel).make(limited("pvc-1", 4 * kMiB));
  REQUIRE(other.ok());
  REQUIRE(volumes.make(limited("pvc-2", 8 * kMiB)).ok());
  std::filesystem::create_directory(a.at(BaseFolder::record("new.pvc-1")));
  tag(a.at(BaseFolder::record("new.pvc-1")), other->project);
  SUBCASE("recovered") { CHECK(volumes.recover({})->empty()); }
  SUBCASE("made again") {
    const auto made = volumes.make(limited("pvc-1", 8 * kMiB));
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->project != other->project);
  }
  CHECK_FALSE(a.has(BaseFolder::record("new.pvc-1")));
  CHECK(limit_of(other->project) == 4 * kMiB);
}

TEST_CASE("a removal that is called off sets no limit of a project that the directory has left" *
          NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  const auto volumes = a.volumes(kernel);
  const auto made = volumes.make(limited("pvc-1", 8 * kMiB));
  REQUIRE(made.ok());
  const auto other = b.volumes(kernel).make(limited("pvc-2", 4 * kMiB));
  REQUIRE(other.ok());
  const std::string record = BaseFolder::record("volume.pvc-1.json");
  std::string text = text_of(a.at(record));
  const std::string number = std::to_string(made->project);
  REQUIRE(text.find(number) != std::string::npos);
  a.write(record, text.replace(text.find(number), number.size(), std::to_string(other->project)));
  CHECK(volumes.remove({.id = "pvc-1", .may_begin = [] { return false; }})
            .error()
            .is(ErrorCode::kCancelled));
  CHECK(a.has("pvc-1"));
  CHECK(limit_of(other->project) == 4 * kMiB);
  CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  CHECK(limit_of(other->project) == 4 * kMiB);
}

TEST_CASE("what volumes of another base path may use is not promised once more" * NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  const std::uint64_t size = a.volumes(kernel).space()->available_bytes / 7 * 2;
  const auto make = [&](const BaseFolder& base, const std::string& id, std::uint64_t bytes) {
    MakeRequest request = limited(id, bytes);
    request.room.overcommit = false;
    return base.volumes(kernel).make(request);
  };
  REQUIRE(make(a, "pvc-1", size).ok());
  REQUIRE(make(b, "pvc-1", size).ok());
  REQUIRE(make(a, "pvc-2", size).ok());
  CHECK(fill(a.at("pvc-1/data"), 16 * kMiB).error == 0);
  CHECK(make(b, "pvc-2", size).error().is(ErrorCode::kUnfit));
  const auto grow = [&](std::uint64_t to) {
    return b.volumes(kernel).resize(
        {.id = "pvc-1", .limits = {.bytes = to}, .size = to, .room = {.overcommit = false}});
  };
  CHECK(grow(size * 2).error().is(ErrorCode::kUnfit));
  CHECK(grow(size + size / 4).ok());
  CHECK(make(b, "pvc-3", size / 5).ok());
}

TEST_CASE("base paths that promise at once what is left do not both promise it" * NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  const std::uint64_t size = a.volumes(kernel).space()->available_bytes / 7 * 4;
  MakeRequest request = limited("pvc-1", size);
  request.room.overcommit = false;
  bool met = false;
  MeetingKernel meeting([&] { met = b.volumes(kernel).make(request).ok(); });
  const auto made = a.volumes(meeting).make(request);
  REQUIRE(met);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().is(ErrorCode::kUnavailable));  // the other one may give it back
  CHECK(a.volumes(kernel).list()->volumes.empty());
  const auto later = a.volumes(kernel).make(request);
  REQUIRE_FALSE(later.ok());
  CHECK(later.error().is(ErrorCode::kUnfit));
}

TEST_CASE("volumes of two base paths that grow at once do not both get what is left" *
          NeedsProjects()) {
  const BaseFolder a;
  const BaseFolder b;
  Kernel kernel;
  const std::uint64_t part = a.volumes(kernel).space()->available_bytes / 7;
  for (const BaseFolder* base : {&a, &b}) {
    REQUIRE(base->volumes(kernel).make(limited("pvc-1", part)).ok());
  }
  const ResizeRequest request{.id = "pvc-1",
                              .limits = {.bytes = 4 * part},
                              .size = 4 * part,
                              .room = {.overcommit = false}};
  bool met = false;
  MeetingKernel meeting([&] { met = b.volumes(kernel).resize(request).ok(); }, Q_XSETQLIM);
  const auto grown = a.volumes(meeting).resize(request);
  REQUIRE(met);
  REQUIRE_FALSE(grown.ok());
  CHECK(grown.error().is(ErrorCode::kUnavailable));  // the other one may give it back
  const auto listing = a.volumes(kernel).list();
  CHECK(listing->volumes.at(0).limits.bytes == part);
  CHECK(listing->volumes.at(0).size == part);
  CHECK(limit_of(listing->volumes.at(0).project) < part + 4096);
}
