// SPDX-License-Identifier: Apache-2.0
#include "node/subvolume.h"

#include <doctest/doctest.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>

#include <cstring>

#include "everywhere.h"
#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

// On a btrfs with quota (test/quota/run.sh); what it answers is also played.

namespace {

UniqueFd open_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void snapshot(const std::string& of, const std::string& folder, const char* name, bool read_only) {
  const UniqueFd from = open_folder(of);
  const UniqueFd to = open_folder(folder);
  btrfs_ioctl_vol_args_v2 arguments{};
  arguments.fd = from.get();
  arguments.flags = read_only ? BTRFS_SUBVOL_RDONLY : 0;
  std::strcpy(arguments.name, name);
  REQUIRE(::ioctl(to.get(), BTRFS_IOC_SNAP_CREATE_V2, &arguments) == 0);
}

void make_read_only(const std::string& path) {
  const UniqueFd folder = open_folder(path);
  std::uint64_t flags = BTRFS_SUBVOL_RDONLY;
  REQUIRE(::ioctl(folder.get(), BTRFS_IOC_SUBVOL_SETFLAGS, &flags) == 0);
}

MakeRequest below_web(const std::string& id, Limits limits) {
  MakeRequest request{.id = id, .path = "web/" + id};
  request.limits = limits;
  return request;
}

bool is_counted(const BaseFolder& base, std::uint32_t subvolume) {
  Kernel kernel;
  const UniqueFd folder = open_folder(base.path());
  const auto quota = ProjectQuota::open(kernel, folder.get());
  REQUIRE(quota.ok());
  const auto use = quota->use(subvolume);
  REQUIRE(use.ok());
  return use->has_value();
}

/// The kernel takes a subvolume apart later, and the next removal after that forgets it.
void check_is_forgotten(const BaseFolder& base, std::uint32_t subvolume) {
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  for (int i = 0; i < 2000 && is_counted(base, subvolume); ++i) {
    ::sync();
    REQUIRE(volumes.make(below_web("next", {.bytes = kMiB})).ok());
    REQUIRE(volumes.remove({.id = "next"}).ok());
  }
  CHECK_FALSE(is_counted(base, subvolume));
}

/// A btrfs that answers as a test says.
class PlayedTrees final : public Kernel {
 public:
  using Items = std::vector<std::pair<btrfs_ioctl_search_header, std::vector<std::uint64_t>>>;
  explicit PlayedTrees(Items items) : items_(std::move(items)) {}
  explicit PlayedTrees(int error) : error_(error) {}

  int search_tree(int /*fd*/, btrfs_ioctl_search_args& arguments) override {
    ++calls_;
    if (error_ != 0) {
      errno = error_;
      return -1;
    }
    const auto& key = arguments.key;
    std::size_t at = 0;
    std::uint32_t found = 0;
    for (const auto& [head, numbers] : items_) {
      const bool inside = head.objectid == key.min_objectid && head.type >= key.min_type &&
                          head.type <= key.max_type && head.offset >= key.min_offset &&
                          head.offset <= key.max_offset;
      if (!inside && !ignores_range_) continue;
      const std::size_t size = numbers.size() * sizeof numbers[0];
      if (at + sizeof head + size > sizeof arguments.buf) break;
      std::memcpy(arguments.buf + at, &head, sizeof head);
      std::memcpy(arguments.buf + at + sizeof head, numbers.data(), size);
      at += sizeof head + size;
      ++found;
    }
    arguments.key.nr_items = found;
    return 0;
  }

  int remove_counter(int /*fd*/, std::uint64_t subvolume) override {
    forgotten_.push_back(subvolume);
    return 0;
  }
  int limit_subvolume(int /*fd*/, std::uint64_t subvolume, std::uint64_t bytes) override {
    if (limit_error_ != 0) {
      errno = limit_error_;
      return -1;
    }
    CHECK(bytes == 0);
    lifted_.push_back(subvolume);
    return 0;
  }

  std::vector<std::uint64_t> forgotten_{};
  std::vector<std::uint64_t> lifted_{};
  int calls_ = 0;
  int limit_error_ = 0;
  bool ignores_range_ = false;

