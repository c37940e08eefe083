// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/strings.h"

/// Relations of absolute, clean paths, by whole components.
namespace lpp {

/// True when `path` lies inside `folder` and is not `folder` itself.
inline bool strictly_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.size() > 1 && path.front() == '/';
  // The slash first: of the paths that are compared most begin alike.
  return path.size() > folder.size() && path[folder.size()] == '/' && path.starts_with(folder);
}

inline bool is_at_or_below(std::string_view path, std::string_view folder) {
  return path == folder || strictly_below(path, folder);
}

/// True when both are the same path or one lies inside the other.
inline bool overlaps(std::string_view a, std::string_view b) {
  return is_at_or_below(a, b) || strictly_below(b, a);
}

/// The same path in one spelling: without empty and "." components and a slash at the end. One with
/// ".." stays as it is, for where that leads only the filesystem knows.
inline std::string tidy_path(std::string_view path) {
  std::string tidy;
  for (const std::string_view part : split(path, '/')) {
    if (part == "..") return std::string(path);
    if (part.empty() || part == ".") continue;
    if (!tidy.empty() || path.front() == '/') tidy += '/';
    tidy += part;
  }
  if (tidy.empty() && path.starts_with('/')) tidy = "/";
  return tidy;
}

}  // namespace lpp
