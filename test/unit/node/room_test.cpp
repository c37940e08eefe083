// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <linux/dqblk_xfs.h>

#include <limits>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

/// A disk of 1000 bytes.
BaseUsage disk_with_use(std::uint64_t used) {
  BaseUsage usage;
  usage.space = {.size_bytes = 1000, .free_bytes = 1000 - used, .available_bytes = 1000 - used};
  return usage;
}

void add_limited(BaseUsage& usage, const std::string& id, std::uint64_t size, std::uint64_t used) {
  usage.volumes.push_back({.volume = {.id = id, .limits = {.bytes = size}, .size = size},
                           .use = ProjectUse{.bytes = used}});
}

void add_plain(BaseUsage& usage, const std::string& id, std::uint64_t size) {
  usage.volumes.push_back({.volume = {.id = id, .size = size}});
}

const Room kAll{.overcommit = false};

bool fits(const BaseUsage& usage, std::uint64_t size, const Room& room,
          const std::string& id = "new") {
  const auto checked = check_room(usage, id, size, room);
  if (!checked.ok()) CHECK(checked.error().is(ErrorCode::kUnfit));
  return checked.ok();
}

}  // namespace

TEST_CASE("without a word about room everything fits, and nothing is looked at") {
  CHECK(fits(disk_with_use(1000), kMost, {}));
  CHECK_FALSE(Room{}.any());
}

TEST_CASE("a reserve stays free beside the whole new volume") {
  const Room tenth{.reserve = Room::Reserve{.percent = 10}};
  const BaseUsage usage = disk_with_use(400);
  CHECK(fits(usage, 500, tenth));
  CHECK_FALSE(fits(usage, 501, tenth));
  CHECK(fits(usage, 350, {.reserve = Room::Reserve{.bytes = 250}}));
  CHECK_FALSE(fits(usage, 351, {.reserve = Room::Reserve{.bytes = 250}}));
  CHECK(fits(usage, 600, {.reserve = Room::Reserve{}}));
  CHECK_FALSE(fits(usage, 601, {.reserve = Room::Reserve{}}));
  CHECK_FALSE(fits(usage, 1, {.reserve = Room::Reserve{.bytes = kMost}}));
  const auto never = check_room(usage, "new", 1, {.reserve = Room::Reserve{.bytes = 1000}});
  CHECK(never.error().message.find("ask for a smaller one") != std::string::npos);
  const auto refused = check_room(usage, "new", 550, tenth);
  CHECK(refused.error().message ==
        "no room for 550: 500 of 1000 are left; 600 are free, 100 are reserved");
}

TEST_CASE("without overcommitting the sizes of all volumes and what others use fit") {
  BaseUsage usage = disk_with_use(300);
  CHECK(fits(usage, 700, kAll));
  CHECK_FALSE(fits(usage, 701, kAll));
  // 100 of the 300 are in the volume: 200 are others'.
  add_limited(usage, "a", 400, 100);
  CHECK(fits(usage, 400, kAll));
  CHECK_FALSE(fits(usage, 401, kAll));
  // What a volume without a limit uses cannot be told from what others use.
  add_plain(usage, "b", 150);
  CHECK(fits(usage, 400, kAll));
  add_plain(usage, "c", 150);
  CHECK(fits(usage, 300, kAll));
  CHECK_FALSE(fits(usage, 301, kAll));
  CHECK_FALSE(fits(usage, 300, {.reserve = Room::Reserve{.bytes = 1}, .overcommit = false}));
  // What the file system keeps for root is no volume's.
  usage.space.available_bytes -= 50;
  CHECK(fits(usage, 250, kAll));
  CHECK_FALSE(fits(usage, 251, kAll));
}

