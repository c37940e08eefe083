// SPDX-License-Identifier: Apache-2.0
#include "node/tree_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "base/unique_fd.h"

namespace lpp::node {

namespace {

constexpr std::size_t kMaxLevels = 32;
constexpr int kMaxFruitless = 5;
constexpr int kMaxChanging = 1000;

}  // namespace

Result<void> TreeRemoval::empty(int folder) {
  int fruitless = 0;
  for (int changing = 0; changing < kMaxChanging;) {
    const std::uint64_t removed_before = removed_;
    const std::uint64_t moved_before = moved_;
    left_ = false;
    complaint_ = {};
    LPP_RETURN_IF_ERROR(pass(folder), "empty");
    if (!left_) return complaint_;
    // Levels that are moved up come to an end; what somebody adds need not.
    if (moved_ == moved_before) ++changing;
    fruitless = removed_ == removed_before && moved_ == moved_before ? fruitless + 1 : 0;
    if (fruitless == kMaxFruitless) break;
  }
  if (!complaint_.ok()) return complaint_;
  return Error{ErrorCode::kUnavailable,
               "it changes while it is removed; does a process of its pod still run?"};
}

Result<void> TreeRemoval::pass(int folder) {
  std::vector<OpenFolder> levels;
  UniqueFd top(kernel_.open_beneath(folder, ".", O_RDONLY | O_DIRECTORY));
  if (!top.valid()) return system_error(errno, "open");
  levels.reserve(kMaxLevels);
  levels.emplace_back(std::move(top), "");
  while (!levels.empty()) {
    if (stop_.stop_requested()) return cancelled();
    OpenFolder& level = levels.back();
    if (const OpenFolder::Entry* const entry = level.next(kernel_); entry != nullptr) {
      remove_entry(levels, level.name_of(*entry), entry->type);
      continue;
    }
    if (errno != 0) complain(levels, ".", errno, "read");
    leave(levels);
  }
  return {};
}

void TreeRemoval::remove_entry(std::vector<OpenFolder>& levels, const char* name,
                               unsigned char type) {
  if (type != DT_DIR) {
    if (remove(levels, name, false) == 0) return count_removed();
    if (errno == ENOENT) return;
    // It was another kind of thing when its name was read, or its kind was not told.
    if (errno != EISDIR) return complain(levels, name, errno, "unlink");
  }
  enter(levels, name);
}

void TreeRemoval::enter(std::vector<OpenFolder>& levels, const char* name) {
  const int folder = levels.back().fd();
  if (levels.size() >= kMaxLevels && move_up(levels, name)) return;
  UniqueFd fd(kernel_.open_beneath(folder, name, O_RDONLY | O_DIRECTORY));
  if (fd.valid()) {
    levels.emplace_back(std::move(fd), name);
  } else if (errno == ENOTDIR || errno == ELOOP || errno == EAGAIN) {
    left_ = true;  // exchanged for something else since its name was read
  } else if (errno != ENOENT) {
    complain(levels, name, errno, errno == EXDEV ? "something is mounted there" : "open");
  }
}

/// True when it need not be entered here any more.
bool TreeRemoval::move_up(const std::vector<OpenFolder>& levels, const char* name) {
  const int folder = levels.back().fd();
  int to = deep_;
  std::size_t level = 0;
  bool tried = false;
  while (true) {
    const std::string place = "deep." + std::to_string(next_place_++);
    if (kernel_.move(folder, name, to, place.c_str()) == 0) {
      ++moved_;
      left_ = true;
      return true;
    }
    if (errno == ENOENT) return true;
    if (errno == EEXIST) continue;
    if (errno == EROFS && !tried) {
      tried = true;
      if (made_writable(levels)) continue;
    }
    // overlayfs may refuse: then descriptors are the limit. Out of a subvolume of btrfs nothing can
    // be moved: then up to where it begins.
    if (errno != EXDEV || level + 1 >= levels.size()) return false;
    to = levels[level++].fd();
  }
}

int TreeRemoval::remove(const std::vector<OpenFolder>& levels, const char* name, bool folder) {
  const int from = levels.back().fd();
  const auto once = [&] {
    return folder ? kernel_.remove_folder(from, name) : kernel_.remove_file(from, name);
  };
  const int result = once();
  return result != 0 && errno == EROFS && made_writable(levels) ? once() : result;
}

/// A snapshot may be read-only. Leaves errno as it is when none is there.
bool TreeRemoval::made_writable(const std::vector<OpenFolder>& levels) {
  const int error = errno;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (kernel_.make_writable(level->fd()) == 0) return true;
  }
  errno = error;
  return false;
}

void TreeRemoval::leave(std::vector<OpenFolder>& levels) {
  const std::string name = levels.back().name();
  levels.pop_back();
  if (levels.empty()) return;
  if (remove(levels, name.c_str(), true) == 0) return count_removed();
  if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
    left_ = true;
  } else if (errno != ENOENT) {
    complain(levels, name.c_str(), errno, "rmdir");
  }
}

void TreeRemoval::count_removed() {
  if (++removed_ % kProgressEvery == 0 && progress_) progress_(removed_);
}

void TreeRemoval::complain(const std::vector<OpenFolder>& levels, const char* name, int error,
                           const char* call) {
  if (!complaint_.ok()) return;
  complaint_ = system_error(error, std::string(call) + " " + path_of(levels) + name);
}

LowIoPriority::LowIoPriority()
    : before_(static_cast<int>(::syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0))) {
  ::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

LowIoPriority::~LowIoPriority() {
  if (before_ >= 0) ::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, before_);
}

}  // namespace lpp::node