 private:
  Items items_{};
  int error_ = 0;
};

std::pair<btrfs_ioctl_search_header, std::vector<std::uint64_t>> item(
    std::uint32_t type, std::uint64_t offset, std::vector<std::uint64_t> numbers,
    std::uint64_t object = 0) {
  btrfs_ioctl_search_header head{};
  head.objectid = object;
  head.type = type;
  head.offset = offset;
  head.len = static_cast<std::uint32_t>(numbers.size() * sizeof numbers[0]);
  return {head, std::move(numbers)};
}

PlayedTrees with_flags(std::uint64_t flags) {
  return PlayedTrees(PlayedTrees::Items{item(BTRFS_QGROUP_STATUS_KEY, 0, {1, 7, flags, 0})});
}

}  // namespace

TEST_CASE("on btrfs a directory with a limit is a subvolume, and one without is none" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(below_web("pvc-1", {.bytes = 8 * kMiB}));
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  CHECK(*subvolume_at(kernel, open_folder(base.at("web/pvc-1")).get()) == made->project);
  REQUIRE(volumes.make(below_web("pvc-2", {})).ok());
  CHECK(*subvolume_at(kernel, open_folder(base.at("web/pvc-2")).get()) == 0);
  const auto third = volumes.make(below_web("pvc-3", {.bytes = 8 * kMiB}));
  REQUIRE(third.ok());
  // Their roots have the same inode number, and may be made in the same moment.
  CHECK(third->directory.inode != made->directory.inode);
  CHECK(is_counted(base, made->project));
  REQUIRE(*volumes.remove({.id = "pvc-1"}) == Removed::kRemoved);
  check_is_forgotten(base, made->project);
}

TEST_CASE("btrfs limits no number of files: such a volume is not made, and nothing stays of it" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  const auto made = volumes.make(below_web("pvc-1", {.bytes = kMiB, .inodes = 10}));
  CHECK(made.error().is(ErrorCode::kUnfit));
  CHECK(made.error().message.find("number of files") != std::string::npos);
  CHECK(base.content().empty());
  REQUIRE(volumes.make(below_web("pvc-1", {.bytes = kMiB})).ok());
  CHECK(volumes.resize({.id = "pvc-1", .limits = {.bytes = 2 * kMiB, .inodes = 10}})
            .error()
            .is(ErrorCode::kUnfit));
  CHECK(volumes.list()->volumes.at(0).limits == Limits{.bytes = kMiB});
}

TEST_CASE("a plain directory of btrfs gets no limit, and a subvolume that was there gets one" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  base.write("web/plain/file");
  const AdoptRequest plain{.id = "plain", .path = "web/plain", .limits = {.bytes = kMiB}};
  CHECK(volumes.adopt(plain).error().is(ErrorCode::kInvalid));
  CHECK(volumes.adopt(plain).error().message.find("subvolume") != std::string::npos);
  CHECK(volumes.make(below_web("plain", {.bytes = kMiB})).error().is(ErrorCode::kInvalid));
  CHECK(base.has("web/plain/file"));

  base.make_directory("web/own");
  CHECK(fill(base.at("web/own/file"), 4 * kMiB).bytes == 4 * kMiB);
  ::sync();
  AdoptRequest own{.id = "own", .path = "web/own", .limits = {.bytes = 3 * kMiB}};
  CHECK(volumes.adopt(own).error().is(ErrorCode::kInvalid));
  CHECK(volumes.make(below_web("own", {.bytes = 3 * kMiB})).error().is(ErrorCode::kInvalid));
  own.limits.bytes = 6 * kMiB;
  const auto adopted = volumes.adopt(own);
  REQUIRE_MESSAGE(adopted.ok(), adopted.error().message);
  CHECK(adopted->origin == Origin::kFound);
  CHECK(fill(base.at("web/own/more"), 8 * kMiB).bytes < 3 * kMiB);
  // Under another name it is still this volume's, with its limit.
  MakeRequest other = below_web("other", {.bytes = 64 * kMiB});
  other.path = "web/own";
  CHECK(volumes.make(other).error().is(ErrorCode::kInvalid));
  CHECK(fill(base.at("web/own/even-more"), 8 * kMiB).bytes < kMiB);
  CHECK(*volumes.remove({.id = "own", .removal = Removal::kTakeBack}) == Removed::kKept);
  CHECK(fill(base.at("web/own/more"), 8 * kMiB).bytes == 8 * kMiB);
}

