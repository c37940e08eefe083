// SPDX-License-Identifier: Apache-2.0
#include "node/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/btrfs_tree.h>
#include <linux/openat2.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>

namespace lpp::node {

namespace {

constexpr const char* kLabel = "security.selinux";

}  // namespace

template <typename Call>
auto Kernel::run(const char* name, Call call) -> decltype(call()) {
  if (const int error = before(name); error != 0) {
    errno = error;
    return -1;
  }
  const auto result = call();
  const int error = errno;
  after(name);
  errno = error;
  return result;
}

int Kernel::open(const char* path, int flags) {
  return run("open", [&] { return ::open(path, flags | O_CLOEXEC); });
}

int Kernel::open_beneath(int folder, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return run("openat2", [&] {
    return static_cast<int>(::syscall(SYS_openat2, folder, path, &how, sizeof how));
  });
}

int Kernel::create(int folder, const char* name) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  return run("create", [&] { return ::openat(folder, name, kFlags, 0600); });
}

ssize_t Kernel::read(int fd, void* to, std::size_t size) {
  return run("read", [&] { return ::read(fd, to, size); });
}

ssize_t Kernel::write(int fd, const void* from, std::size_t size) {
  return run("write", [&] { return ::write(fd, from, size); });
}

int Kernel::sync(int fd) {
  return run("fsync", [&] { return ::fsync(fd); });
}

int Kernel::sync_all(int fd) {
  return run("syncfs", [&] { return ::syncfs(fd); });
}

int Kernel::make_folder(int folder, const char* name, mode_t mode) {
  return run("mkdirat", [&] { return ::mkdirat(folder, name, mode); });
}

int Kernel::move(int from_folder, const char* from, int to_folder, const char* to) {
  return run("renameat2", [&] {
    const int result = ::renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE);
    // NFS and some others do not know the flag. A rename replaces an empty directory at most.
    struct stat there {};
    if (result == 0 || errno != EINVAL) return result;
    if (::fstatat(to_folder, to, &there, AT_SYMLINK_NOFOLLOW) == 0) {
      errno = EEXIST;
      return -1;
    }
    return ::renameat(from_folder, from, to_folder, to);
  });
}

int Kernel::replace(int folder, const char* from, const char* to) {
  return run("renameat", [&] { return ::renameat(folder, from, folder, to); });
}

int Kernel::remove_file(int folder, const char* name) {
  return run("unlinkat", [&] { return ::unlinkat(folder, name, 0); });
}

int Kernel::remove_folder(int folder, const char* name) {
  return run("rmdir", [&] { return ::unlinkat(folder, name, AT_REMOVEDIR); });
}

int Kernel::chown(int fd, uid_t user, gid_t group) {
  return run("fchown", [&] { return ::fchown(fd, user, group); });
}

int Kernel::chmod(int fd, mode_t mode) {
  return run("fchmod", [&] { return ::fchmod(fd, mode); });
}

ssize_t Kernel::read_names(int fd, std::span<char> to) {
  return run("getdents64", [&] { return ::getdents64(fd, to.data(), to.size()); });
}

int Kernel::status(int fd, struct statx& to) {
  constexpr unsigned kMask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;
  return run("statx", [&] { return ::statx(fd, "", AT_EMPTY_PATH, kMask, &to); });
}

int Kernel::filesystem(int fd, struct statfs& to) {
  return run("fstatfs", [&] { return ::fstatfs(fd, &to); });
}

int Kernel::generation(int fd, std::uint32_t& to) {
  // An int is what is written, whatever the request's number says.
  long value = 0;
  const int result = run("GETVERSION", [&] { return ::ioctl(fd, FS_IOC_GETVERSION, &value); });
  std::memcpy(&to, &value, sizeof to);
  return result;
}

int Kernel::attributes(int fd, fsxattr& to) {
  return run("FSGETXATTR", [&] { return ::ioctl(fd, FS_IOC_FSGETXATTR, &to); });
}

