// SPDX-License-Identifier: Apache-2.0
#include "node/quota.h"

#include <linux/dqblk_xfs.h>
#include <linux/magic.h>

#include <charconv>

#include "base/strings.h"
#include "node/quota_errors.h"
#include "node/subvolume.h"

namespace lpp::node {

namespace {

// Numbers that neither the kubelet (from 1048577) nor people with /etc/projects are likely to use.
constexpr std::uint32_t kFirstProject = 0x40000000;
constexpr std::uint32_t kProjects = 0x40000000;
constexpr int kMaxProbes = 64;
constexpr int kMaxSeeds = 8;

constexpr std::uint64_t kBlock = 512;  // of the calls, whatever the file system's are

ProjectUse to_use(const fs_disk_quota& quota) {
  return {.project = quota.d_id,
          .bytes = quota.d_bcount * kBlock,
          .inodes = quota.d_icount,
          .limits = {.bytes = quota.d_blk_hardlimit * kBlock, .inodes = quota.d_ino_hardlimit}};
}

Error not_counted_yet() {
  return {ErrorCode::kUnavailable,
          "btrfs has not counted all yet, as after its quota was turned on, or by 'btrfs quota "
          "rescan'; try again later"};
}

std::string numbered(std::uint32_t project) { return "project " + std::to_string(project); }

}  // namespace

Result<void> check_holds(const std::string& id, const Limits& limits, const ProjectUse& use) {
  const auto too_many = [&](std::uint64_t used, std::uint64_t limit, const char* what) {
    return invalid(id + " holds " + std::to_string(used) + " " + what + ", more than " +
                   std::to_string(limit));
  };
  if (limits.bytes != 0 && use.bytes > limits.bytes) {
    return too_many(use.bytes, limits.bytes, "bytes");
  }
  if (limits.inodes != 0 && use.inodes && *use.inodes > limits.inodes) {
    return too_many(*use.inodes, limits.inodes, "files");
  }
  return {};
}

void ProjectQuota::know(Mount mount) {
  if (mount.source.starts_with('/')) device_ = mount.source;
  mount_ = std::move(mount);
}

ProjectQuota ProjectQuota::assumed(Kernel& kernel, int folder, const Mount& mount) {
  ProjectQuota quota(kernel, folder);
  quota.know(mount);
  return quota;
}

std::string ProjectQuota::where() const {
  if (mount_) return described(*mount_);
  const auto mount = mount_of(*kernel_, folder_);
  return mount.ok() ? described(*mount) : "its file system";
}

int ProjectQuota::call(unsigned command, std::uint32_t project, void* argument) const {
  return kernel_->quota(folder_, device_.empty() ? nullptr : device_.c_str(), command, project,
                        argument);
}

Result<bool> ProjectQuota::find_state(bool& counts) {
  fs_quota_statv state{};
  state.qs_version = FS_QSTATV_VERSION1;
  int result = call(Q_XGETQSTATV, 0, &state);
  if (result != 0 && errno == ENOSYS && !mount_) {  // a kernel that is asked by the device's path
    LPP_ASSIGN_OR_RETURN(Mount mount, mount_of(*kernel_, folder_), "quota");
    know(std::move(mount));
    result = call(Q_XGETQSTATV, 0, &state);
  }
  if (result != 0) {
    const int error = errno;
    if (error == ENOSYS || error == ESRCH || error == EINVAL) return false;
    return quota_error(error, "quota of " + where());
  }
  counts = (state.qs_flags & FS_QUOTA_PDQ_ACCT) != 0;
  return counts && (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
}

Result<std::variant<ProjectQuota, Error>> ProjectQuota::look(Kernel& kernel, int folder) {
  using Found = std::variant<ProjectQuota, Error>;
  struct statfs filesystem {};
  if (kernel.filesystem(folder, filesystem) != 0) return system_error(errno, "statfs");
  ProjectQuota quota(kernel, folder);
  if (filesystem.f_type == BTRFS_SUPER_MAGIC) {
    LPP_ASSIGN_OR_RETURN(auto why, why_no_subvolumes(kernel, folder), "btrfs");
    if (why) return Found(*std::move(why));
    quota.by_subvolumes_ = true;
    return Found(std::move(quota));
  }
  bool counts = false;
  if (filesystem.f_type == XFS_SUPER_MAGIC || filesystem.f_type == EXT4_SUPER_MAGIC) {
    LPP_ASSIGN_OR_RETURN(const bool limits, quota.find_state(counts), "quota");
    if (limits) return Found(std::move(quota));
  }
  LPP_ASSIGN_OR_RETURN(const Mount mount, mount_of(kernel, folder), "quota");
  return Found(limits_are_off(mount, counts));
}

Result<std::optional<Error>> ProjectQuota::why_no_subvolumes(Kernel& kernel, int folder) {
  LPP_ASSIGN_OR_RETURN(const auto state, SubvolumeQuota(kernel, folder).state(), "quota");
  if (state != SubvolumeQuota::State::kOff && state != SubvolumeQuota::State::kInconsistent) {
    return std::optional<Error>();
  }
  LPP_ASSIGN_OR_RETURN(const Mount mount, mount_of(kernel, folder), "quota");
  return std::optional(
      unfit("no limits on " + described(mount) + ": " +
            (state == SubvolumeQuota::State::kOff
                 ? "quota is off. Turn it on with: btrfs quota enable "
                 : "what it has counted is not right. Count anew with: btrfs quota rescan -w ") +
            mount.point));
}

Result<void> ProjectQuota::check_can_hold(const Limits& limits) const {
  if (!by_subvolumes_ || limits.inodes == 0) return {};
  return unfit("btrfs limits no number of files: leave it away, or take an XFS or ext4");
}

Result<void> ProjectQuota::check_counts_former() const {
  if (!by_subvolumes_) return {};
  LPP_RETURN_IF_ERROR(check_has_counted(), "quota");
  LPP_ASSIGN_OR_RETURN(const auto state, SubvolumeQuota(*kernel_, folder_).state(), "quota");
  if (state != SubvolumeQuota::State::kSimple) return {};
  return unfit(
      "the quota of this btrfs is a simple one, which never counts what was there before: turn it "
      "off, and on without --simple, or make an empty volume and copy the data there");
}

Result<void> ProjectQuota::check_has_counted() const {
  if (!by_subvolumes_) return {};
  LPP_ASSIGN_OR_RETURN(const auto state, SubvolumeQuota(*kernel_, folder_).state(), "quota");
  if (state == SubvolumeQuota::State::kOn || state == SubvolumeQuota::State::kSimple) return {};
  if (state == SubvolumeQuota::State::kCounting) return not_counted_yet();
  // It was turned off, or lost count, only now.
  LPP_ASSIGN_OR_RETURN(const auto why, why_no_subvolumes(*kernel_, folder_), "quota");
  return Error{ErrorCode::kUnavailable, why ? why->message : not_counted_yet().message};
}

Result<ProjectQuota> ProjectQuota::open(Kernel& kernel, int folder) {
  LPP_ASSIGN_OR_RETURN(auto found, look(kernel, folder), "open");
  if (auto* const off = std::get_if<Error>(&found)) return std::move(*off);
  return std::get<ProjectQuota>(std::move(found));
}

Result<std::optional<ProjectQuota>> ProjectQuota::find(Kernel& kernel, int folder) {
  LPP_ASSIGN_OR_RETURN(auto found, look(kernel, folder), "find");
  if (std::holds_alternative<Error>(found)) return std::optional<ProjectQuota>();
  return std::optional(std::get<ProjectQuota>(std::move(found)));
}

Result<std::optional<ProjectUse>> ProjectQuota::use(std::uint32_t project) const {
  if (by_subvolumes_) return SubvolumeQuota(*kernel_, folder_).use(project);
  fs_disk_quota quota{};
  if (call(Q_XGETQUOTA, project, &quota) == 0) return std::optional(to_use(quota));
  const int error = errno;
  if (error == ENOENT) return std::optional<ProjectUse>();
  return quota_error(error, "usage of " + numbered(project) + " on " + where());
}

Result<std::optional<ProjectUse>> ProjectQuota::use_by_now(std::uint32_t project) const {
  if (!by_subvolumes_) return use(project);
  LPP_RETURN_IF_ERROR(commit(), "usage");
  // That it counts anew is known with a commit, too.
  LPP_RETURN_IF_ERROR(check_has_counted(), "quota");
  return use(project);
}

Result<void> ProjectQuota::each_use(std::uint32_t first,
                                    const std::function<void(const ProjectUse& use)>& tell) const {
  if (by_subvolumes_) {
    LPP_ASSIGN_OR_RETURN(const auto all, SubvolumeQuota(*kernel_, folder_).uses(), "subvolumes");
    for (const ProjectUse& use : all) {
      if (use.project >= first) tell(use);
    }
    return {};
  }
  for (std::uint32_t next = first;;) {
    fs_disk_quota quota{};
    if (call(Q_XGETNEXTQUOTA, next, &quota) != 0) {
      const int error = errno;
      if (error == ENOENT || error == ESRCH) return {};
      return quota_error(error, "usage of projects on " + where());
    }
    if (quota.d_id < next) return {};  // it never counts backwards; an endless loop is worse
    tell(to_use(quota));
    if (quota.d_id == UINT32_MAX) return {};
    next = quota.d_id + 1;
  }
}

Result<void> ProjectQuota::each_own_use(
    const std::function<void(const ProjectUse& use)>& tell) const {
  return each_use(kFirstProject, [&](const ProjectUse& use) {
    if (is_own(use.project)) tell(use);
  });
}

Result<std::vector<ProjectUse>> ProjectQuota::uses() const {
  std::vector<ProjectUse> all;
  LPP_RETURN_IF_ERROR(each_use(0, [&](const ProjectUse& use) { all.push_back(use); }), "uses");
  return all;
}

Result<void> ProjectQuota::limit(std::uint32_t project, const Limits& limits) const {
  if (by_subvolumes_) return SubvolumeQuota(*kernel_, folder_).limit(project, limits);
  fs_disk_quota quota{};
  quota.d_version = FS_DQUOT_VERSION;
  quota.d_flags = FS_PROJ_QUOTA;
  quota.d_fieldmask = FS_DQ_BHARD | FS_DQ_BSOFT | FS_DQ_IHARD | FS_DQ_ISOFT;
  quota.d_id = project;
  quota.d_blk_hardlimit = limits.bytes / kBlock + (limits.bytes % kBlock == 0 ? 0 : 1);
  quota.d_ino_hardlimit = limits.inodes;
  if (call(Q_XSETQLIM, project, &quota) == 0) return {};
  const int error = errno;
  return quota_error(error, "limit of " + numbered(project) + " on " + where());
}

Result<void> ProjectQuota::commit() const {
  if (!by_subvolumes_ || kernel_->sync_all(folder_) == 0) return {};
  // What fails may be anybody's file.
  return Error{ErrorCode::kUnavailable, system_error(errno, "syncfs on " + where()).message};
}

Result<void> ProjectQuota::release(std::uint32_t project) const {
  if (by_subvolumes_) return SubvolumeQuota(*kernel_, folder_).release(project);
  return limit(project, Limits{});
}

Result<void> ProjectQuota::release_unused(std::uint32_t project, std::uint64_t known) const {
  if (by_subvolumes_) return SubvolumeQuota(*kernel_, folder_).release_gone(project);
  LPP_ASSIGN_OR_RETURN(auto found, use(project), "release");
  if (!found || !found->limits.any()) return {};
  if (found->inodes.value_or(0) > known) {
    (void)kernel_->settle(folder_, project);
    LPP_ASSIGN_OR_RETURN(found, use(project), "release");
  }
  return found && found->inodes.value_or(0) <= known ? release(project) : Result<void>();
}

Result<std::uint32_t> ProjectQuota::number_of(int folder) const {
  return by_subvolumes_ ? subvolume_at(*kernel_, folder) : project_of(*kernel_, folder);
}

Result<std::optional<std::uint32_t>> ProjectQuota::free_project(std::string_view seed) const {
  std::uint32_t hash = 0;
  const std::string hex = short_hash(seed).substr(0, 8);
  std::from_chars(hex.data(), hex.data() + hex.size(), hash, 16);
  for (int probe = 0; probe < kMaxProbes; ++probe) {
    const std::uint32_t project =
        kFirstProject + (hash + static_cast<std::uint32_t>(probe)) % kProjects;
    LPP_ASSIGN_OR_RETURN(const auto found, use(project), "free project");
    if (!found || found->idle()) return std::optional(project);
  }
  return std::optional<std::uint32_t>();
}

Result<bool> ProjectQuota::try_project(int folder, std::uint32_t project) const {
  // Not handed down yet: what somebody makes in it just now would count as others' files.
  LPP_RETURN_IF_ERROR(set_project_of(*kernel_, folder, project, false), "project");
  LPP_ASSIGN_OR_RETURN(const auto found, use(project), "project");
  if (!found || found->inodes != 1U || found->limits.any()) return false;
  LPP_RETURN_IF_ERROR(set_project(*kernel_, folder, project), "project");
  return true;
}

Result<std::uint32_t> ProjectQuota::give_project(int folder, const std::string& seed) const {
  LPP_ASSIGN_OR_RETURN(const std::uint32_t before, project_of(*kernel_, folder), "project");
  const auto give = [&]() -> Result<std::uint32_t> {
    for (int attempt = 0; attempt < kMaxSeeds; ++attempt) {
      // Whoever can tell a number in advance can have it, and those around it, for his own files.
      LPP_ASSIGN_OR_RETURN(const auto project, free_project(attempt == 0 ? seed : random_uuid()),
                           "project");
      if (!project) continue;
      LPP_ASSIGN_OR_RETURN(const bool given, try_project(folder, *project), "project");
      if (given) return *project;
    }
    return Error{ErrorCode::kUnavailable, "others have every project that was tried; try again"};
  };
  auto given = give();
  // It is not to count as somebody else's.
  if (!given.ok()) (void)set_project(*kernel_, folder, before);
  return given;
}

bool ProjectQuota::is_own(std::uint32_t project) { return project - kFirstProject < kProjects; }

Result<ProjectQuota::Membership> ProjectQuota::membership_of(Kernel& kernel, int folder) {
  fsxattr attributes{};
  if (kernel.attributes(folder, attributes) == 0) {
    return Membership{.project = attributes.fsx_projid,
                      .handed_down = (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) != 0};
  }
  if (errno == ENOTTY || errno == EOPNOTSUPP) return Membership{};
  return system_error(errno, "project of a directory");
}

Result<std::uint32_t> ProjectQuota::project_of(Kernel& kernel, int folder) {
  LPP_ASSIGN_OR_RETURN(const Membership now, membership_of(kernel, folder), "look");
  return now.project;
}

Result<void> ProjectQuota::set_project(Kernel& kernel, int folder, std::uint32_t project) {
  return set_project_of(kernel, folder, project, project != 0);
}

Result<void> ProjectQuota::set_project_of_file(Kernel& kernel, int file, std::uint32_t project) {
  return set_project_of(kernel, file, project, false);
}

Result<void> ProjectQuota::set_project_of(Kernel& kernel, int fd, std::uint32_t project,
                                          bool handed_down) {
  fsxattr attributes{};
  if (kernel.attributes(fd, attributes) != 0) return system_error(errno, "FSGETXATTR");
  attributes.fsx_projid = project;
  attributes.fsx_xflags &= ~static_cast<unsigned>(FS_XFLAG_PROJINHERIT);
  if (handed_down) attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  if (kernel.set_attributes(fd, attributes) == 0) return {};
  const int error = errno;
  Error failure = system_error(error, "FSSETXATTR");
  if (error == EPERM) failure.message += " (it takes CAP_FOWNER)";
  if (error == EDQUOT) {  // of ext4, for who has no CAP_SYS_RESOURCE
    failure.code = ErrorCode::kInvalid;
    failure.message += " (what is there is more than the limit)";
  }
  return failure;
}

}  // namespace lpp::node