TEST_CASE("a volume on btrfs goes with the subvolumes and snapshots that its user made in it" *
          NeedsSubvolumes()) {
  const BaseFolder base;
  Kernel kernel;
  const auto volumes = base.volumes(kernel);
  bool with_limit = true;
  SUBCASE("with a limit, full, and made read-only") {}
  SUBCASE("in a plain directory") { with_limit = false; }
  const auto made =
      volumes.make(below_web("pvc-1", with_limit ? Limits{.bytes = 8 * kMiB} : Limits{}));
  REQUIRE(made.ok());
  const std::string top = base.at("web/pvc-1");
  base.make_directory("web/pvc-1/nested");
  std::string deep = "web/pvc-1/nested";
  for (int i = 0; i < 70; ++i) deep += "/d";
  base.write(deep + "/file");
  base.make_directory(deep + "/lower");
  base.write(deep + "/lower/file");
  snapshot(base.at("web/pvc-1/nested"), top, "read-only", true);
  snapshot(base.at("web/pvc-1/nested"), base.at(deep + "/lower"), "read-only-too", true);
  base.write("web/pvc-1/full");
  fill(base.at("web/pvc-1/full"), 16 * kMiB);
  if (with_limit) make_read_only(top);
  const auto removed = volumes.remove({.id = "pvc-1"});
  REQUIRE_MESSAGE(removed.ok(), removed.error().message);
  CHECK(*removed == Removed::kRemoved);
  CHECK(base.content().empty());
  CHECK(volumes.list()->volumes.empty());
  if (with_limit) check_is_forgotten(base, made->project);
}

TEST_CASE("what was counted of subvolumes that are gone goes, and nothing else") {
  PlayedTrees trees(PlayedTrees::Items{
      item(BTRFS_QGROUP_INFO_KEY, 300, {1, 0, 0, 0, 0}),  // gone
      item(BTRFS_QGROUP_LIMIT_KEY, 300, {0, 0, 0, 0, 0}),
      item(BTRFS_QGROUP_INFO_KEY, 301, {1, 4096, 0, 0, 0}),  // being taken apart
      item(BTRFS_QGROUP_INFO_KEY, 302, {1, 0, 0, 0, 0}),     // limited
      item(BTRFS_QGROUP_LIMIT_KEY, 302, {1, 77, 0, 0, 0}),
      item(BTRFS_QGROUP_INFO_KEY, 303, {1, 0, 0, 0, 0}),  // there
      item(BTRFS_ROOT_BACKREF_KEY, 5, {1, 2, 3}, 303),
      item(BTRFS_QGROUP_INFO_KEY, 304, {1, 0, 0, 0, 0}),  // gone
  });
  REQUIRE(SubvolumeQuota(trees, -1).release(300).ok());
  CHECK(trees.forgotten_ == std::vector<std::uint64_t>{300, 304});
  trees.forgotten_.clear();
  REQUIRE(SubvolumeQuota(trees, -1).release(303).ok());
  CHECK(trees.forgotten_.empty());
  CHECK(trees.lifted_ == std::vector<std::uint64_t>{300, 303});
}

TEST_CASE("a counter that the kernel has forgotten is released, and holds nobody") {
  PlayedTrees trees(PlayedTrees::Items{item(BTRFS_QGROUP_INFO_KEY, 304, {1, 0, 0, 0, 0})});
  trees.limit_error_ = ENOENT;
  CHECK(SubvolumeQuota(trees, -1).release(300).ok());
  const auto limited = SubvolumeQuota(trees, -1).limit(300, {.bytes = kMiB});
  REQUIRE_FALSE(limited.ok());
  CHECK(limited.error().is(ErrorCode::kUnfit));
  CHECK(limited.error().message.find("btrfs quota enable") != std::string::npos);
  CHECK(limited.error().message.find("/dev") == std::string::npos);
  trees.limit_error_ = ENOTCONN;
  CHECK(SubvolumeQuota(trees, -1).release(300).ok());
  const auto off = SubvolumeQuota(trees, -1).limit(300, {.bytes = kMiB});
  CHECK(off.error().message.find("off by now") != std::string::npos);
  trees.limit_error_ = EIO;
  CHECK_FALSE(SubvolumeQuota(trees, -1).release(300).ok());
}

