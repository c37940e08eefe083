// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace lpp::config {

/// Tells when something may have changed about one file, through inotify on the folder it is in
/// and, if it is a symlink, on the folder it leads to. Used by one thread; wake() by any.
class FolderWatch {
 public:
  explicit FolderWatch(std::string file);

  /// (Re)establishes the watches for where the file is now. False when a change of the file might
  /// go unseen: no inotify, or no such folder yet. Call it before the file is read.
  bool refresh();

  enum class Event { kChanged, kNothing, kWoken };
  /// Waits for a change in the folders, the time limit, or wake(). Woken stays woken.
  Event wait(Duration limit);

  void wake();

 private:
  /// Reads all pending events; true if one of them is of interest.
  bool drain();
  bool concerns_us(int watch, const char* name) const;

  const std::string file_;
  const std::string leaf_;
  UniqueFd inotify_;
  UniqueFd wake_;
  std::map<int, std::string> folders_;  // by watch descriptor
};

}  // namespace lpp::config
