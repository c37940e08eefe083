// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/kernel.h"
#include "node/open_folder.h"

namespace lpp::node {

/// Empties folders, whatever a tenant does in them meanwhile: follows no symbolic link, goes
/// through no mount, and reaches everything by a descriptor of the folder it is in. Needs memory
/// and descriptors for 32 levels, whatever the number of files and the depth: what lies deeper is
/// first moved up into the folder `deep`, of the same file system, and removed from there. Removes
/// subvolumes of btrfs with what is in them, read-only ones too. One thread only.
class TreeRemoval {
 public:
  /// All must outlive it.
  TreeRemoval(Kernel& kernel, int deep, const ProgressSink& progress, std::stop_token stop)
      : kernel_(kernel), deep_(deep), progress_(progress), stop_(std::move(stop)) {}

  /// Again after a crash it goes on where it was. Goes on after something that cannot be removed
  /// and then names the first such (kForbidden, kInvalid for a mount). kUnavailable: it changes
  /// while it is removed. kCancelled: the rest is for the next time.
  Result<void> empty(int folder);

 private:
  Result<void> pass(int folder);
  void remove_entry(std::vector<OpenFolder>& levels, const char* name, unsigned char type);
  void enter(std::vector<OpenFolder>& levels, const char* name);
  bool move_up(const std::vector<OpenFolder>& levels, const char* name);
  int remove(const std::vector<OpenFolder>& levels, const char* name, bool folder);
  bool made_writable(const std::vector<OpenFolder>& levels);
  void leave(std::vector<OpenFolder>& levels);
  void count_removed();
  void complain(const std::vector<OpenFolder>& levels, const char* name, int error,
                const char* call);

  Kernel& kernel_;
  const int deep_;
  const ProgressSink& progress_;
  const std::stop_token stop_;
  std::uint64_t removed_ = 0;  // files and folders
  std::uint64_t moved_ = 0;    // up into deep_
  std::uint64_t next_place_ = 0;
  bool left_ = false;         // this pass met what another pass has to look at
  Result<void> complaint_{};  // the first, of this pass
};

/// The I/O of this thread goes behind that of others, for as long as it lives.
class LowIoPriority {
 public:
  LowIoPriority();
  ~LowIoPriority();
  LowIoPriority(const LowIoPriority&) = delete;
  LowIoPriority& operator=(const LowIoPriority&) = delete;

 private:
  int before_;
};

}  // namespace lpp::node
