// SPDX-License-Identifier: Apache-2.0
#include "disk.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

namespace lpp::testing {

namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return std::generic_category().message(errno);
  }
  std::string what = "other";
  if (S_ISDIR(status.st_mode)) what = "folder";
  if (S_ISREG(status.st_mode)) what = "file \"" + text_of(path) + "\"";
  if (S_ISLNK(status.st_mode)) what = "link to " + fs::read_symlink(path).string();
  return fmt::format("{:o} {}:{} changed {}.{:09} {}", status.st_mode & 07777U, status.st_uid,
                     status.st_gid, status.st_ctim.tv_sec, status.st_ctim.tv_nsec, what);
}

}  // namespace

void write_text(const std::string& file, const std::string& text) {
  fs::create_directories(fs::path(file).parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

std::string mode_and_owner(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return path + ": " + std::generic_category().message(errno);
  }
  return fmt::format("{:04o} {}:{}", status.st_mode & 07777U, status.st_uid, status.st_gid);
}

std::string tree_of(const std::string& root) {
  std::set<fs::path> paths{root};
  for (const auto& entry : fs::recursive_directory_iterator(root)) paths.insert(entry.path());
  std::string text;
  for (const auto& path : paths) text += path.string() + " " + line_of(path) + "\n";
  return text;
}

}  // namespace lpp::testing