int Kernel::set_attributes(int fd, const fsxattr& from) {
  return run("FSSETXATTR", [&] { return ::ioctl(fd, FS_IOC_FSSETXATTR, &from); });
}

int Kernel::label(int fd, std::string& to) {
  std::array<char, 4096> buffer{};
  const auto size =
      run("fgetxattr", [&] { return ::fgetxattr(fd, kLabel, buffer.data(), buffer.size()); });
  if (size < 0) return -1;
  to.assign(buffer.data(), static_cast<std::size_t>(size));
  return 0;
}

int Kernel::set_label(int fd, const std::string& label) {
  return run("fsetxattr",
             [&] { return ::fsetxattr(fd, kLabel, label.c_str(), label.size() + 1, 0); });
}

int Kernel::lock(int fd, int command, struct flock& lock) {
  return run("fcntl", [&] { return ::fcntl(fd, command, &lock); });
}

int Kernel::quota(int fd, const char* device, unsigned command, std::uint32_t project,
                  void* argument) {
  const unsigned call = QCMD(command, PRJQUOTA);
  return run("quotactl", [&] {
    const long result = ::syscall(SYS_quotactl_fd, fd, call, project, argument);
    // ENOSYS is also the answer of a file system without quota: then the old call says it again.
    if (result >= 0 || errno != ENOSYS || device == nullptr) return static_cast<int>(result);
    if (::syscall(SYS_quotactl_fd, -1, call, project, argument) < 0 && errno != ENOSYS) {
      errno = ENOSYS;
      return -1;
    }
    return static_cast<int>(::syscall(SYS_quotactl, call, device, project, argument));
  });
}

int Kernel::settle(int fd, std::uint32_t project) {
  // XFS_IOC_FREE_EOFBLOCKS: what it is named for is done to that project's files only.
  struct {
    std::uint32_t version = 1;
    std::uint32_t flags = 1U << 3U;  // of one project
    std::uint32_t user = 0;
    std::uint32_t group = 0;
    std::uint32_t project = 0;
    std::uint32_t unused = 0;
    std::uint64_t least_size = 0;
    std::array<std::uint64_t, 12> reserved{};
  } arguments;
  static_assert(sizeof arguments == 128);
  arguments.project = project;
  constexpr unsigned long kCall = _IOC(_IOC_READ, 'X', 58, sizeof arguments);
  return run("FREE_EOFBLOCKS", [&] { return ::ioctl(fd, kCall, &arguments); });
}

Verdict verdict_of(const Error& error) {
  if (error.is(ErrorCode::kInvalid) || error.is(ErrorCode::kAlreadyExists)) return Verdict::kNever;
  return error.is(ErrorCode::kUnfit) ? Verdict::kElsewhere : Verdict::kAgain;
}

int Kernel::make_subvolume(int folder, const char* name) {
  btrfs_ioctl_vol_args arguments{};
  const std::string_view text(name);
  if (text.size() >= sizeof arguments.name) {
    errno = ENAMETOOLONG;
    return -1;
  }
  text.copy(arguments.name, text.size());
  return run("SUBVOL_CREATE", [&] { return ::ioctl(folder, BTRFS_IOC_SUBVOL_CREATE, &arguments); });
}

int Kernel::subvolume(int fd, std::uint64_t& to) {
  btrfs_ioctl_ino_lookup_args arguments{};
  arguments.objectid = BTRFS_FIRST_FREE_OBJECTID;
  const int result =
      run("INO_LOOKUP", [&] { return ::ioctl(fd, BTRFS_IOC_INO_LOOKUP, &arguments); });
  to = arguments.treeid;
  return result;
}

