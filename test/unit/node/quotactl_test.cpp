// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <linux/dqblk_xfs.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

namespace {

/// From now on this process has a kernel before 5.14. False: no filter can be set here.
bool hide_quotactl_fd() {
  std::array<sock_filter, 4> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_quotactl_fd, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
         ::syscall(SYS_quotactl_fd, -1, 0, 0, nullptr) < 0 && errno == ENOSYS;
}

constexpr int kNoFilter = 90;

}  // namespace

TEST_CASE("a kernel without quotactl_fd is asked by the device's path, and limits hold" *
          NeedsProjects()) {
  const BaseFolder base;
  const int code = in_process([&] {
    if (!hide_quotactl_fd()) return kNoFilter;
    Kernel kernel;
    const auto volumes = base.volumes(kernel);
    if (!volumes.make({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = 4 * kMiB}}).ok()) {
      return 1;
    }
    if (fill(base.at("pvc-1/data"), 16 * kMiB).error == 0) return 2;
    const auto usage = volumes.usage();
    if (!usage.ok() || usage->volumes.size() != 1 || !usage->volumes[0].use) return 3;
    if (usage->volumes[0].use->bytes <= 3 * kMiB) return 4;
    if (!volumes.resize({.id = "pvc-1", .limits = {.bytes = 8 * kMiB}, .limited = true}).ok()) {
      return 5;
    }
    if (fill(base.at("pvc-1/more"), 3 * kMiB).error != 0) return 6;
    return volumes.remove({.id = "pvc-1"}).ok() ? 0 : 7;
  });
  CHECK_MESSAGE(code != kNoFilter, "this kernel takes no seccomp filter");
  CHECK(code == 0);
}

TEST_CASE("limits are set without the table of mounts, which is long on a node" * NeedsLimits()) {
  class WatchedKernel final : public Kernel {
   public:
    /// How often it was read since the last time that this was asked.
    int tables() { return std::exchange(opened_, 0); }

   private:
    int before(const char* call) override {
      if (std::string_view(call) == "open") ++opened_;  // nothing else goes by a path
      return 0;
    }
    int opened_ = 0;
  };
  const BaseFolder base;
  WatchedKernel kernel;
  const auto volumes = base.volumes(kernel);
  (void)kernel.tables();
  REQUIRE(volumes.make({.id = "pvc-1", .path = "pvc-1", .limits = {.bytes = kMiB}}).ok());
  CHECK(kernel.tables() == 0);
  REQUIRE(volumes.resize({.id = "pvc-1", .limits = {.bytes = 2 * kMiB}, .limited = true}).ok());
  CHECK(kernel.tables() == 0);
  REQUIRE(volumes.usage()->volumes.at(0).use.has_value());
  CHECK(kernel.tables() == 1);  // which disk it is
  REQUIRE(volumes.remove({.id = "pvc-1"}).ok());
  CHECK(kernel.tables() == 1);  // whether something is mounted in it
}

