// SPDX-License-Identifier: Apache-2.0
#include "config/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

namespace lpp::config {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kMask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE |
                                IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/// A ConfigMap volume is swapped by renaming this symlink.
constexpr std::string_view kDataLink = "..data";

std::string folder_of(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return folder.empty() ? "." : folder.string();
}

int poll_timeout(Duration limit) {
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  return static_cast<int>(std::clamp<std::int64_t>(millis, 0, std::numeric_limits<int>::max()));
}

}  // namespace

FolderWatch::FolderWatch(std::string file)
    : file_(std::move(file)),
      leaf_(fs::path(file_).filename().string()),
      inotify_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

bool FolderWatch::refresh() {
  if (!inotify_.valid()) return false;
  std::set<std::string> wanted = {folder_of(file_)};
  std::error_code error;
  if (const fs::path target = fs::canonical(file_, error); !error) {
    wanted.insert(folder_of(target));
  }
  std::map<int, std::string> folders;
  // Nobody tells when the target of a dangling symlink appears.
  bool complete = !error || !fs::is_symlink(fs::symlink_status(file_, error));
  for (const auto& folder : wanted) {
    // Adding a folder again gives the same descriptor, or a new one if another folder has taken
    // its name since.
    const int watch = inotify_add_watch(inotify_.get(), folder.c_str(), kMask);
    if (watch < 0) {
      complete = false;
    } else {
      folders.emplace(watch, folder);
    }
  }
  for (const auto& [watch, folder] : folders_) {
    if (folders.count(watch) == 0) inotify_rm_watch(inotify_.get(), watch);
  }
  folders_ = std::move(folders);
  return complete;
}

FolderWatch::Event FolderWatch::wait(Duration limit) {
  std::array<pollfd, 2> fds{{{wake_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}}};
  const int ready = poll(fds.data(), fds.size(), poll_timeout(limit));
  if (ready > 0 && (fds[0].revents & POLLIN) != 0) return Event::kWoken;
  if (ready > 0 && (fds[1].revents & POLLIN) != 0 && drain()) return Event::kChanged;
  return Event::kNothing;
}

void FolderWatch::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, which wakes as well.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

bool FolderWatch::drain() {
  bool changed = false;
  alignas(inotify_event) std::array<char, 16384> buffer{};
  while (true) {
    const auto size = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (size <= 0) return changed;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = event.len > 0 ? buffer.data() + at + sizeof event : "";
      const bool lost = (event.mask & IN_Q_OVERFLOW) != 0;
      changed = changed || lost || concerns_us(event.wd, name);
      at += sizeof event + event.len;
    }
  }
}

bool FolderWatch::concerns_us(int watch, const char* name) const {
  const std::string_view entry = name;
  if (entry.empty()) return folders_.count(watch) > 0;  // the folder itself
  if (entry == leaf_ || entry == kDataLink) return true;
  // In the folder that a symlink leads to, the file may have another name.
  const auto it = folders_.find(watch);
  return it != folders_.end() && it->second != folder_of(file_);
}

}  // namespace lpp::config
