// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lpp {

/// Things that have a `path`, found by where it lies: those in the way of a path without a look at
/// the rest. Shares its items; their paths are as for paths.h, and one without a path is in
/// nobody's way. Not thread-safe.
template <typename T>
class PathIndex {
 public:
  using Item = std::shared_ptr<const T>;

  void add(Item item) {
    if (!item->path.empty()) items_.insert(std::move(item));
  }
  /// This very item; others of the same path stay.
  void remove(const Item& item) { items_.erase(item); }

  /// Any item whose path overlaps() the absolute `path` and for which `matches(const T&)` holds, or
  /// nullptr.
  template <typename Matches>
  Item find_overlapping(std::string_view path, const Matches& matches) const {
    return find(path, [&](const Item& item) { return matches(*item); });
  }

  /// All items whose path overlaps() the absolute `path`.
  std::vector<Item> all_overlapping(std::string_view path) const {
    std::vector<Item> all;
    find(path, [&](const Item& item) {
      all.push_back(item);
      return false;
    });
    return all;
  }

 private:
  template <typename IsMatch>
  Item find(std::string_view path, const IsMatch& is_match) const {
    // The path itself and the folders around it.
    for (std::string_view folder = path; !folder.empty(); folder = parent(folder)) {
      const auto [begin, end] = items_.equal_range(folder);
      if (const auto it = std::find_if(begin, end, is_match); it != end) return *it;
    }
    // What lies inside begins alike, so it stands together.
    const std::string inside = path == "/" ? "/" : std::string(path) + '/';
    for (auto it = items_.lower_bound(inside);
         it != items_.end() && (*it)->path.starts_with(inside); ++it) {
      if ((*it)->path != path && is_match(*it)) return *it;  // the root's has been asked about
    }
    return nullptr;
  }

  struct ByPath {
    using is_transparent = void;
    bool operator()(const Item& a, const Item& b) const {
      const int order = a->path.compare(b->path);
      return order == 0 ? std::less<>()(a.get(), b.get()) : order < 0;
    }
    bool operator()(const Item& item, std::string_view path) const { return item->path < path; }
    bool operator()(std::string_view path, const Item& item) const { return path < item->path; }
  };

  /// "" above the root.
  static std::string_view parent(std::string_view path) {
    const auto slash = path.rfind('/');
    if (path == "/" || slash == std::string_view::npos) return {};
    return path.substr(0, std::max<std::size_t>(slash, 1));
  }

  std::set<Item, ByPath> items_;
};

}  // namespace lpp
