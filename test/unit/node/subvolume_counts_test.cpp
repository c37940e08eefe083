// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <linux/btrfs_tree.h>

#include <cstring>

#include "everywhere.h"
#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// What btrfs has counted of a subvolume that is to get a limit (test/quota/run.sh).

namespace {

MakeRequest of_size(const std::string& id, std::uint64_t bytes) {
  MakeRequest request{.id = id, .path = "web/" + id};
  request.limits.bytes = bytes;
  return request;
}

/// Whose quota says more of itself than is so.
class Flagged final : public Kernel {
 public:
  int search_tree(int fd, btrfs_ioctl_search_args& arguments) override {
    const bool asks_state = arguments.key.min_type == BTRFS_QGROUP_STATUS_KEY;
    const int result = Kernel::search_tree(fd, arguments);
    if (result != 0 || !asks_state || arguments.key.nr_items == 0) return result;
    std::uint64_t flags = 0;
    char* const at = arguments.buf + sizeof(btrfs_ioctl_search_header) + 2 * sizeof flags;
    std::memcpy(&flags, at, sizeof flags);
    flags |= flags_;
    std::memcpy(at, &flags, sizeof flags);
    return 0;
  }
  std::uint64_t flags_ = 0;
};

constexpr std::uint64_t kSimpleMode = 8;

/// With the quota of the base folder's disk, and the number of the subvolume.
template <typename Work>
auto with_quota(const BaseFolder& base, const std::string& name, Work work) {
  Kernel kernel;
  const UniqueFd folder(kernel.open(base.at(name).c_str(), O_RDONLY | O_DIRECTORY));
  const auto quota = ProjectQuota::open(kernel, folder.get());
  REQUIRE(quota.ok());
  return work(*quota, *quota->number_of(folder.get()));
}

/// As an administrator does.
void limit_by_hand(const BaseFolder& base, const std::string& name, std::uint64_t bytes) {
  with_quota(base, name, [&](const ProjectQuota& quota, std::uint32_t number) {
    REQUIRE(quota.limit(number, {.bytes = bytes}).ok());
  });
}

std::uint64_t limit_of(const BaseFolder& base, const std::string& name) {
  return with_quota(base, name, [](const ProjectQuota& quota, std::uint32_t number) {
    const auto use = quota.use(number);
    REQUIRE(use.ok());
    return *use ? (*use)->limits.bytes : 0;
  });
}

}  // namespace

TEST_CASE("what has just been written counts where a limit would be less" * NeedsSubvolumes()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  base.make_directory("web/own");
  REQUIRE(fill(base.at("web/own/file"), 4 * kMiB).bytes == 4 * kMiB);
  SUBCASE("by an adoption") {
    const auto adopted =
        volumes.adopt({.id = "own", .path = "web/own", .limits = {.bytes = 2 * kMiB}});
    CHECK(adopted.error().is(ErrorCode::kInvalid));
  }
  SUBCASE("by a make") {
    CHECK(volumes.make(of_size("own", 2 * kMiB)).error().is(ErrorCode::kInvalid));
    CHECK(volumes.list()->volumes.empty());
  }
  SUBCASE("by a resize") {
    REQUIRE(volumes.make(of_size("own", 64 * kMiB)).ok());
    REQUIRE(fill(base.at("web/own/more"), 4 * kMiB).bytes == 4 * kMiB);
    const auto resized = volumes.resize({.id = "own", .limits = {.bytes = 6 * kMiB}});
    CHECK(resized.error().is(ErrorCode::kInvalid));
    CHECK(volumes.list()->volumes.at(0).limits == Limits{.bytes = 64 * kMiB});
  }
  // Nothing holds it to what was refused.
  CHECK(fill(base.at("web/own/last"), 4 * kMiB).bytes == 4 * kMiB);
}

