// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <vector>

#include "base/paths.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "node/kernel.h"

namespace lpp::node {

namespace {

constexpr std::size_t kMaxMountInfo = std::size_t{64} << 20U;

/// The kernel lists blanks, tabs, line breaks and backslashes as \040 and so on.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ec == std::errc()) {
      plain += static_cast<char>(value);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
Mount parse_mount(std::string_view line) {
  Mount mount;
  const auto parts = split(line, ' ');
  if (parts.size() < 5) return mount;
  std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), mount.id);
  mount.device = parts[2];
  mount.root = unescaped(parts[3]);
  mount.point = unescaped(parts[4]);
  for (std::size_t i = 5; i + 2 < parts.size(); ++i) {
    if (parts[i] != "-") continue;
    mount.type = parts[i + 1];
    mount.source = unescaped(parts[i + 2]);
    break;
  }
  return mount;
}

Result<std::vector<Mount>> mounts(Kernel& kernel) {
  const UniqueFd file(kernel.open("/proc/self/mountinfo", O_RDONLY));
  if (!file.valid()) return system_error(errno, "open /proc/self/mountinfo");
  LPP_ASSIGN_OR_RETURN(const std::string text,
                       read_file(kernel, file.get(), kMaxMountInfo, FileOf::kProc),
                       "/proc/self/mountinfo");
  std::vector<Mount> all;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) all.push_back(parse_mount(line));
  }
  return all;
}

}  // namespace

Result<Mount> mount_of(Kernel& kernel, int fd) {
  struct statx status {};
  if (kernel.status(fd, status) != 0) return system_error(errno, "statx");
  if ((status.stx_mask & STATX_MNT_ID) == 0) {
    return Error{ErrorCode::kUnfit,
                 "the kernel does not say which mount a directory is on; Linux 5.8 or newer does"};
  }
  LPP_ASSIGN_OR_RETURN(const auto all, mounts(kernel), "mounts");
  for (const Mount& mount : all) {
    if (mount.id == status.stx_mnt_id) return mount;
  }
  return Error{ErrorCode::kNotFound, "the mount is not in /proc/self/mountinfo"};
}

Result<std::string> mounted_below(Kernel& kernel, int fd) {
  std::array<char, 4096> buffer{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (size < 0) return system_error(errno, "readlink " + link);
  const std::string_view path(buffer.data(), static_cast<std::size_t>(size));
  LPP_ASSIGN_OR_RETURN(const auto all, mounts(kernel), "mounts");
  for (const Mount& mount : all) {
    if (is_at_or_below(mount.point, path)) return mount.point;
  }
  return std::string();
}

}  // namespace lpp::node