TEST_CASE("whatever the quota of a file system answers is told in words, with what can be done") {
  class RefusingKernel final : public Kernel {
   public:
    explicit RefusingKernel(int error) : error_(error) {}
    int quota(int /*fd*/, const char* /*device*/, unsigned /*command*/, std::uint32_t /*project*/,
              void* /*argument*/) override {
      errno = error_;
      return -1;
    }

   private:
    int error_;
  };
  struct Case {
    int error;
    ErrorCode code;
    const char* words;
  };
  for (const Case& c :
       {Case{EPERM, ErrorCode::kForbidden, "CAP_SYS_ADMIN"},
        Case{EACCES, ErrorCode::kForbidden, "CAP_SYS_ADMIN"},
        Case{EROFS, ErrorCode::kUnfit, "mount it to be written to"},
        Case{ENOSPC, ErrorCode::kUnfit, "remove something"},
        Case{EDQUOT, ErrorCode::kUnfit, "remove something"},
        Case{ERANGE, ErrorCode::kUnfit, "ask for less"},
        Case{ENOSYS, ErrorCode::kUnfit, "turn it on"},
        Case{ENOTTY, ErrorCode::kUnfit, "turn it on"}, Case{ESRCH, ErrorCode::kUnfit, "turn it on"},
        Case{ENOENT, ErrorCode::kUnfit, "mount the node's /dev"},
        Case{ENOTBLK, ErrorCode::kUnfit, "mount the node's /dev"},
        Case{ENODEV, ErrorCode::kUnfit, "mount the node's /dev"},
        Case{ENXIO, ErrorCode::kUnfit, "mount the node's /dev"},
        Case{EINVAL, ErrorCode::kUnfit, "take XFS or ext4"},
        Case{EOPNOTSUPP, ErrorCode::kUnfit, "take XFS or ext4"},
        Case{EUCLEAN, ErrorCode::kUnavailable, "repair it"},
        Case{EIO, ErrorCode::kUnavailable, "repair it"}}) {
    CAPTURE(c.error);
    RefusingKernel kernel(c.error);
    const auto quota = ProjectQuota::assumed(
        kernel, -1, {.root = "/", .point = "/data", .type = "xfs", .source = "/dev/sdb1"});
    const auto limited = quota.limit(7, {.bytes = 1});
    REQUIRE_FALSE(limited.ok());
    CHECK(limited.error().code == c.code);
    CHECK_MESSAGE(limited.error().message.find(c.words) != std::string::npos,
                  limited.error().message);
    constexpr const char* kWhere = "project 7 on /dev/sdb1 (xfs, mounted at /data)";
    CHECK(limited.error().message.find(kWhere) != std::string::npos);
    if (c.error == ENOENT) continue;  // the end of what is counted
    CHECK(quota.use(7).error().code == c.code);
    CHECK(quota.use(7).error().message.find(kWhere) != std::string::npos);
    if (c.error != ESRCH) CHECK(quota.uses().error().code == c.code);
  }
}

TEST_CASE("what the state of the quota answers is taken for off, or told with the mount" *
          NeedsProjects()) {
  /// Of all calls only the state's.
  class StatelessKernel final : public Kernel {
   public:
    explicit StatelessKernel(int error) : error_(error) {}
    int quota(int fd, const char* device, unsigned command, std::uint32_t project,
              void* argument) override {
      if (command != Q_XGETQSTATV) return Kernel::quota(fd, device, command, project, argument);
      errno = error_;
      return -1;
    }

   private:
    int error_;
  };
  const BaseFolder base;
  Kernel whole;
  REQUIRE(base.volumes(whole).make({.id = "old", .path = "old", .limits = {.bytes = kMiB}}).ok());
  for (const int off : {ENOSYS, ESRCH, EINVAL}) {
    CAPTURE(off);
    StatelessKernel kernel(off);
    const auto volumes = base.volumes(kernel);
    const auto made = volumes.make({.id = "a", .path = "a", .limits = {.bytes = kMiB}});
    CHECK(made.error().is(ErrorCode::kUnfit));
    CHECK(made.error().message.find("no limits on /dev/") != std::string::npos);
    CHECK(made.error().message.find("Turn it on with: ") != std::string::npos);
    CHECK(volumes.make({.id = "b", .path = "b"}).ok());
    const auto usage = volumes.usage();
    REQUIRE(usage.ok());
    for (const VolumeUsage& entry : usage->volumes) CHECK_FALSE(entry.use.has_value());
    CHECK(volumes.remove({.id = "b"}).ok());
    CHECK_FALSE(base.has("a"));
  }
  struct Case {
    int error;
    ErrorCode code;
  };
  for (const Case& c : {Case{EPERM, ErrorCode::kForbidden}, Case{EACCES, ErrorCode::kForbidden},
                        Case{EIO, ErrorCode::kUnavailable}, Case{EUCLEAN, ErrorCode::kUnavailable},
                        Case{ENODEV, ErrorCode::kUnfit}, Case{ENOTBLK, ErrorCode::kUnfit}}) {
    CAPTURE(c.error);
    StatelessKernel kernel(c.error);
    const auto volumes = base.volumes(kernel);
    const auto is_told = [&](const Error& told) {
      CHECK(told.code == c.code);
      CHECK_MESSAGE(told.message.find("quota of /dev/") != std::string::npos, told.message);
      CHECK(told.message.find(", mounted at /") != std::string::npos);
    };
    is_told(volumes.make({.id = "a", .path = "a", .limits = {.bytes = kMiB}}).error());
    is_told(volumes.resize({.id = "old", .limits = {.bytes = 2 * kMiB}}).error());
    is_told(volumes.usage().error());
    CHECK_FALSE(base.has("a"));
  }
  CHECK(base.volumes(whole).list()->volumes.at(0).limits.bytes == kMiB);
  CHECK(base.volumes(whole).remove({.id = "old"}).ok());
}

