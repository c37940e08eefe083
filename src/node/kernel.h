// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/btrfs.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

struct flock;

namespace lpp::node {

/// The system calls that this folder is made of, by one seam: a test puts an error in the place of
/// a call, or ends the process before or after it. Methods return what the call returns, -1 with
/// errno set when it fails; those that return a descriptor pass its ownership on, closed on exec.
/// Names are one component and are never followed when they are symbolic links. Stateless and
/// thread-safe.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  /// Follows symbolic links: for paths that an administrator has set.
  int open(const char* path, int flags);
  /// Below the folder, through no symbolic link and no other mount: ELOOP, EXDEV. ENOSYS before
  /// Linux 5.6.
  int open_beneath(int folder, const char* path, int flags);
  /// A file for its owner only, emptied if it is there.
  int create(int folder, const char* name);
  ssize_t read(int fd, void* to, std::size_t size);
  ssize_t write(int fd, const void* from, std::size_t size);
  int sync(int fd);
  /// All of the file system that it is on, and returns when that is on the disk.
  int sync_all(int fd);

  int make_folder(int folder, const char* name, mode_t mode);
  /// EEXIST instead of replacing what is at the new place.
  int move(int from_folder, const char* from, int to_folder, const char* to);
  int replace(int folder, const char* from, const char* to);
  int remove_file(int folder, const char* name);
  int remove_folder(int folder, const char* name);

  int chown(int fd, uid_t user, gid_t group);
  int chmod(int fd, mode_t mode);
  /// The folder's next entries as linux_dirent64; 0 at the end.
  ssize_t read_names(int fd, std::span<char> to);
  int status(int fd, struct statx& to);
  int filesystem(int fd, struct statfs& to);
  /// FS_IOC_GETVERSION: what tells an inode from the former ones of its number.
  int generation(int fd, std::uint32_t& to);
  /// A test may give other answers.
  virtual int attributes(int fd, fsxattr& to);
  virtual int set_attributes(int fd, const fsxattr& from);
  /// That of SELinux, as the kernel keeps it. A test may give other answers.
  virtual int label(int fd, std::string& to);
  virtual int set_label(int fd, const std::string& label);
  /// F_OFD_SETLK and F_OFD_SETLKW.
  int lock(int fd, int command, struct flock& lock);
  /// Project quota of the file system that `fd` is on. `device` is for kernels before 5.14.
  /// A test may give other answers.
  virtual int quota(int fd, const char* device, unsigned command, std::uint32_t project,
                    void* argument);
  /// XFS counts what was removed a moment later: waits until it has. Others have no such call.
  int settle(int fd, std::uint32_t project);

  // Of btrfs; of other file systems they fail with ENOTTY.
  int make_subvolume(int folder, const char* name);
  /// The number of the subvolume that it is in.
  int subvolume(int fd, std::uint64_t& to);
  /// Of the root of a subvolume: takes off that it is read-only.
  int make_writable(int fd);
  /// Through any folder of the file system. 0 bytes: no limit. A test may give other answers.
  virtual int limit_subvolume(int fd, std::uint64_t subvolume, std::uint64_t bytes);
  /// What is counted of it. Only when it is gone: else nothing is counted any more. A test may
  /// give other answers.
  virtual int remove_counter(int fd, std::uint64_t subvolume);
  /// Items of the file system's trees. A test may give other answers.
  virtual int search_tree(int fd, btrfs_ioctl_search_args& arguments);

 protected:
  /// For tests. 0: the call is made; else it is not and fails with this errno.
  virtual int before(const char* /*call*/) { return 0; }
  virtual void after(const char* /*call*/) {}

 private:
  template <typename Call>
  auto run(const char* name, Call call) -> decltype(call());
};

/// "<what>: No space left on device", with the code that says what a caller can do:
/// kNotFound, kAlreadyExists, kForbidden (a right is missing), kUnfit (full, or mounted read-only),
/// kUnavailable (busy, broken: again later), kInvalid (it will never work like this).
Error system_error(int error, std::string_view what);

/// Of open_beneath(): nothing is there, or no such thing of this mount, as a link or a mount.
bool is_not_there(int error);

/// What an error of this folder means for who wants the work done.
enum class Verdict {
  kAgain,      // it may go well the next time
  kNever,      // not like this
  kElsewhere,  // not in this base folder, as when its disk is full; in another one perhaps
};
Verdict verdict_of(const Error& error);

/// What tells a directory from all others, whatever it is called: the inode number of one that is
/// gone is given again at once, and in the same tick of the kernel's clock with the same time of
/// birth, but not with the same generation. The root of a btrfs subvolume has its number for the
/// inode number, which is the same in all of them.
struct Identity {
  std::uint64_t inode = 0;
  std::int64_t born_ns = 0;      // since 1970; 0 where the file system does not know
  std::uint32_t generation = 0;  // 0 where nobody knows: then the others decide

  bool operator==(const Identity& other) const {
    const bool unknown = generation == 0 || other.generation == 0;
    return inode == other.inode && born_ns == other.born_ns &&
           (unknown || generation == other.generation);
  }
};
/// Not of a descriptor with O_PATH.
Result<Identity> identity_of(Kernel& kernel, int fd);

/// A line of /proc/self/mountinfo.
struct Mount {
  std::uint64_t id = 0;
  std::string device{};  // "8:17": of the file system, of btrfs too the same for all subvolumes
  std::string root{};    // the folder of the file system that is mounted; "/" = all of it
  std::string point{};   // where
  std::string type{};    // "xfs"
  std::string source{};  // "/dev/sdb1"
};

/// The mount that a descriptor was opened through.
Result<Mount> mount_of(Kernel& kernel, int fd);

/// Where something is mounted at or below the directory; "" = nothing is.
Result<std::string> mounted_below(Kernel& kernel, int fd);

/// A whole file, if it has at most `limit` bytes. Of one on a disk a read that gives less than was
/// asked for is the last one; those of /proc give as much as they like.
enum class FileOf { kDisk, kProc };
Result<std::string> read_file(Kernel& kernel, int fd, std::size_t limit, FileOf where);

}  // namespace lpp::node