TEST_CASE("what btrfs has not counted, or never counts, gets no limit that may be too low" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  Flagged kernel;
  const auto volumes = base.volumes(kernel);
  REQUIRE(volumes.make(of_size("pvc-1", 8 * kMiB)).ok());
  base.write("web/pvc-1/file");
  base.make_directory("web/own");
  base.write("web/own/file");
  bool is_simple = false;
  SUBCASE("while it counts anew") { kernel.flags_ = BTRFS_QGROUP_STATUS_FLAG_RESCAN; }
  SUBCASE("by a simple quota") {
    kernel.flags_ = kSimpleMode;
    is_simple = true;
  }
  const ErrorCode code = is_simple ? ErrorCode::kUnfit : ErrorCode::kUnavailable;
  const AdoptRequest own{.id = "own", .path = "web/own", .limits = {.bytes = 8 * kMiB}};
  CHECK(volumes.adopt(own).error().is(code));
  CHECK(volumes.make(of_size("own", 8 * kMiB)).error().is(code));
  CHECK(volumes.list()->volumes.size() == 1);
  // Of one that was empty at first a simple quota counts all.
  CHECK(volumes.resize({.id = "pvc-1", .limits = {.bytes = 4 * kMiB}}).ok() == is_simple);
  CHECK(volumes.resize({.id = "pvc-1", .limits = {.bytes = 16 * kMiB}}).ok());
  CHECK(volumes.make(of_size("pvc-1", 16 * kMiB)).ok());
  CHECK(volumes.make(of_size("pvc-2", 8 * kMiB)).ok());
  CHECK(fill(base.at("web/own/more"), 9 * kMiB).bytes == 9 * kMiB);
}

TEST_CASE("a simple quota limits what was empty when its limit was set, and nothing else" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  Flagged kernel;
  const auto volumes = base.volumes(kernel);
  const auto make = [&] { return volumes.make(of_size("pvc-1", 8 * kMiB)); };
  const auto resize = [&] {
    return volumes.resize({.id = "pvc-1", .limits = {.bytes = 16 * kMiB}, .limited = true});
  };
  const auto adopt = [&] {
    return volumes.adopt({.id = "pvc-1", .path = "web/pvc-1", .limits = {.bytes = 16 * kMiB}});
  };
  REQUIRE(make().ok());
  kernel.flags_ = kSimpleMode;
  SUBCASE("one that it has limited from the beginning") {
    base.write("web/pvc-1/file");
    CHECK(adopt().ok());
    CHECK(resize().ok());
    CHECK(limit_of(base, "web/pvc-1") == 16 * kMiB);
  }
  // As when the quota was turned off, and on again with --simple.
  SUBCASE("one that it found, which is empty") {
    limit_by_hand(base, "web/pvc-1", 0);
    SUBCASE("by a resize") { CHECK(resize().ok()); }
    SUBCASE("by an adoption") { CHECK(adopt().ok()); }
    CHECK(limit_of(base, "web/pvc-1") == 16 * kMiB);
  }
  SUBCASE("one that it found, with data") {
    limit_by_hand(base, "web/pvc-1", 0);
    base.write("web/pvc-1/file");
    CHECK(resize().error().is(ErrorCode::kUnfit));
    CHECK(resize().error().message.find("simple") != std::string::npos);
    CHECK(adopt().error().is(ErrorCode::kUnfit));
    CHECK(make().error().is(ErrorCode::kUnfit));
    CHECK(limit_of(base, "web/pvc-1") == 0);
    CHECK(volumes.list()->volumes.at(0).limits == Limits{.bytes = 8 * kMiB});
  }
}

TEST_CASE("an adoption that fails leaves the limit that somebody has set, and no record" *
          NeedsSubvolumes()) {
  const auto put = [](const BaseFolder& base) {
    base.make_directory("web/own");
    base.write("web/own/file", std::string(4 * kMiB, 'x'));
    limit_by_hand(base, "web/own", 8 * kMiB);
  };
  SUBCASE("for want of room, also when it is tried again") {
    const BaseFolder base;
    Kernel kernel;
    put(base);
    const auto volumes = base.volumes(kernel);
    for (int i = 0; i < 2; ++i) {
      const auto adopted =
          volumes.adopt({.id = "own", .path = "web/own", .limits = {.bytes = 2 * kMiB}});
      CHECK(adopted.error().is(ErrorCode::kInvalid));
      CHECK(volumes.list()->volumes.empty());
      CHECK(limit_of(base, "web/own") == 8 * kMiB);
    }
  }
  SUBCASE("anywhere") {
    bool adopted = false;
    const auto put_next = [&](const BaseFolder& base) {
      adopted = false;
      put(base);
    };
    const auto adopt = [&](const Volumes& volumes) {
      const auto done =
          volumes.adopt({.id = "own", .path = "web/own", .limits = {.bytes = 16 * kMiB}});
      return adopted = done.ok();
    };
    const auto check = [&](const BaseFolder& base, const Volumes& volumes) {
      CHECK(limit_of(base, "web/own") == (adopted ? 16 : 8) * kMiB);
      CHECK(volumes.list()->volumes.size() == (adopted ? 1 : 0));
    };
    CHECK(fail_everywhere(put_next, adopt, EIO, check) > 40);
  }
}

