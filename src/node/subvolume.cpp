// SPDX-License-Identifier: Apache-2.0
#include "node/subvolume.h"

#include <endian.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>

#include <cstring>
#include <map>
#include <string>

#include "node/quota_errors.h"

namespace lpp::node {

namespace {

/// BTRFS_QGROUP_STATUS_FLAG_SIMPLE_MODE, younger than the headers.
constexpr std::uint64_t kSimpleMode = 1U << 3U;

std::string named(std::uint32_t subvolume) { return "subvolume " + std::to_string(subvolume); }

struct Key {
  std::uint64_t object = 0;
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

/// The n-th number of an item; 0 where the item is too short for it.
std::uint64_t member(std::string_view item, std::size_t n) {
  std::uint64_t value = 0;
  if (item.size() < (n + 1) * sizeof value) return 0;
  std::memcpy(&value, item.data() + n * sizeof value, sizeof value);
  return le64toh(value);
}

/// Calls `each` with key and bytes of the items between two keys of the same object. False: there
/// is no such tree.
template <typename Each>
Result<bool> search(Kernel& kernel, int fd, std::uint64_t tree, Key first, const Key& last,
                    Each&& each) {
  while (true) {
    btrfs_ioctl_search_args arguments{};
    arguments.key.tree_id = tree;
    arguments.key.min_objectid = arguments.key.max_objectid = first.object;
    arguments.key.min_type = first.type;
    arguments.key.max_type = last.type;
    arguments.key.min_offset = first.offset;
    arguments.key.max_offset = last.offset;
    arguments.key.max_transid = UINT64_MAX;
    arguments.key.nr_items = UINT32_MAX;
    if (kernel.search_tree(fd, arguments) != 0) {
      if (errno == ENOENT) return false;
      return quota_error(errno, "look into the quota of btrfs");
    }
    if (arguments.key.nr_items == 0) return true;
    std::size_t at = 0;
    Key met = first;
    for (std::uint32_t i = 0; i < arguments.key.nr_items; ++i) {
      btrfs_ioctl_search_header head{};
      if (sizeof arguments.buf - at < sizeof head) break;
      std::memcpy(&head, arguments.buf + at, sizeof head);
      at += sizeof head;
      if (sizeof arguments.buf - at < head.len) break;
      met = {head.objectid, head.type, head.offset};
      each(met, std::string_view(arguments.buf + at, head.len));
      at += head.len;
    }
    // On from the key behind; it never counts backwards: an endless loop is worse.
    const bool forward =
        met.type > first.type || (met.type == first.type && met.offset >= first.offset);
    if (!forward || met.offset == UINT64_MAX) return true;
    first.type = met.type;
    first.offset = met.offset + 1;
  }
}

}  // namespace

Result<bool> is_btrfs(Kernel& kernel, int fd) {
  struct statfs filesystem {};
  if (kernel.filesystem(fd, filesystem) != 0) return system_error(errno, "statfs");
  return static_cast<std::uint64_t>(filesystem.f_type) == BTRFS_SUPER_MAGIC;
}

Result<std::uint32_t> subvolume_at(Kernel& kernel, int folder) {
  LPP_ASSIGN_OR_RETURN(const bool btrfs, is_btrfs(kernel, folder), "look");
  if (!btrfs) return std::uint32_t{0};
  struct statx status {};
  if (kernel.status(folder, status) != 0) return system_error(errno, "statx");
  if (status.stx_ino != BTRFS_FIRST_FREE_OBJECTID) return std::uint32_t{0};
  std::uint64_t number = 0;
  if (kernel.subvolume(folder, number) != 0) return system_error(errno, "INO_LOOKUP");
  if (number > UINT32_MAX) return unfit("more subvolumes were made than 2^32");
  return static_cast<std::uint32_t>(number);
}

Result<SubvolumeQuota::State> SubvolumeQuota::state() const {
  std::optional<std::uint64_t> flags;
  LPP_ASSIGN_OR_RETURN(
      const bool found,
      search(kernel_, folder_, BTRFS_QUOTA_TREE_OBJECTID, {.type = BTRFS_QGROUP_STATUS_KEY},
             {.type = BTRFS_QGROUP_STATUS_KEY},
             [&](const Key& /*key*/, std::string_view item) { flags = member(item, 2); }),
      "quota");
  if (!found || !flags || (*flags & BTRFS_QGROUP_STATUS_FLAG_ON) == 0) return State::kOff;
  if ((*flags & BTRFS_QGROUP_STATUS_FLAG_RESCAN) != 0) return State::kCounting;
  if ((*flags & BTRFS_QGROUP_STATUS_FLAG_INCONSISTENT) != 0) return State::kInconsistent;
  if ((*flags & kSimpleMode) != 0) return State::kSimple;
  return State::kOn;
}

Result<std::vector<ProjectUse>> SubvolumeQuota::uses_between(std::uint64_t first,
                                                             std::uint64_t last) const {
  std::map<std::uint64_t, ProjectUse> found;
  const auto read = [&](const Key& key, std::string_view item) {
    if (key.offset < first || key.offset > last) return;
    if (key.type == BTRFS_QGROUP_INFO_KEY) {
      found[key.offset].bytes = member(item, 1);
    } else if (key.type == BTRFS_QGROUP_LIMIT_KEY) {
      const bool limited = (member(item, 0) & BTRFS_QGROUP_LIMIT_MAX_RFER) != 0;
      found[key.offset].limits.bytes = limited ? member(item, 1) : 0;
    }
  };
  for (const std::uint32_t type :
       {std::uint32_t{BTRFS_QGROUP_INFO_KEY}, std::uint32_t{BTRFS_QGROUP_LIMIT_KEY}}) {
    LPP_RETURN_IF_ERROR(
        search(kernel_, folder_, BTRFS_QUOTA_TREE_OBJECTID, {.type = type, .offset = first},
               {.type = type, .offset = last}, read),
        "usage of subvolumes");
  }
  std::vector<ProjectUse> uses;
  for (auto& [number, use] : found) {
    use.project = static_cast<std::uint32_t>(number);
    use.inodes = std::nullopt;
    uses.push_back(use);
  }
  return uses;
}

Result<std::optional<ProjectUse>> SubvolumeQuota::use(std::uint32_t subvolume) const {
  LPP_ASSIGN_OR_RETURN(const auto uses, uses_between(subvolume, subvolume), "usage");
  return uses.empty() ? std::nullopt : std::optional(uses.front());
}

Result<std::vector<ProjectUse>> SubvolumeQuota::uses() const {
  return uses_between(BTRFS_FIRST_FREE_OBJECTID, UINT32_MAX);
}

Result<void> SubvolumeQuota::limit(std::uint32_t subvolume, const Limits& limits) const {
  if (kernel_.limit_subvolume(folder_, subvolume, limits.bytes) == 0) return {};
  if (errno != ENOENT) return quota_error(errno, "limit of " + named(subvolume));
  return unfit("limit of " + named(subvolume) +
               ": the quota of btrfs does not count it. Turn it off and on, which takes all limits "
               "off, and set them again with 'node resize': with the mount point of its file "
               "system, btrfs quota disable MOUNT_POINT && btrfs quota enable MOUNT_POINT && "
               "btrfs quota rescan -w MOUNT_POINT");
}

Result<bool> SubvolumeQuota::is_there(std::uint32_t subvolume) const {
  bool named = false;
  LPP_RETURN_IF_ERROR(search(kernel_, folder_, BTRFS_ROOT_TREE_OBJECTID,
                             {.object = subvolume, .type = BTRFS_ROOT_BACKREF_KEY},
                             {.type = BTRFS_ROOT_BACKREF_KEY, .offset = UINT64_MAX},
                             [&](const Key& /*key*/, std::string_view /*item*/) { named = true; }),
                      "look for a subvolume");
  return named;
}

Result<void> SubvolumeQuota::release(std::uint32_t subvolume) const {
  if (kernel_.limit_subvolume(folder_, subvolume, 0) != 0) {
    // Newer kernels forget what they counted of a subvolume together with it; ENOTCONN: the quota
    // is off by now.
    if (errno == ENOENT || errno == ENOTCONN) return {};
    return quota_error(errno, "release the limit of " + named(subvolume));
  }
  LPP_ASSIGN_OR_RETURN(const bool there, is_there(subvolume), "release");
  return there ? Result<void>() : remove_counters_of_gone();
}

Result<void> SubvolumeQuota::release_gone(std::uint32_t subvolume) const {
  LPP_ASSIGN_OR_RETURN(const bool there, is_there(subvolume), "release");
  return there ? Result<void>() : release(subvolume);
}

/// One that is there takes up a block at least. Of one that is gone nothing is lost with its
/// counter, whoever made it; its number may be given again when the file system is mounted anew.
Result<void> SubvolumeQuota::remove_counters_of_gone() const {
  LPP_ASSIGN_OR_RETURN(const auto all, uses(), "subvolumes");
  for (const ProjectUse& use : all) {
    if (!use.idle()) continue;
    LPP_ASSIGN_OR_RETURN(const bool there, is_there(use.project), "subvolumes");
    if (there || kernel_.remove_counter(folder_, use.project) == 0) continue;
    // EBUSY: not taken apart yet; the next release comes by. ENOTCONN: as in release().
    if (errno != ENOENT && errno != EBUSY && errno != ENOTCONN) {
      return quota_error(errno, "forget " + named(use.project));
    }
  }
  return {};
}

}  // namespace lpp::node
