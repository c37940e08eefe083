// SPDX-License-Identifier: Apache-2.0
#include "config/base_path.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/paths.h"
#include "base/strings.h"

namespace lpp::config {

namespace {

constexpr std::size_t kMaxPath = 4096 - 1;  // PATH_MAX counts the closing NUL
constexpr std::size_t kMaxName = 255;       // NAME_MAX

/// Folders in which every file belongs to the system: nothing of ours, at any depth.
constexpr std::array<std::string_view, 14> kSystemTrees = {
    "/bin",  "/boot", "/lib",     "/lib32",   "/lib64",     "/libx32",   "/proc",
    "/sbin", "/sys",  "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/sbin", "/var/lib/kubelet"};

/// Folders that are not ours themselves, while one below them can be (/dev/shm/x, /usr/local/x).
constexpr std::array<std::string_view, 3> kSystemFolders = {"/dev", "/etc", "/usr"};

/// Folders that other programs fill or empty; at any depth.
constexpr std::array<std::string_view, 7> kForeignTrees = {
    "/root",    "/run",    "/var/lib/containerd", "/var/lib/docker", "/var/lib/etcd",
    "/var/run", "/var/log"};

/// Folders that hold other things side by side.
constexpr std::array<std::string_view, 4> kCommonFolders = {"/home", "/var", "/var/lib",
                                                            "/var/lib/rancher"};

template <std::size_t N>
std::string_view tree_of(const std::array<std::string_view, N>& trees, std::string_view path) {
  const auto it = std::find_if(trees.begin(), trees.end(),
                               [&](std::string_view tree) { return is_at_or_below(path, tree); });
  return it == trees.end() ? std::string_view() : *it;
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& folders, std::string_view path) {
  return std::find(folders.begin(), folders.end(), path) != folders.end();
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

}  // namespace

std::string clean_path(std::string_view path) {
  const bool absolute = !path.empty() && path.front() == '/';
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || !absolute) {
      parts.push_back(part);
    }
  }
  std::string clean;
  for (const auto part : parts) {
    if (absolute || !clean.empty()) clean += '/';
    clean += part;
  }
  if (clean.empty()) clean = absolute ? "/" : ".";
  return clean;
}

PathCheck check_base_path(std::string_view path) {
  const auto refused = [](std::string reason) {
    return PathCheck{PathVerdict::kRefused, std::move(reason), {}};
  };
  if (path.empty()) return refused("must not be empty");
  if (path.front() != '/') return refused("must be an absolute path");
  if (has_control_character(path)) return refused("must not hold control characters");

  PathCheck result;
  result.clean = clean_path(path);
  if (result.clean == "/") return refused("must not be the root directory");
  if (result.clean.size() > kMaxPath) return refused("is too long for a path");
  for (const auto part : split(result.clean, '/')) {
    if (part.size() > kMaxName) return refused("holds a name of more than 255 bytes");
  }
  const std::string_view system = tree_of(kSystemTrees, result.clean);
  if (!system.empty() || contains(kSystemFolders, result.clean)) {
    return refused("must not be " + std::string(system.empty() || system == result.clean
                                                    ? "a directory of the system"
                                                    : "below " + std::string(system)));
  }
  if (tree_of(kSystemFolders, result.clean) != std::string_view()) {
    result.verdict = PathVerdict::kRisky;
    result.reason = "is below a directory of the system";
  } else if (tree_of(kForeignTrees, result.clean) != std::string_view()) {
    result.verdict = PathVerdict::kRisky;
    result.reason = "is in a directory that other programs use";
  } else if (contains(kCommonFolders, result.clean)) {
    result.verdict = PathVerdict::kRisky;
    result.reason = "holds other things too; a directory below it is safer";
  }
  return result;
}

}  // namespace lpp::config
