// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>

namespace lpp::testing {

/// Everything below a folder in which others are at work; what goes meanwhile may be left out. The
/// standard library's walk ends with an exception, or early, at the first folder that has gone.
inline std::set<std::filesystem::path> paths_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::set<fs::path> paths;
  std::error_code gone;
  for (fs::directory_iterator it(folder, gone), end; it != end; it.increment(gone)) {
    paths.insert(it->path());
    if (it->symlink_status(gone).type() == fs::file_type::directory) {
      paths.merge(paths_below(it->path()));
    }
  }
  return paths;
}

}  // namespace lpp::testing