int Kernel::make_writable(int fd) {
  return run("SUBVOL_SETFLAGS", [&] {
    std::uint64_t flags = 0;
    if (::ioctl(fd, BTRFS_IOC_SUBVOL_GETFLAGS, &flags) != 0) return -1;
    flags &= ~static_cast<std::uint64_t>(BTRFS_SUBVOL_RDONLY);
    return ::ioctl(fd, BTRFS_IOC_SUBVOL_SETFLAGS, &flags);
  });
}

int Kernel::limit_subvolume(int fd, std::uint64_t subvolume, std::uint64_t bytes) {
  btrfs_ioctl_qgroup_limit_args arguments{};
  arguments.qgroupid = subvolume;
  arguments.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  arguments.lim.max_rfer = bytes == 0 ? UINT64_MAX : bytes;
  return run("QGROUP_LIMIT", [&] { return ::ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &arguments); });
}

int Kernel::remove_counter(int fd, std::uint64_t subvolume) {
  btrfs_ioctl_qgroup_create_args arguments{};
  arguments.qgroupid = subvolume;
  return run("QGROUP_CREATE", [&] { return ::ioctl(fd, BTRFS_IOC_QGROUP_CREATE, &arguments); });
}

int Kernel::search_tree(int fd, btrfs_ioctl_search_args& arguments) {
  return run("TREE_SEARCH", [&] { return ::ioctl(fd, BTRFS_IOC_TREE_SEARCH, &arguments); });
}

bool is_not_there(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == EXDEV;
}

Error system_error(int error, std::string_view what) {
  std::string message(what);
  message.append(": ").append(std::generic_category().message(error));
  ErrorCode code = ErrorCode::kInternal;
  switch (error) {
    case ENOENT: code = ErrorCode::kNotFound; break;
    case EEXIST: code = ErrorCode::kAlreadyExists; break;
    case EPERM:
    case EACCES: code = ErrorCode::kForbidden; break;
    case ENOSPC:
    case EDQUOT:
    case EROFS: code = ErrorCode::kUnfit; break;
    case EIO:
    case EBUSY:
    case EINTR:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOTEMPTY: code = ErrorCode::kUnavailable; break;
    case EINVAL:
    case ELOOP:
    case ENOTDIR:
    case EXDEV:
    case ENAMETOOLONG:
    case ENOSYS:
    case EOPNOTSUPP: code = ErrorCode::kInvalid; break;
    default: break;
  }
  return Error{.code = code, .message = std::move(message)};
}

Result<Identity> identity_of(Kernel& kernel, int fd) {
  struct statx status {};
  if (kernel.status(fd, status) != 0) return system_error(errno, "statx");
  Identity identity{.inode = status.stx_ino};
  if (status.stx_ino == BTRFS_FIRST_FREE_OBJECTID) {
    std::uint64_t subvolume = 0;
    if (kernel.subvolume(fd, subvolume) == 0) {
      identity.inode = subvolume;
    } else if (errno != ENOTTY && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) {
      return system_error(errno, "INO_LOOKUP");
    }
  }
  if ((status.stx_mask & STATX_BTIME) != 0) {
    identity.born_ns = status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec;
  }
  if (kernel.generation(fd, identity.generation) == 0) return identity;
  if (errno != ENOTTY && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) {
    return system_error(errno, "GETVERSION");
  }
  identity.generation = 0;
  return identity;
}

Result<std::string> read_file(Kernel& kernel, int fd, std::size_t limit, FileOf where) {
  constexpr std::size_t kBatch = 4096;
  std::string text;
  while (true) {
    const std::size_t have = text.size();
    if (have > limit) return invalid("the file has more than " + std::to_string(limit) + " bytes");
    text.resize(have + kBatch);
    const ssize_t got = kernel.read(fd, text.data() + have, kBatch);
    if (got < 0) return system_error(errno, "read");
    text.resize(have + static_cast<std::size_t>(got));
    const bool is_short = static_cast<std::size_t>(got) < kBatch;
    if (got == 0 || (where == FileOf::kDisk && is_short && text.size() <= limit)) return text;
  }
}

}  // namespace lpp::node