TEST_CASE("what volumes with a limit may use in other base paths counts like that of own ones") {
  BaseUsage usage = disk_with_use(300);
  usage.elsewhere = {.limits = 400, .used = 100};
  CHECK(fits(usage, 400, kAll));
  CHECK_FALSE(fits(usage, 401, kAll));
  add_limited(usage, "a", 200, 50);
  CHECK(fits(usage, 250, kAll));
  CHECK_FALSE(fits(usage, 251, kAll));
  CHECK(fits(usage, 450, kAll, "a"));
  usage.elsewhere.limits = kMost;
  CHECK_FALSE(fits(usage, 1, kAll));
}

TEST_CASE("a volume that grows needs room only for what it does not have") {
  BaseUsage usage = disk_with_use(300);
  add_limited(usage, "a", 400, 100);
  add_plain(usage, "b", 200);
  CHECK(fits(usage, 800, kAll, "a"));
  CHECK_FALSE(fits(usage, 801, kAll, "a"));
  CHECK(fits(usage, 600, kAll, "b"));
  CHECK_FALSE(fits(usage, 601, kAll, "b"));
  const Room reserve{.reserve = Room::Reserve{.bytes = 200}};
  CHECK(fits(usage, 600, reserve, "a"));
  CHECK_FALSE(fits(usage, 601, reserve, "a"));
}

TEST_CASE("sizes that no disk has do not wrap around") {
  BaseUsage usage = disk_with_use(0);
  add_limited(usage, "a", kMost, 0);
  add_plain(usage, "b", kMost);
  CHECK_FALSE(fits(usage, 1, kAll));
  CHECK(fits(usage, 0, kAll));
  CHECK(fits(usage, kMost, kAll, "a"));
}

TEST_CASE("nothing is promised while a record cannot be read") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "pvc-1", .path = "data", .size = 4096}).ok());
  MakeRequest request{.id = "pvc-2", .path = "more", .size = 1};
  request.room.overcommit = false;
  base.write(BaseFolder::record("volume.pvc-1.json"), "{");
  CHECK(volumes.usage()->problems.size() == 1);
  const auto refused = volumes.make(request);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().is(ErrorCode::kUnfit));
  CHECK(refused.error().message.find("pvc-1") != std::string::npos);
  CHECK_FALSE(base.has("more"));
  request.room.overcommit = true;
  CHECK(volumes.make(request).ok());
}

TEST_CASE("a limit that could not be set is not on record" * NeedsProjects()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(make_request("pvc-1", "data")).ok());
  const auto before = volumes.list()->volumes.at(0);
  /// Limits can be read, and not be set.
  class ReadOnlyLimits final : public Kernel {
   public:
    int quota(int fd, const char* device, unsigned command, std::uint32_t project,
              void* argument) override {
      if (command != Q_XSETQLIM) return Kernel::quota(fd, device, command, project, argument);
      errno = EIO;
      return -1;
    }
  } failing;
  const auto grown = base.volumes(failing).resize({.id = "pvc-1",
                                                   .limits = {.bytes = before.limits.bytes * 2},
                                                   .size = before.limits.bytes * 2});
  REQUIRE_FALSE(grown.ok());
  const auto now = volumes.list()->volumes.at(0);
  CHECK(now.limits == before.limits);
  CHECK(now.size == before.size);
}

