// SPDX-License-Identifier: Apache-2.0
#include "node/volumes.h"

#include <fcntl.h>

namespace lpp::node {

namespace {

constexpr std::uint64_t kSubvolumeRoot = 256;  // inode number of the root of a btrfs subvolume

Result<void> check_is_disk(Kernel& kernel, int base, const std::string& shown) {
  struct statx status {};
  if (kernel.status(base, status) != 0) return system_error(errno, "statx " + shown);
  LPP_ASSIGN_OR_RETURN(const Mount mount, mount_of(kernel, base), shown);
  if ((status.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) {
    return unfit(shown + " is not a mount point: it is a directory of " + mount.source +
                 ", mounted at " + mount.point + ". Is its disk mounted?");
  }
  if (mount.root == "/" || (mount.type == "btrfs" && status.stx_ino == kSubvolumeRoot)) return {};
  return unfit(shown + " is not the root of a file system: it shows the directory " + mount.root +
               " of " + mount.source + ". Is its disk mounted?");
}

Error way_error(int error, const std::string& what) {
  Error failure = system_error(error, what);
  if (error == ELOOP) failure.message += " (a symbolic link is in the way)";
  if (error == EXDEV) failure.message += " (something is mounted there)";
  return failure;
}

}  // namespace

Result<Volumes> Volumes::open(Kernel& kernel, const std::string& base, const Options& options) {
  UniqueFd fd(kernel.open(base.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) return system_error(errno, "open the base directory " + base);
  if (!UniqueFd(kernel.open_beneath(fd.get(), ".", O_PATH | O_DIRECTORY)).valid()) {
    Error error = system_error(errno, "openat2 in the base directory " + base);
    if (errno == ENOSYS || errno == EPERM) {
      error.code = ErrorCode::kUnfit;
      error.message += "; Linux 5.8 or newer is needed, and no seccomp profile that hides openat2";
    }
    return error;
  }
  if (options.require_mount) {
    LPP_RETURN_IF_ERROR(check_is_disk(kernel, fd.get(), base), "base directory refused");
  }
  return Volumes(kernel, base, std::move(fd));
}

Result<UniqueFd> Volumes::open_parent(const std::string& path) const {
  const auto slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
  UniqueFd fd(kernel_->open_beneath(base_.get(), parent.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) return system_error(errno, "open " + shown_ + "/" + parent);
  return fd;
}

Result<UniqueFd> Volumes::make_parent(const RecordFolder& records, const std::string& path) const {
  UniqueFd folder(kernel_->open_beneath(base_.get(), ".", O_RDONLY | O_DIRECTORY));
  if (!folder.valid()) return system_error(errno, "open " + shown_);
  for (std::size_t begin = 0, slash = 0; (slash = path.find('/', begin)) != std::string::npos;
       begin = slash + 1) {
    const std::string name = path.substr(begin, slash - begin);
    const std::string shown = shown_ + "/" + path.substr(0, slash);
    UniqueFd next(kernel_->open_beneath(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    if (!next.valid() && errno == ENOENT) {
      if (kernel_->make_folder(folder.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
        return system_error(errno, "mkdir " + shown);
      }
      if (!records.keeps_order() && kernel_->sync(folder.get()) != 0) {
        return system_error(errno, "fsync of the directory around " + shown);
      }
      next.reset(kernel_->open_beneath(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY));
    }
    if (!next.valid()) return way_error(errno, "open " + shown);
    folder = std::move(next);
  }
  return folder;
}

Result<void> Volumes::remove_parents(std::string path) const {
  while (true) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return {};
    path.resize(slash);
    const auto parent = open_parent(path);
    if (!parent.ok() && parent.error().is(ErrorCode::kNotFound)) continue;
    if (!parent.ok() && parent.error().is(ErrorCode::kInvalid)) return {};  // not a folder of ours
    if (!parent.ok()) return parent.error();
    const std::string name = path.substr(path.rfind('/') + 1);
    if (kernel_->remove_folder(parent->get(), name.c_str()) == 0 || errno == ENOENT) continue;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY || errno == ENOTDIR) return {};
    return system_error(errno, "rmdir " + shown_ + "/" + path);
  }
}

Result<std::optional<UniqueFd>> Volumes::find_directory(const std::string& path) const {
  UniqueFd fd(kernel_->open_beneath(base_.get(), path.c_str(), O_RDONLY | O_DIRECTORY));
  if (fd.valid()) return std::optional(std::move(fd));
  if (errno == ENOENT) return std::optional<UniqueFd>();
  return way_error(errno, shown_ + "/" + path);
}

Result<std::string> Volumes::identity() const {
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  return records ? records->identity() : Result<std::string>(std::string());
}

Result<DiskIdentity> Volumes::identities(const std::string& ours) const {
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  return records ? records->identities(ours) : Result<DiskIdentity>(DiskIdentity());
}

Result<UniqueFd> Volumes::base_folder() const {
  UniqueFd fd(kernel_->open_beneath(base_.get(), ".", O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) return system_error(errno, "open " + shown_);
  return fd;
}

}  // namespace lpp::node
