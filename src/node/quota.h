#pragma once

#include <cstdint>
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
  std::uint64_t inodes = 0;
  Limits limits{};

  bool idle() const { return bytes == 0 && inodes == 0 && !limits.any(); }
};

/// kInvalid: the volume holds more than these limits. Pure.
Result<void> check_holds(const std::string& id, const Limits& limits, const ProjectUse& use);

/// The project quota of the file system that a folder is on: XFS and ext4, by the same calls.
/// Thread-safe. Kernel and descriptor must outlive it. Limits and usage need CAP_SYS_ADMIN in the
/// first user namespace, projects of other users' directories CAP_FOWNER: kForbidden.
class ProjectQuota {
 public:
  /// kUnfit when it cannot hold limits: the message names mount, file system and device, and the
  /// command that turns the quota on.
  static Result<ProjectQuota> open(Kernel& kernel, int folder);
  /// nullopt when it cannot, or cannot any more.
  static Result<std::optional<ProjectQuota>> find(Kernel& kernel, int folder);

  /// For tests: takes for granted that there are limits.
  static ProjectQuota assumed(Kernel& kernel, int folder) { return {kernel, folder, ""}; }

  /// nullopt: nothing was ever counted or limited.
  Result<std::optional<ProjectUse>> use(std::uint32_t project) const;
  /// Of every project of the file system, whoever's it is, by its number.
  Result<std::vector<ProjectUse>> uses() const;
  Result<void> limit(std::uint32_t project, const Limits& limits) const;
  /// A number without files and limits; the same seed tries the same ones first. It is taken by
  /// tagging a directory with it, until then under RecordFolder::lock_base().
  Result<std::uint32_t> free_project(std::string_view seed) const;

  /// One that free_project() may give.
  static bool is_own(std::uint32_t project);

  /// That of a directory; what is made in it later has it too.
  static Result<std::uint32_t> project_of(Kernel& kernel, int folder);
  static Result<void> set_project(Kernel& kernel, int folder, std::uint32_t project);
  /// That of a regular file.
  static Result<void> set_project_of_file(Kernel& kernel, int file, std::uint32_t project);

 private:
  ProjectQuota(Kernel& kernel, int folder, std::string device)
      : kernel_(&kernel), folder_(folder), device_(std::move(device)) {}
  /// Or why it holds no limits.
  static Result<std::variant<ProjectQuota, Error>> look(Kernel& kernel, int folder);
  Result<bool> find_state(const Mount& mount, bool& counts) const;
  static Result<void> set_project_of(Kernel& kernel, int fd, std::uint32_t project,
                                     bool handed_down);
  int call(unsigned command, std::uint32_t project, void* argument) const;

  Kernel* kernel_;
  int folder_;
  std::string device_;
};

}  // namespace lpp::node