TEST_CASE("what a volume was promised is on record, with a limit or without, and grows") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "pvc-1", .path = "data", .size = 4096}).ok());
  CHECK(volumes.usage()->promised_bytes == 4096);
  const auto grown = volumes.resize({.id = "pvc-1", .limits = {.bytes = 8192}, .size = 8192});
  REQUIRE_MESSAGE(grown.ok(), grown.error().message);
  CHECK(grown->size == 8192);
  CHECK_FALSE(grown->limits.any());
  CHECK(volumes.usage()->promised_bytes == 8192);
  CHECK(volumes.resize({.id = "pvc-1", .size = 8192, .limited = true})
            .error()
            .is(ErrorCode::kInvalid));
  CHECK(volumes.resize({.id = "pvc-2", .size = 1}).error().is(ErrorCode::kNotFound));

  // A make that has no room leaves nothing behind; one again is asked about what it wants more.
  MakeRequest request{.id = "pvc-2", .path = "more", .size = kMost / 2};
  request.room.overcommit = false;
  CHECK(volumes.make(request).error().is(ErrorCode::kUnfit));
  CHECK(volumes.list()->volumes.size() == 1);
  CHECK_FALSE(base.has("more"));
  CHECK_FALSE(base.has(BaseFolder::record("new.pvc-2")));
  request.size = 1;
  REQUIRE(volumes.make(request).ok());
  CHECK(volumes.make(request)->size == 1);
  request.size = kMost / 2;
  CHECK(volumes.make(request).error().is(ErrorCode::kUnfit));
  CHECK(volumes.list()->volumes[1].size == 1);
  request.size = 2;
  CHECK(volumes.make(request)->size == 2);
}

namespace {

/// One that somebody has given more by hand than there is, whatever room it is to keep.
void check_given_by_hand(const Limits& limits) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const std::uint64_t given = volumes.space()->size_bytes * 2;
  REQUIRE(volumes.make({.id = "pvc-1", .path = "data", .limits = limits, .size = kMiB}).ok());
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.bytes = given}, .size = given}).ok());
  for (const Room& room :
       {Room{.reserve = Room::Reserve{.percent = 1}},
        Room{.reserve = Room::Reserve{.bytes = given}}, Room{.overcommit = false}}) {
    const auto grow = [&](std::uint64_t size) {
      return volumes.resize({.id = "pvc-1",
                             .limits = {.bytes = size},
                             .size = size,
                             .limited = limits.any(),
                             .lowers_nothing = true,
                             .room = room});
    };
    const auto grown = grow(2 * kMiB);
    REQUIRE_MESSAGE(grown.ok(), grown.error().message);
    CHECK(grown->size == given);
    CHECK(grown->limits.bytes == (limits.any() ? given : 0));
    CHECK(grow(given + volumes.space()->size_bytes).error().is(ErrorCode::kUnfit));
  }
}

}  // namespace

TEST_CASE("a volume that has been given more by hand than a claim grows to needs no room") {
  check_given_by_hand({});
}

TEST_CASE("with a limit a volume that was given more by hand needs no room either" *
          NeedsProjects()) {
  check_given_by_hand({.bytes = kMiB});
}

TEST_CASE("what is promised never wraps around whatever sizes tenants ask for") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = Volumes::open(kernel, base.path(), {});
  REQUIRE(volumes.ok());
  REQUIRE(volumes->make({.id = "a", .path = "a", .size = kMost - 1}).ok());
  REQUIRE(volumes->make({.id = "b", .path = "b", .size = kMost - 1}).ok());
  const auto usage = volumes->usage();
  REQUIRE(usage.ok());
  CHECK(usage->promised_bytes == kMost);
}

TEST_CASE(
    "a limit that wraps around in the numbers of a quota is refused before anything is made") {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make({.id = "pvc-1", .path = "data", .size = kMostSize}).ok());
  for (const std::uint64_t size : {kMostSize + 1, kMost}) {
    const auto limited = volumes.make({.id = "pvc-2", .path = "more", .limits = {.bytes = size}});
    CHECK(limited.error().is(ErrorCode::kInvalid));
    CHECK(limited.error().message.find("8Ei") != std::string::npos);
    const auto adopted = volumes.adopt({.id = "pvc-2", .path = "data", .limits = {.bytes = size}});
    CHECK(adopted.error().is(ErrorCode::kInvalid));
    const auto grown = volumes.resize({.id = "pvc-1", .limits = {.bytes = size}, .size = size});
    CHECK(grown.error().is(ErrorCode::kInvalid));
  }
  CHECK_FALSE(base.has("more"));
  CHECK(volumes.list()->volumes.front().size == kMostSize);
}
