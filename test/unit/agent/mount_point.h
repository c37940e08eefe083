// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "unit/node/node_bed.h"

namespace lpp::testing {

/// The base folder as the mount point of disks that come and go.
class MountPoint {
 public:
  explicit MountPoint(const BaseFolder& base) : base_(base) {}
  ~MountPoint() {
    std::error_code ignored;
    std::filesystem::remove_all(shelf("first"), ignored);
    std::filesystem::remove_all(shelf("other"), ignored);
  }
  MountPoint(const MountPoint&) = delete;
  MountPoint& operator=(const MountPoint&) = delete;

  /// What is left is the folder under it.
  void unmount(const std::string& disk) const {
    std::filesystem::rename(base_.path(), shelf(disk));
    std::filesystem::create_directory(base_.path());
  }
  void mount(const std::string& disk) const {
    std::filesystem::remove_all(base_.path());
    std::filesystem::rename(shelf(disk), base_.path());
  }

 private:
  std::string shelf(const std::string& disk) const { return base_.path() + "." + disk; }
  const BaseFolder& base_;
};

}  // namespace lpp::testing
