// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "everywhere.h"
#include "harness/file_text.h"
#include "node/held_limits.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// Every system call has a place before and one after it: the process ends there, or the call fails.

namespace {

void nothing(const BaseFolder& /*base*/) {}

bool make_one(const Volumes& volumes) {
  return volumes.make(make_request("pvc-1", "web/pvc-1")).ok();
}

void make_and_fill(const BaseFolder& base) {
  Kernel kernel;
  REQUIRE(make_one(base.volumes(kernel)));
  base.write("web/pvc-1/file");
  base.write("web/pvc-1/folder/file");
}

bool remove_one(const Volumes& volumes) { return volumes.remove({.id = "pvc-1"}).ok(); }

constexpr std::uint64_t kGrown = 16 * kMiB;

Limits grown() { return BaseFolder::has_limits() ? Limits{.bytes = kGrown} : Limits{}; }

bool grow_one(const Volumes& volumes) {
  return volumes
      .resize({.id = "pvc-1",
               .limits = grown(),
               .size = kGrown,
               .limited = BaseFolder::has_limits(),
               .room = {.reserve = Room::Reserve{}, .overcommit = false}})
      .ok();
}

bool make_grown(const Volumes& volumes) {
  MakeRequest request = make_request("pvc-1", "web/pvc-1");
  request.limits = grown();
  request.size = kGrown;
  return volumes.make(request).ok();
}

/// The one volume as it is on record, with the limits that hold it.
VolumeUsage only_volume(const Volumes& volumes) {
  const auto usage = volumes.usage();
  REQUIRE(usage.ok());
  REQUIRE(usage->volumes.size() == 1);
  const VolumeUsage& only = usage->volumes[0];
  REQUIRE(only.use.has_value() == BaseFolder::has_limits());
  return only;
}

/// What was interrupted has made nothing smaller; what `again` does is whole, whatever came before.
Check check_grows(const Work& again) {
  return [again](const BaseFolder& base, const Volumes& volumes) {
    const Limits before = BaseFolder::limits();
    const VolumeUsage between = only_volume(volumes);
    CHECK((between.volume.limits == before || between.volume.limits == grown()));
    if (between.use) CHECK((between.use->limits == before || between.use->limits == grown()));
    REQUIRE(again(volumes));
    const VolumeUsage after = only_volume(volumes);
    CHECK(after.volume.limits == grown());
    CHECK(after.volume.size == kGrown);
    CHECK(after.volume.state == State::kPresent);
    if (after.use) CHECK(after.use->limits == grown());
    CHECK(base.content() == std::set<std::string>{"web", "web/pvc-1", "web/pvc-1/file",
                                                  "web/pvc-1/folder", "web/pvc-1/folder/file",
                                                  BaseFolder::record("volume.pvc-1.json")});
    CHECK(text_of(base.at("web/pvc-1/file")) == "data");
    CHECK(text_of(base.at("web/pvc-1/folder/file")) == "data");
  };
}

/// There and recorded, and nothing else.
void check_made(const BaseFolder& base, const Volumes& volumes) {
  CHECK(base.content() ==
        std::set<std::string>{"web", "web/pvc-1", BaseFolder::record("volume.pvc-1.json")});
  const auto listing = volumes.list();
  REQUIRE(listing.ok());
  REQUIRE(listing->volumes.size() == 1);
  const Volume& volume = listing->volumes[0];
  CHECK(volume.origin == Origin::kMade);
  CHECK(volume.state == State::kPresent);
  struct stat status {};
  REQUIRE(::stat(base.at("web/pvc-1").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 02770);
  if (!BaseFolder::has_subvolumes()) CHECK(status.st_ino == volume.directory.inode);
  if (!BaseFolder::has_limits()) return;
  const auto usage = volumes.usage();
  REQUIRE(usage.ok());
  REQUIRE(usage->volumes[0].use.has_value());
  CHECK(usage->volumes[0].use->limits == BaseFolder::limits());
}

/// No project of ours is limited. It may count for a while: XFS frees inodes when it has time.
void check_no_projects(const BaseFolder& base) {
  if (!BaseFolder::has_limits()) return;
  Kernel kernel;
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto quota = ProjectQuota::open(kernel, folder.get());
  REQUIRE(quota.ok());
  const auto uses = quota->uses();
  REQUIRE(uses.ok());
  for (const ProjectUse& use : *uses) {
    CHECK_MESSAGE((!ProjectQuota::is_own(use.project) || !use.limits.any()), use.project);
  }
}

void check_gone(const BaseFolder& base, const Volumes& volumes) {
  CHECK(base.content().empty());
  CHECK(volumes.list()->volumes.empty());
  check_no_projects(base);
}

}  // namespace

TEST_CASE("a make that crashes anywhere is finished once by the next one") {
  const int places = crash_everywhere(nothing, make_one, [](const auto& base, const auto& volumes) {
    REQUIRE(make_one(volumes));
    check_made(base, volumes);
  });
  CHECK(places > 40);
}

TEST_CASE("a make that crashes anywhere is taken back without a trace") {
  crash_everywhere(nothing, make_one, [](const auto& base, const auto& volumes) {
    const auto removed =
        volumes.remove({.id = "pvc-1", .path = "web/pvc-1", .removal = Removal::kTakeBack});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK(*removed != Removed::kKept);
    check_gone(base, volumes);
  });
}

TEST_CASE("a make that crashes anywhere is finished or undone by recovery") {
  bool finished = false;
  bool undone = false;
  crash_everywhere(nothing, make_one, [&](const auto& base, const auto& volumes) {
    const auto problems = volumes.recover({});
    REQUIRE(problems.ok());
    CHECK(problems->empty());
    const auto content = base.content();
    if (content.count("web/pvc-1") != 0) {
      finished = true;
      check_made(base, volumes);
    } else {
      undone = true;
      CHECK(volumes.list()->volumes.empty());
      check_no_projects(base);
    }
  });
  CHECK(finished);
  CHECK(undone);
}

TEST_CASE("a make over a directory that was there crashes anywhere, and it is kept") {
  const auto put = [](const BaseFolder& base) { base.make_directory("web/pvc-1"); };
  crash_everywhere(put, make_one, [](const auto& base, const auto& volumes) {
    const auto removed =
        volumes.remove({.id = "pvc-1", .path = "web/pvc-1", .removal = Removal::kTakeBack});
    REQUIRE_MESSAGE(removed.ok(), removed.error().message);
    CHECK(*removed == Removed::kKept);
    CHECK(base.has("web/pvc-1"));
    CHECK(volumes.list()->volumes.empty());
    const auto made = volumes.make(make_request("pvc-1", "web/pvc-1"));
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    CHECK(made->origin == Origin::kFound);
  });
}

TEST_CASE("an adoption that crashes or fails anywhere loses nothing, and the next one ends it" *
          NeedsLimits()) {
  const auto put = [](const BaseFolder& base) {
    base.make_directory("web/pvc-1");
    base.write("web/pvc-1/file");
    base.write("web/pvc-1/folder/file");
  };
  const auto work = [](const Volumes& volumes) {
    return volumes.adopt({.id = "pvc-1", .path = "web/pvc-1", .limits = BaseFolder::limits()}).ok();
  };
  const auto check = [&](const auto& base, const auto& volumes) {
    CHECK(base.has("web/pvc-1/file"));
    CHECK(base.has("web/pvc-1/folder/file"));
    REQUIRE(work(volumes));
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    REQUIRE(usage->volumes.size() == 1);
    if (BaseFolder::has_projects()) CHECK(usage->volumes[0].use->inodes == 4);
    CHECK(usage->volumes[0].use->limits == BaseFolder::limits());
    CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
    check_gone(base, volumes);
  };
  CHECK(crash_everywhere(put, work, check) > 50);
  for (const int error : {EIO, EDQUOT, EPERM, EROFS}) {
    // Each subvolume is a commit of the whole file system.
    if (BaseFolder::has_subvolumes() && error != EIO) continue;
    CAPTURE(error);
    fail_everywhere(put, work, error, check);
  }
}

namespace {

/// Limits of a volume that is adopted with others; btrfs limits no files.
Limits held_before() {
  return {.bytes = 8 * kMiB, .inodes = BaseFolder::has_projects() ? 100U : 0U};
}

void make_held(const BaseFolder& base) {
  Kernel kernel;
  MakeRequest request = make_request("pvc-1", "web/pvc-1");
  request.limits = held_before();
  request.size = request.limits.bytes;
  REQUIRE(base.volumes(kernel).make(request).ok());
  base.write("web/pvc-1/file");
  base.write("web/pvc-1/folder/file");
}

/// Takes the directory and what is in it out of its project, as its owner can.
void take_out(const BaseFolder& base) {
  Kernel kernel;
  for (const char* const name : {"web/pvc-1", "web/pvc-1/folder"}) {
    const UniqueFd folder(kernel.open(base.at(name).c_str(), O_RDONLY | O_DIRECTORY));
    REQUIRE(ProjectQuota::set_project(kernel, folder.get(), 0).ok());
  }
}

std::size_t limited_projects(const BaseFolder& base) {
  Kernel kernel;
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto quota = ProjectQuota::open(kernel, folder.get());
  REQUIRE(quota.ok());
  const auto uses = quota->uses();
  REQUIRE(uses.ok());
  return static_cast<std::size_t>(std::count_if(
      uses->begin(), uses->end(),
      [](const ProjectUse& use) { return ProjectQuota::is_own(use.project) && use.limits.any(); }));
}

bool within(std::uint64_t held, std::uint64_t told) {
  return told == 0 || (held != 0 && held <= told);
}

/// What an adoption with other limits has come to, at whichever place it has ended.
struct Readoption {
  std::uint64_t bytes = 0;
  bool taken_out = false;  // beforehand

