#include "node/tree_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace lpp::node {

namespace {

constexpr std::size_t kMaxLevels = 32;
constexpr std::size_t kBatch = std::size_t{256} << 10U;  // bytes of names that are read at once
constexpr std::uint64_t kTellEvery = 4096;
constexpr int kMaxFruitless = 5;
constexpr int kMaxChanging = 1000;

struct Entry {
  std::uint64_t inode = 0;
  std::uint32_t name = 0;  // where in the batch
  unsigned char type = 0;
};

}  // namespace

/// A folder that is being emptied.
class TreeRemoval::Level {
 public:
  Level(UniqueFd fd, std::string name) : name_(std::move(name)), fd_(std::move(fd)) {}

  const std::string& name() const { return name_; }  // in the level above
  int fd() const { return fd_.get(); }
  const char* name_of(const Entry& entry) const { return batch_.get() + entry.name; }

  /// nullptr at the end; then errno says whether it is one.
  const Entry* next(Kernel& kernel) {
    while (at_ == entries_.size()) {
      if (batch_ == nullptr) batch_ = std::make_unique_for_overwrite<char[]>(kBatch);
      const ssize_t size = kernel.read_names(fd_.get(), std::span(batch_.get(), kBatch));
      if (size == 0) errno = 0;
      if (size <= 0) return nullptr;
      take(static_cast<std::size_t>(size));
    }
    return &entries_[at_++];
  }

 private:
  void take(std::size_t size) {
    entries_.clear();
    at_ = 0;
    for (std::size_t at = 0; at < size;) {
      dirent64 head{};
      std::memcpy(&head, batch_.get() + at, offsetof(dirent64, d_name));
      const std::size_t name = at + offsetof(dirent64, d_name);
      at += head.d_reclen;
      const std::string_view text(batch_.get() + name);
      if (text == "." || text == "..") continue;
      entries_.push_back({head.d_ino, static_cast<std::uint32_t>(name), head.d_type});
    }
    // In the order in which they lie on the disk: ext4 names them in that of a hash.
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.inode < b.inode; });
  }

  std::string name_;
  UniqueFd fd_;
  std::unique_ptr<char[]> batch_{};  // NOLINT: not a std::vector, which would fill it with zeros
  std::vector<Entry> entries_{};
  std::size_t at_ = 0;
};

Result<void> TreeRemoval::empty(int folder) {
  int fruitless = 0;
  for (int changing = 0; changing < kMaxChanging;) {
    const std::uint64_t removed_before = done_.removed;
    const std::uint64_t moved_before = moved_;
    left_ = false;
    complaint_ = {};
    LPP_RETURN_IF_ERROR(pass(folder), "empty");
    if (!left_) return complaint_;
    // Levels that are moved up come to an end; what somebody adds need not.
    if (moved_ == moved_before) ++changing;
    fruitless = done_.removed == removed_before && moved_ == moved_before ? fruitless + 1 : 0;
    if (fruitless == kMaxFruitless) break;
  }
  if (!complaint_.ok()) return complaint_;
  return Error{ErrorCode::kUnavailable,
               "it changes while it is removed; does a process of its pod still run?"};
}

Result<void> TreeRemoval::pass(int folder) {
  std::vector<Level> levels;
  UniqueFd top(kernel_.open_beneath(folder, ".", O_RDONLY | O_DIRECTORY));
  if (!top.valid()) return system_error(errno, "open");
  levels.reserve(kMaxLevels);
  levels.emplace_back(std::move(top), "");
  while (!levels.empty()) {
    if (stop_.stop_requested()) return cancelled();
    Level& level = levels.back();
    if (const Entry* const entry = level.next(kernel_); entry != nullptr) {
      remove_entry(levels, level.name_of(*entry), entry->type);
      continue;
    }
    if (errno != 0) complain(levels, ".", errno, "read");
    leave(levels);
  }
  return {};
}

void TreeRemoval::remove_entry(std::vector<Level>& levels, const char* name, unsigned char type) {
  if (type != DT_DIR) {
    if (kernel_.remove_file(levels.back().fd(), name) == 0) return count_removed();
    if (errno == ENOENT) return;
    // It was another kind of thing when its name was read, or its kind was not told.
    if (errno != EISDIR) return complain(levels, name, errno, "unlink");
  }
  enter(levels, name);
}

void TreeRemoval::enter(std::vector<Level>& levels, const char* name) {
  const int folder = levels.back().fd();
  if (levels.size() >= kMaxLevels && move_up(folder, name)) return;
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
bool TreeRemoval::move_up(int folder, const char* name) {
  while (true) {
    const std::string place = "deep." + std::to_string(next_place_++);
    if (kernel_.move(folder, name, deep_, place.c_str()) == 0) {
      ++moved_;
      left_ = true;
      return true;
    }
    if (errno == ENOENT) return true;
    if (errno != EEXIST) return false;  // overlayfs may refuse: then descriptors are the limit
  }
}

void TreeRemoval::leave(std::vector<Level>& levels) {
  const std::string name = levels.back().name();
  levels.pop_back();
  if (levels.empty()) return;
  if (kernel_.remove_folder(levels.back().fd(), name.c_str()) == 0) return count_removed();
  if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
    left_ = true;
  } else if (errno != ENOENT) {
    complain(levels, name.c_str(), errno, "rmdir");
  }
}

void TreeRemoval::count_removed() {
  if (++done_.removed % kTellEvery == 0 && progress_) progress_(done_);
}

void TreeRemoval::complain(const std::vector<Level>& levels, const char* name, int error,
                           const char* call) {
  if (!complaint_.ok()) return;
  std::string path;
  for (const Level& level : levels) {
    if (!level.name().empty()) path.append(level.name()).append("/");
  }
  complaint_ = system_error(error, std::string(call) + " " + path + name);
}

LowIoPriority::LowIoPriority()
    : before_(static_cast<int>(::syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0))) {
  ::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 7));
}

LowIoPriority::~LowIoPriority() {
  if (before_ >= 0) ::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, before_);
}

}  // namespace lpp::node
