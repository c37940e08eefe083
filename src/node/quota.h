// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "node/kernel.h"
#include "node/volume.h"

namespace lpp::node {

/// What the files of one project take up, and may.
struct ProjectUse {
  std::uint32_t project = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> inodes = 0;  // nullopt: they are not counted (btrfs)
  Limits limits{};

  bool idle() const { return bytes == 0 && inodes.value_or(0) == 0 && !limits.any(); }
};

/// kInvalid: the volume holds more than these limits. Pure.
Result<void> check_holds(const std::string& id, const Limits& limits, const ProjectUse& use);

/// The project quota of the file system that a folder is on: XFS and ext4, by the same calls. On
/// btrfs subvolumes are counted and limited instead: the number of one stands for a project's, and
/// only a directory that was made as a subvolume has one. Thread-safe. Kernel and descriptor must
/// outlive it. Limits and usage need CAP_SYS_ADMIN in the first user namespace, projects of other
/// users' directories CAP_FOWNER: kForbidden.
class ProjectQuota {
 public:
  /// kUnfit when it cannot hold limits: the message names mount, file system and device, and the
  /// command that turns the quota on.
  static Result<ProjectQuota> open(Kernel& kernel, int folder);
  /// nullopt when it cannot, or cannot any more.
  static Result<std::optional<ProjectQuota>> find(Kernel& kernel, int folder);

  bool by_subvolumes() const { return by_subvolumes_; }
  /// kUnfit: there are no such limits on this file system.
  Result<void> check_can_hold(const Limits& limits) const;
  /// Of what was there before it was turned on. kUnavailable: see check_has_counted(); kUnfit: it
  /// is never counted.
  Result<void> check_counts_former() const;
  /// kUnavailable: what is there is being counted anew, so that figures may be too low or too high.
  Result<void> check_has_counted() const;

  /// For tests: takes for granted that there are limits.
  static ProjectQuota assumed(Kernel& kernel, int folder, const Mount& mount = {});

  /// nullopt: nothing was ever counted or limited.
  Result<std::optional<ProjectUse>> use(std::uint32_t project) const;
  /// The same, but as of now: btrfs counts at each commit, so all that is written goes to the disk
  /// first. kUnavailable: that failed, or see check_has_counted().
  Result<std::optional<ProjectUse>> use_by_now(std::uint32_t project) const;
  /// Tells every project of the file system from that number on, whoever's it is, one by one: there
  /// may be any number of them. Each step begins behind a number that is there, or at a power of
  /// two: from elsewhere ext4 may leave out some where what lay there has just gone.
  Result<void> each_use(std::uint32_t first,
                        const std::function<void(const ProjectUse& use)>& tell) const;
  /// The same of those that free_project() may give.
  Result<void> each_own_use(const std::function<void(const ProjectUse& use)>& tell) const;
  /// All of them, by their numbers.
  Result<std::vector<ProjectUse>> uses() const;
  Result<void> limit(std::uint32_t project, const Limits& limits) const;
  /// What btrfs counts, and the limits that it was given, are those of its last commit: makes one.
  /// kUnavailable: that failed, for whatever file it was.
  Result<void> commit() const;
  /// Takes the limits off. A project that is gone with its directory leaves nothing behind.
  Result<void> release(std::uint32_t project) const;
  /// The same of a number that is only on record, and may have been given anew since: left alone if
  /// more files have it than the `known` ones, or the subvolume is there.
  Result<void> release_unused(std::uint32_t project, std::uint64_t known) const;
  /// That of a directory; 0 = it has none.
  Result<std::uint32_t> number_of(int folder) const;
  /// A number without files and limits, of XFS and ext4, out of some that the seed alone decides;
  /// nullopt: none of them is free. Others may be about to take it, too: see give_project().
  Result<std::optional<std::uint32_t>> free_project(std::string_view seed) const;
  /// Gives the directory a number that no other file has, and that what is made in it gets from
  /// then on: one of the seed's, so that what is made again leaves no new ones behind, which the
  /// file system keeps an entry of; where others have these, any. Safe against whoever does the
  /// same anywhere on the file system, also through other base folders, which share no lock: it is
  /// believed only when the directory is counted as the one that has it. kUnavailable: others came
  /// in between all the time; then, as after any error, the directory has its former number.
  Result<std::uint32_t> give_project(int folder, const std::string& seed) const;

  /// One that free_project() may give.
  static bool is_own(std::uint32_t project);

  struct Membership {
    std::uint32_t project = 0;
    bool handed_down = false;  // what is made in it gets it, too: its owner can turn that off
  };
  static Result<Membership> membership_of(Kernel& kernel, int folder);
  /// That of a directory; what is made in it later has it too.
  static Result<std::uint32_t> project_of(Kernel& kernel, int folder);
  static Result<void> set_project(Kernel& kernel, int folder, std::uint32_t project);
  /// That of a regular file.
  static Result<void> set_project_of_file(Kernel& kernel, int file, std::uint32_t project);

 private:
  ProjectQuota(Kernel& kernel, int folder) : kernel_(&kernel), folder_(folder) {}
  /// Or why it holds no limits.
  static Result<std::variant<ProjectQuota, Error>> look(Kernel& kernel, int folder);
  void know(Mount mount);
  /// Whether there are limits. Of XFS and ext4.
  Result<bool> find_state(bool& counts);
  /// nullopt: it can.
  static Result<std::optional<Error>> why_no_subvolumes(Kernel& kernel, int folder);
  static Result<void> set_project_of(Kernel& kernel, int fd, std::uint32_t project,
                                     bool handed_down);
  /// False: others have it, too.
  Result<bool> try_project(int folder, std::uint32_t project) const;
  int call(unsigned command, std::uint32_t project, void* argument) const;
  std::string where() const;  // for messages

  Kernel* kernel_;
  int folder_;
  /// Looked up only where it is needed: a node's table of mounts is long.
  std::optional<Mount> mount_{};
  std::string device_{};
  bool by_subvolumes_ = false;
};

}  // namespace lpp::node
