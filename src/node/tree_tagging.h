// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/kernel.h"
#include "node/open_folder.h"

namespace lpp::node {

/// Gives a directory and all it holds to a project, while it is in use: folders before what is in
/// them, so that what is made meanwhile belongs to it already. Follows no symbolic link, goes
/// through no mount, and opens nothing but folders and regular files: symbolic links, sockets,
/// pipes and devices hold next to nothing and stay as they are. Memory does not grow with the
/// number of files. One thread only.
class TreeTagging {
 public:
  /// All must outlive it.
  TreeTagging(Kernel& kernel, std::uint32_t project, const ProgressSink& progress,
              std::stop_token stop)
      : kernel_(kernel), project_(project), progress_(progress), stop_(std::move(stop)) {}

  /// Again after a crash it does what is left. Goes on after something that cannot be tagged and
  /// then names the first such. kInvalid: it is deeper than 256 folders. kCancelled.
  Result<void> tag(int folder);

  /// Files and folders that belong to the project now.
  std::uint64_t tagged() const { return tagged_; }

 private:
  void look_at(std::vector<OpenFolder>& levels, const OpenFolder::Entry& entry);
  void enter(std::vector<OpenFolder>& levels, const char* name);
  Result<void> tag_file(int folder, const char* name);
  Result<void> tag_one(int fd, bool folder);
  void complain(const std::vector<OpenFolder>& levels, const char* name, Error error);

  Kernel& kernel_;
  const std::uint32_t project_;
  const ProgressSink& progress_;
  const std::stop_token stop_;
  std::uint64_t tagged_ = 0;
  Result<void> complaint_{};  // the first
};

}  // namespace lpp::node
