// SPDX-License-Identifier: Apache-2.0
#include "node/tree_tagging.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/unique_fd.h"
#include "node/quota.h"

namespace lpp::node {

namespace {

constexpr std::size_t kMaxDepthTagged = 256;  // each has a descriptor

}  // namespace

Result<void> TreeTagging::tag(int folder) {
  std::vector<OpenFolder> levels;
  UniqueFd top(kernel_.open_beneath(folder, ".", O_RDONLY | O_DIRECTORY));
  if (!top.valid()) return system_error(errno, "open");
  LPP_RETURN_IF_ERROR(tag_one(top.get(), true), "tag");
  levels.emplace_back(std::move(top), "");
  while (!levels.empty()) {
    if (stop_.stop_requested()) return cancelled();
    OpenFolder& level = levels.back();
    if (const OpenFolder::Entry* const entry = level.next(kernel_); entry != nullptr) {
      look_at(levels, *entry);
      continue;
    }
    if (errno != 0) complain(levels, ".", system_error(errno, "read"));
    levels.pop_back();
  }
  return complaint_;
}

void TreeTagging::look_at(std::vector<OpenFolder>& levels, const OpenFolder::Entry& entry) {
  const char* const name = levels.back().name_of(entry);
  if (entry.type == DT_DIR) return enter(levels, name);
  if (entry.type != DT_REG && entry.type != DT_UNKNOWN) return;
  auto done = tag_file(levels.back().fd(), name);
  if (!done.ok()) complain(levels, name, std::move(done).error());
}

void TreeTagging::enter(std::vector<OpenFolder>& levels, const char* name) {
  if (levels.size() >= kMaxDepthTagged) {
    return complain(levels, name,
                    invalid("deeper than " + std::to_string(kMaxDepthTagged) + " directories"));
  }
  UniqueFd fd(kernel_.open_beneath(levels.back().fd(), name, O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return;  // exchanged by now
    return complain(levels, name, system_error(errno, "open"));
  }
  if (auto done = tag_one(fd.get(), true); !done.ok())
    complain(levels, name, std::move(done).error());
  levels.emplace_back(std::move(fd), name);
}

/// Looks at what it is before it is opened: to open a device does something.
Result<void> TreeTagging::tag_file(int folder, const char* name) {
  const UniqueFd there(kernel_.open_beneath(folder, name, O_PATH));
  if (!there.valid() && (errno == ENOENT || errno == ELOOP)) return {};
  if (!there.valid()) return system_error(errno, "open");
  struct statx status {};
  if (kernel_.status(there.get(), status) != 0) return system_error(errno, "statx");
  const bool folder_by_now = (status.stx_mode & S_IFMT) == S_IFDIR;
  if ((status.stx_mode & S_IFMT) != S_IFREG && !folder_by_now) return {};
  if (folder_by_now) return invalid("it became a directory meanwhile; call it again");
  const std::string same = "/proc/self/fd/" + std::to_string(there.get());
  const UniqueFd file(kernel_.open(same.c_str(), O_RDONLY | O_NONBLOCK));
  if (!file.valid()) return system_error(errno, "open");
  return tag_one(file.get(), false);
}

Result<void> TreeTagging::tag_one(int fd, bool folder) {
  LPP_ASSIGN_OR_RETURN(const auto now, ProjectQuota::membership_of(kernel_, fd), "look");
  if (now.project != project_ || (folder && !now.handed_down)) {
    const auto set = folder ? ProjectQuota::set_project(kernel_, fd, project_)
                            : ProjectQuota::set_project_of_file(kernel_, fd, project_);
    if (!set.ok()) return set.error();
  }
  if (++tagged_ % kProgressEvery == 0 && progress_) progress_(tagged_);
  return {};
}

void TreeTagging::complain(const std::vector<OpenFolder>& levels, const char* name, Error error) {
  if (complaint_.ok()) complaint_ = std::move(error).wrap(path_of(levels) + name);
}

}  // namespace lpp::node