TEST_CASE("a pass through projects that fails on its way tells the error and no part of them") {
  class BreakingKernel final : public Kernel {
   public:
    explicit BreakingKernel(int error) : error_(error) {}
    int quota(int /*fd*/, const char* /*device*/, unsigned command, std::uint32_t project,
              void* argument) override {
      REQUIRE(command == Q_XGETNEXTQUOTA);
      if (project > 2) {
        errno = error_;
        return -1;
      }
      fs_disk_quota answer{};
      answer.d_id = project;
      std::memcpy(argument, &answer, sizeof answer);
      return 0;
    }

   private:
    int error_;
  };
  for (const int end : {ENOENT, ESRCH}) {
    BreakingKernel kernel(end);
    CHECK(ProjectQuota::assumed(kernel, -1).uses()->size() == 3);
  }
  for (const int error : {EIO, EPERM, EINTR, EINVAL, ENOSYS, EUCLEAN, ENOMEM}) {
    CAPTURE(error);
    BreakingKernel kernel(error);
    const auto uses = ProjectQuota::assumed(kernel, -1, {.type = "xfs", .source = "/dev/a"}).uses();
    REQUIRE_FALSE(uses.ok());
    CHECK(uses.error().message.find("usage of projects on /dev/a (xfs") != std::string::npos);
  }
}

TEST_CASE("of the projects of a file system only the own ones are asked for one by one, and all") {
  /// Sparse numbers, as hashes of paths are.
  class SparseKernel final : public Kernel {
   public:
    int quota(int /*fd*/, const char* /*device*/, unsigned command, std::uint32_t project,
              void* argument) override {
      REQUIRE(command == Q_XGETNEXTQUOTA);
      asked.push_back(project);
      const auto next = numbers.lower_bound(project);
      if (next == numbers.end()) {
        errno = ENOENT;
        return -1;
      }
      fs_disk_quota answer{};
      answer.d_id = *next;
      std::memcpy(argument, &answer, sizeof answer);
      return 0;
    }
    const std::set<std::uint32_t> numbers{0,          1,          1048577,    0x40000000,
                                          0x40000001, 0x400003ff, 0x40000400, 0x5fffffff,
                                          0x7fffffff, 0x80000000, UINT32_MAX};
    std::vector<std::uint32_t> asked{};
  };
  SparseKernel kernel;
  const ProjectQuota quota = ProjectQuota::assumed(kernel, -1);
  std::vector<std::uint32_t> told;
  REQUIRE(quota.each_own_use([&](const ProjectUse& use) { told.push_back(use.project); }).ok());
  CHECK(told == std::vector<std::uint32_t>{0x40000000, 0x40000001, 0x400003ff, 0x40000400,
                                           0x5fffffff, 0x7fffffff});
  CHECK(kernel.asked.front() == 0x40000000);
  CHECK(quota.uses()->size() == kernel.numbers.size());
}