TEST_CASE("an adoption that fails leaves a limit that was raised by hand" * NeedsLimits()) {
  const auto put = [](const BaseFolder& base) {
    Kernel kernel;
    REQUIRE(base.volumes(kernel).make(of_size("pvc-1", 8 * kMiB)).ok());
    limit_by_hand(base, "web/pvc-1", 16 * kMiB);
    REQUIRE(fill(base.at("web/pvc-1/file"), 12 * kMiB).bytes == 12 * kMiB);
  };
  bool adopted = false;
  std::uint64_t size = 10 * kMiB;
  const auto adopt = [&](const Volumes& volumes) {
    const auto done =
        volumes.adopt({.id = "pvc-1", .path = "web/pvc-1", .limits = {.bytes = size}});
    return adopted = done.ok();
  };
  const auto check = [&](const BaseFolder& base, const Volumes& volumes) {
    CHECK(limit_of(base, "web/pvc-1") == (adopted ? size : 16 * kMiB));
    CHECK(volumes.list()->volumes.at(0).limits == Limits{.bytes = adopted ? size : 8 * kMiB});
  };
  SUBCASE("for want of room, and what is there is not stopped meanwhile") {
    class Watched final : public Kernel {
     public:
      void after(const char* /*call*/) override {
        if (!limited) return;
        const auto now = limited();
        if (now < least) least = now;
      }
      std::function<std::uint64_t()> limited{};
      std::uint64_t least = UINT64_MAX;
    } kernel;
    const BaseFolder base;
    put(base);
    const auto volumes = base.volumes(kernel);
    kernel.limited = [&] { return limit_of(base, "web/pvc-1"); };
    CHECK_FALSE(adopt(volumes));
    CHECK(kernel.least == 16 * kMiB);
    check(base, volumes);
  }
  SUBCASE("anywhere") {
    size = 20 * kMiB;
    const auto put_next = [&](const BaseFolder& base) {
      adopted = false;
      put(base);
    };
    CHECK(fail_everywhere(put_next, adopt, EIO, check) > 40);
  }
}

TEST_CASE("a resize that fails leaves what the kernel held it to" * NeedsLimits()) {
  bool grown = false;
  const auto put = [&](const BaseFolder& base) {
    grown = false;
    Kernel kernel;
    REQUIRE(base.volumes(kernel).make(of_size("pvc-1", 8 * kMiB)).ok());
    limit_by_hand(base, "web/pvc-1", 0);  // as when the quota was turned off and on
    REQUIRE(fill(base.at("web/pvc-1/file"), 12 * kMiB).bytes == 12 * kMiB);
  };
  const auto grow = [&](const Volumes& volumes) {
    const ResizeRequest to{.id = "pvc-1", .limits = {.bytes = 16 * kMiB}, .limited = true};
    return grown = volumes.resize(to).ok();
  };
  const auto check = [&](const BaseFolder& base, const Volumes& /*volumes*/) {
    CHECK(limit_of(base, "web/pvc-1") == (grown ? 16 * kMiB : 0));
  };
  CHECK(fail_everywhere(put, grow, EIO, check) > 20);
}

TEST_CASE("while btrfs counts anew nobody is told that there is no room" * NeedsSubvolumes()) {
  const BaseFolder base;
  Flagged kernel;
  const auto volumes = base.volumes(kernel);
  MakeRequest request = of_size("pvc-1", std::uint64_t{1} << 50U);
  request.size = request.limits.bytes;
  request.room = {.overcommit = false};
  CHECK(volumes.make(request).error().is(ErrorCode::kUnfit));
  kernel.flags_ = BTRFS_QGROUP_STATUS_FLAG_RESCAN;
  CHECK(volumes.make(request).error().is(ErrorCode::kUnavailable));
  // Without a sum of sizes a new one is measured by what is free, which is always known.
  const Room free{.reserve = Room::Reserve{.bytes = kMiB}};
  request.room = free;
  CHECK(volumes.make(request).error().is(ErrorCode::kUnfit));
  CHECK(volumes.make(of_size("pvc-1", 8 * kMiB)).ok());
  const ResizeRequest grown{
      .id = "pvc-1", .limits = request.limits, .size = request.size, .limited = true, .room = free};
  CHECK(volumes.resize(grown).error().is(ErrorCode::kUnavailable));
  kernel.flags_ = 0;
  CHECK(volumes.resize(grown).error().is(ErrorCode::kUnfit));
}