  Limits wanted() const { return {.bytes = bytes, .inodes = held_before().inodes}; }
  bool work(const Volumes& volumes) const {
    return volumes
        .adopt({.id = "pvc-1", .path = "web/pvc-1", .limits = {.bytes = bytes}, .size = bytes})
        .ok();
  }
  /// The limit on record holds, or it is told that it does not.
  void check_record(const Volumes& volumes, bool killed) const {
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    REQUIRE(usage->volumes.size() == 1);
    const auto& [volume, use, out] = usage->volumes[0];
    if (taken_out) {
      const bool is_told = limits_not_held(*usage).size() == 1;
      CHECK(volume.state == State::kPresent);
      CHECK((is_told || use->limits == volume.limits));
      return;
    }
    REQUIRE(use.has_value());
    CHECK(volume.state == State::kPresent);
    CHECK(volume.limits.any());
    CHECK(within(use->limits.bytes, volume.limits.bytes));
    CHECK(within(use->limits.inodes, volume.limits.inodes));
    if (killed) return;
    CHECK(use->limits == volume.limits);
    CHECK((volume.limits == held_before() || volume.limits == wanted()));
    CHECK(volume.size == volume.limits.bytes);
  }
  Check check(bool killed) const {
    return [this, killed](const BaseFolder& base, const Volumes& volumes) {
      check_record(volumes, killed);
      REQUIRE(work(volumes));
      const VolumeUsage after = only_volume(volumes);
      CHECK(after.volume.state == State::kPresent);
      CHECK(after.volume.limits == wanted());
      CHECK(after.volume.size == bytes);
      CHECK(after.use->limits == wanted());
      CHECK(limits_not_held(*volumes.usage()).empty());
      if (BaseFolder::has_projects()) {
        CHECK(after.use->inodes == 4);
        CHECK(limited_projects(base) == 1);
      }
      CHECK(text_of(base.at("web/pvc-1/folder/file")) == "data");
      CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
      check_gone(base, volumes);
    };
  }
  void everywhere(const Prepare& prepare) const {
    const Work work = [this](const Volumes& volumes) { return this->work(volumes); };
    CHECK(crash_everywhere(prepare, work, check(true)) > 40);
    for (const int error : {EIO, EDQUOT}) {
      if (BaseFolder::has_subvolumes() && error != EIO) continue;
      CAPTURE(error);
      fail_everywhere(prepare, work, error, check(false));
    }
  }
};

}  // namespace

TEST_CASE("an adoption with other limits that crashes or fails anywhere tells what holds" *
          NeedsLimits()) {
  for (const std::uint64_t bytes : {4 * kMiB, 16 * kMiB}) {
    CAPTURE(bytes);
    Readoption{.bytes = bytes}.everywhere(make_held);
  }
}

TEST_CASE("an adoption of what has left its limit leaves no limit of the former project behind" *
          NeedsProjects()) {
  const auto put = [](const BaseFolder& base) {
    make_held(base);
    take_out(base);
  };
  const Readoption again{.bytes = 4 * kMiB, .taken_out = true};
  again.everywhere(put);
  const auto work = [&](const Volumes& volumes) { return again.work(volumes); };
  crash_everywhere(put, work, [](const auto& base, const auto& volumes) {
    CHECK(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
    check_gone(base, volumes);
  });
}

namespace {

/// At how many places an adoption has crashed, and after how many of these and of the one that did
/// not a resize held.
struct Resized {
  int places = 0;
  int held = 0;
};

/// What does not hold is told, and says to adopt again.
template <typename Put>
Resized resize_after_crashes(Put put) {
  const Readoption adoption{.bytes = 4 * kMiB};
  const auto work = [&](const Volumes& volumes) { return adoption.work(volumes); };
  Resized all;
  const auto check = [&](const auto& /*base*/, const auto& volumes) {
    const bool is_told = limits_not_held(*volumes.usage()).size() == 1;
    const auto resized = volumes.resize(
        {.id = "pvc-1", .limits = {.bytes = kGrown}, .size = kGrown, .limited = true});
    if (!resized.ok()) {
      CHECK(resized.error().message.find("'node adopt' sets it again") != std::string::npos);
      CHECK(is_told);
      return;
    }
    ++all.held;
    const VolumeUsage after = only_volume(volumes);
    CHECK(after.volume.state == State::kPresent);
    CHECK(after.volume.limits.bytes == kGrown);
    CHECK(after.use->limits == after.volume.limits);
    CHECK(limits_not_held(*volumes.usage()).empty());
  };
  all.places = crash_everywhere(put, work, check);
  return all;
}

}  // namespace

TEST_CASE("a resize after an adoption that crashed anywhere holds" * NeedsLimits()) {
  const auto [places, held] = resize_after_crashes(make_held);
  CHECK(held == places + 1);
}

TEST_CASE("a resize after an adoption that crashed anywhere holds, or says to adopt again" *
          NeedsProjects()) {
  const Resized resized = resize_after_crashes([](const BaseFolder& base) {
    make_held(base);
    take_out(base);
  });
  CHECK(resized.held > 1);
}

TEST_CASE("an adoption that is refused leaves limits and record as they were" * NeedsLimits()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  make_held(base);
  base.write("web/pvc-1/big", std::string(3 * kMiB, 'x'));
  ::sync();
  const auto refused = volumes.adopt({.id = "pvc-1",
                                      .path = "web/pvc-1",
                                      .claim = "web/later",
                                      .uid = "u-2",
                                      .limits = {.bytes = 2 * kMiB}});
  CHECK(refused.error().is(ErrorCode::kInvalid));
  const VolumeUsage after = only_volume(volumes);
  CHECK(after.volume.limits == held_before());
  CHECK(after.volume.size == held_before().bytes);
  CHECK(after.volume.uid == make_request("pvc-1", "web/pvc-1").uid);
  CHECK(after.use->limits == held_before());
}

TEST_CASE("a volume that crashes or fails anywhere while it grows is never smaller, then has all") {
  CHECK(crash_everywhere(make_and_fill, grow_one, check_grows(grow_one)) > 40);
  for (const int error : {EIO, ENOSPC, EDQUOT, EPERM, EROFS, ESRCH}) {
    if (BaseFolder::has_subvolumes() && error != EIO && error != ENOSPC) continue;
    CAPTURE(error);
    fail_everywhere(make_and_fill, grow_one, error, check_grows(grow_one));
  }
}

TEST_CASE("a make of more than there is crashes or fails anywhere, and the next one gives it all") {
  CHECK(crash_everywhere(make_and_fill, make_grown, check_grows(make_grown)) > 30);
  fail_everywhere(make_and_fill, make_grown, EIO, check_grows(make_grown));
}

TEST_CASE("a removal that crashes anywhere is finished by the next one") {
  const int places =
      crash_everywhere(make_and_fill, remove_one, [](const auto& base, const auto& volumes) {
        REQUIRE(remove_one(volumes));
        check_gone(base, volumes);
      });
  CHECK(places > 40);
}

TEST_CASE("a removal that crashes anywhere has not begun, or recovery ends it") {
  crash_everywhere(make_and_fill, remove_one, [](const auto& base, const auto& volumes) {
    const auto listing = volumes.list();
    const auto problems = volumes.recover({});
    REQUIRE(problems.ok());
    CHECK(problems->empty());
    if (base.has("web/pvc-1")) {
      CHECK(base.has("web/pvc-1/file"));
      CHECK(base.has("web/pvc-1/folder/file"));
      CHECK(volumes.list()->volumes.at(0).state == State::kPresent);
      CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
    } else {
      CHECK_FALSE(base.has(BaseFolder::record("gone.pvc-1")));
      REQUIRE(remove_one(volumes));
      check_gone(base, volumes);
    }
  });
}

TEST_CASE("a removal by path that crashes anywhere is finished by the next one") {
  const auto put = [](const BaseFolder& base) { base.write("web/pvc-1/file"); };
  const auto work = [](const Volumes& volumes) {
    return volumes.remove({.id = "pvc-1", .path = "web/pvc-1"}).ok();
  };
  crash_everywhere(put, work, [&](const auto& base, const auto& volumes) {
    REQUIRE(work(volumes));
    check_gone(base, volumes);
  });
}

TEST_CASE("whichever system call fails, the next attempt makes and removes the volume") {
  for (const int error : {EIO, ENOSPC, EPERM, EINTR}) {
    // Each subvolume is a commit of the whole file system.
    if (BaseFolder::has_subvolumes() && error != EIO && error != EPERM) continue;
    CAPTURE(error);
    fail_everywhere(nothing, make_one, error, [](const auto& base, const auto& volumes) {
      REQUIRE(make_one(volumes));
      check_made(base, volumes);
    });
    fail_everywhere(make_and_fill, remove_one, error, [](const auto& base, const auto& volumes) {
      REQUIRE(remove_one(volumes));
      check_gone(base, volumes);
    });
  }
}