TEST_CASE("where a counter goes with its subvolume a removal that crashes anywhere is finished" *
          NeedsSubvolumes()) {
  /// As newer kernels do, here at once instead of when the subvolume has been taken apart.
  class Forgetful final : public Kernel {
   public:
    int limit_subvolume(int fd, std::uint64_t subvolume, std::uint64_t bytes) override {
      const auto there = SubvolumeQuota(*this, fd).is_there(static_cast<std::uint32_t>(subvolume));
      if (there.ok() && *there) return Kernel::limit_subvolume(fd, subvolume, bytes);
      errno = ENOENT;
      return -1;
    }
  };
  const auto prepare = [](const BaseFolder& base) {
    Kernel kernel;
    REQUIRE(base.volumes(kernel).make(below_web("pvc-1", {.bytes = 8 * kMiB})).ok());
    base.write("web/pvc-1/file");
  };
  const auto remove = [](const Volumes& volumes) { return volumes.remove({.id = "pvc-1"}).ok(); };
  const auto is_gone = [&](const BaseFolder& base, const Volumes& /*volumes*/) {
    Forgetful forgetful;
    const auto volumes = base.volumes(forgetful);
    const auto problems = volumes.recover({});
    REQUIRE(problems.ok());
    CHECK(problems->empty());
    CHECK(remove(volumes));
    CHECK(base.content().empty());
  };
  CHECK(crash_everywhere(prepare, remove, is_gone) > 40);
}

TEST_CASE("the state of the quota of btrfs is read from its tree") {
  using State = SubvolumeQuota::State;
  const auto state = [](Kernel& kernel) { return *SubvolumeQuota(kernel, -1).state(); };
  PlayedTrees none(ENOENT);
  CHECK(state(none) == State::kOff);
  PlayedTrees empty(PlayedTrees::Items{});
  CHECK(state(empty) == State::kOff);
  for (const auto& [flags, expected] :
       std::vector<std::pair<std::uint64_t, State>>{{0, State::kOff},
                                                    {1, State::kOn},
                                                    {1 | 2, State::kCounting},
                                                    {1 | 2 | 4, State::kCounting},
                                                    {1 | 4, State::kInconsistent},
                                                    {1 | 8, State::kSimple},
                                                    {1 | 4 | 8, State::kInconsistent},
                                                    {1 | 16, State::kOn}}) {
    PlayedTrees trees = with_flags(flags);
    CHECK(state(trees) == expected);
  }
  PlayedTrees short_item(PlayedTrees::Items{item(BTRFS_QGROUP_STATUS_KEY, 0, {1})});
  CHECK(state(short_item) == State::kOff);
  PlayedTrees refused(EPERM);
  const auto failed = SubvolumeQuota(refused, -1).state();
  CHECK(failed.error().is(ErrorCode::kForbidden));
  CHECK(failed.error().message.find("CAP_SYS_ADMIN") != std::string::npos);
}

TEST_CASE("what each subvolume takes up is read in one pass, also of more than one answer holds") {
  PlayedTrees::Items items;
  constexpr std::uint64_t kMany = 200;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    items.push_back(item(BTRFS_QGROUP_INFO_KEY, 256 + i, {1, 1000 + i, 0, 0, 0}));
  }
  for (std::uint64_t i = 0; i < kMany; i += 2) {
    items.push_back(item(BTRFS_QGROUP_LIMIT_KEY, 256 + i, {1, 5000 + i, 0, 0, 0}));
  }
  items.push_back(item(BTRFS_QGROUP_LIMIT_KEY, 257, {0, 77, 0, 0, 0}));
  // A group of groups is nobody's.
  items.push_back(item(BTRFS_QGROUP_INFO_KEY, std::uint64_t{1} << 48U, {1, 9, 0, 0, 0}));
  PlayedTrees trees(items);
  const auto uses = SubvolumeQuota(trees, -1).uses();
  REQUIRE(uses.ok());
  REQUIRE(uses->size() == kMany);
  CHECK(uses->at(10).project == 266);
  CHECK(uses->at(10).bytes == 1010);
  CHECK(uses->at(10).limits.bytes == 5010);
  CHECK_FALSE(uses->at(10).inodes.has_value());
  CHECK_FALSE(uses->at(1).limits.any());
  CHECK(trees.calls_ < 15);
}

TEST_CASE("answers of btrfs that make no sense end, and are not read past their end") {
  PlayedTrees endless(PlayedTrees::Items{item(BTRFS_QGROUP_INFO_KEY, 300, {1, 2, 3, 4, 5})});
  endless.ignores_range_ = true;
  CHECK(SubvolumeQuota(endless, -1).uses().ok());
  CHECK(endless.calls_ < 10);
  auto longer = item(BTRFS_QGROUP_INFO_KEY, 300, {1, 2});
  longer.first.len = 1U << 30U;
  PlayedTrees too_long(PlayedTrees::Items{longer});
  CHECK(SubvolumeQuota(too_long, -1).uses()->empty());
}
