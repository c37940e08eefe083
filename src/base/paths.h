#pragma once

#include <string_view>

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

}  // namespace lpp
