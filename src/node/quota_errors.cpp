// SPDX-License-Identifier: Apache-2.0
#include "node/quota_errors.h"

#include "base/strings.h"

namespace lpp::node {

std::string described(const Mount& mount) {
  return mount.source + " (" + mount.type +
         (mount.root == "/" ? std::string() : ", its directory " + mount.root) + ", mounted at " +
         mount.point + ")";
}

namespace {

/// Mounting anew what is mounted here would not do: it is a part of what is mounted elsewhere, as
/// in a helper pod, or where the base path is a plain directory of a disk.
std::string mount_anew(const Mount& mount, const std::string& between) {
  if (mount.root == "/") {
    const std::string point = shell_word(mount.point);
    return "umount " + point + between + " && mount -o prjquota " + shell_word(mount.source) + " " +
           point;
  }
  return "on the node, where " + mount.source + " is mounted as a whole: umount it" + between +
         ", mount it with -o prjquota";
}

}  // namespace

Error limits_are_off(const Mount& mount, bool counts) {
  std::string message = "no limits on " + described(mount) + ": ";
  if (mount.type == "xfs") {
    message += "project quota is off. Turn it on with: " + mount_anew(mount, "") +
               " (a remount is not enough; of the root file system: rootflags=prjquota on the "
               "kernel's command line)";
  } else if (mount.type == "ext4" && counts) {
    message += "project quota counts and does not limit. Turn it on with: quotaon -P " +
               shell_word(mount.root == "/" ? mount.point : mount.source) +
               " (and the mount option prjquota for the next time)";
  } else if (mount.type == "ext4") {
    message +=
        "project quota is off. Turn it on with: " +
        mount_anew(mount, " && tune2fs -O project,quota -Q prjquota " + shell_word(mount.source)) +
        " (of the root file system: from a rescue system)";
  } else {
    message += "this file system has none for directories; XFS, ext4 and btrfs have";
  }
  return unfit(std::move(message));
}

Error quota_error(int error, const std::string& what) {
  Error failure = system_error(error, what);
  switch (error) {
    case EPERM:
    case EACCES: failure.message += " (it takes CAP_SYS_ADMIN in the first user namespace)"; break;
    case EROFS:
      failure.message +=
          " (the mount that it goes through is read-only: mount it to be written to)";
      break;
    case ENOSPC:
    case EDQUOT:
      failure.message +=
          " (the disk is too full to write the limit down: remove something from it)";
      break;
    case ENOENT:
    case ENOTBLK:
    case ENODEV:
    case ENXIO:
      failure.code = ErrorCode::kUnfit;
      failure.message +=
          " (a kernel before Linux 5.14 is asked by the path of the device, which must be there: "
          "mount the node's /dev, or take a newer kernel)";
      break;
    case EIO:
    case EUCLEAN:
      failure.code = ErrorCode::kUnavailable;
      failure.message +=
          " (the disk or its file system is damaged: see the node's kernel log, and repair it)";
      break;
    case EINVAL:
    case EOPNOTSUPP:
      failure.code = ErrorCode::kUnfit;
      failure.message +=
          " (this kernel does not take the call for this file system: take XFS or ext4, and Linux "
          "5.8 or newer)";
      break;
    case ERANGE:
      failure.code = ErrorCode::kUnfit;
      failure.message +=
          " (the limit is larger than this file system can write down: ask for less)";
      break;
    case ENOSYS:
    case ENOTTY:
    case ENOTCONN:
    case ESRCH:
      failure.code = ErrorCode::kUnfit;
      failure.message += " (the quota is off by now; turn it on and try again)";
      break;
    default: break;
  }
  return failure;
}

}  // namespace lpp::node
