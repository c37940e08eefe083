// SPDX-License-Identifier: Apache-2.0
#include "node/open_folder.h"

#include <dirent.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace lpp::node {

namespace {

constexpr std::size_t kBatch = std::size_t{256} << 10U;  // bytes of names that are read at once

}  // namespace

const OpenFolder::Entry* OpenFolder::next(Kernel& kernel) {
  while (at_ == entries_.size()) {
    if (batch_ == nullptr) batch_ = std::make_unique_for_overwrite<char[]>(kBatch);
    const ssize_t size = kernel.read_names(fd_.get(), std::span(batch_.get(), kBatch));
    if (size == 0) errno = 0;
    if (size <= 0) return nullptr;
    take(static_cast<std::size_t>(size));
  }
  return &entries_[at_++];
}

void OpenFolder::take(std::size_t size) {
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

std::string path_of(const std::vector<OpenFolder>& levels) {
  std::string path;
  for (const OpenFolder& level : levels) {
    if (!level.name().empty()) path.append(level.name()).append("/");
  }
  return path;
}

}  // namespace lpp::node
