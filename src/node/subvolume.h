// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "node/kernel.h"
#include "node/quota.h"

namespace lpp::node {

/// btrfs counts and limits subvolumes, where others have projects: here the number of a subvolume
/// stands for that of a project. What is counted is as of the last commit, 30 s ago at most, and
/// inodes are not. A subvolume that is made inside another one is counted by itself.

/// Whether the file system of a descriptor is btrfs.
Result<bool> is_btrfs(Kernel& kernel, int fd);

/// 0: the folder is not the root of a subvolume.
Result<std::uint32_t> subvolume_at(Kernel& kernel, int folder);

/// The quota of a whole btrfs, through any folder of it. Stateless and thread-safe. All but make
/// and number need CAP_SYS_ADMIN: kForbidden.
class SubvolumeQuota {
 public:
  enum class State {
    kOff,
    kCounting,      // turned on a while ago: what was there before is not all counted yet
    kInconsistent,  // what is counted is not right, until it is counted anew
    kSimple,        // of Linux 6.7 on: what was there before is never counted
    kOn,
  };

  /// Both must outlive it.
  SubvolumeQuota(Kernel& kernel, int folder) : kernel_(kernel), folder_(folder) {}

  Result<State> state() const;
  /// nullopt: it is not counted.
  Result<std::optional<ProjectUse>> use(std::uint32_t subvolume) const;
  /// Of all subvolumes, by their numbers.
  Result<std::vector<ProjectUse>> uses() const;
  Result<void> limit(std::uint32_t subvolume, const Limits& limits) const;
  Result<bool> is_there(std::uint32_t subvolume) const;
  /// Takes its limit off. Of one that is gone, and of all that went before, what was counted goes
  /// too, as soon as the kernel has taken them apart.
  Result<void> release(std::uint32_t subvolume) const;
  /// The same, but of one that is there nothing.
  Result<void> release_gone(std::uint32_t subvolume) const;

 private:
  Result<std::vector<ProjectUse>> uses_between(std::uint64_t first, std::uint64_t last) const;
  Result<void> remove_counters_of_gone() const;

  Kernel& kernel_;
  const int folder_;
};

}  // namespace lpp::node
