// SPDX-License-Identifier: Apache-2.0
#include "harness/directory_work.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <vector>

#include "base/paths.h"
#include "base/strings.h"

namespace lpp::testing {

namespace {

using operation::Directory;
using operation::Operation;

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

Error failure(const std::string& path) {
  const int number = errno;
  return Error{.code = number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInternal,
               .message = path + ": " + std::generic_category().message(number)};
}

enum class Missing { kError, kMake };

/// The folder in which the path's last name stands.
Result<Descriptor> open_parent(const std::string& root, const std::string& path, Missing missing) {
  Descriptor folder(::open(root.c_str(), kFolder));
  if (!folder.ok()) return failure(root);
  auto names = split(std::string_view(path).substr(1), '/');
  names.pop_back();
  for (const std::string_view part : names) {
    const std::string name(part);
    if (missing == Missing::kMake && ::mkdirat(folder.get(), name.c_str(), 0755) != 0 &&
        errno != EEXIST) {
      return failure(path);
    }
    Descriptor next(::openat(folder.get(), name.c_str(), kFolder));
    if (!next.ok()) return failure(path);
    folder = std::move(next);
  }
  return folder;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Result<Directory> make(const std::string& root, const Operation& operation) {
  LPP_ASSIGN_OR_RETURN(const Descriptor parent, open_parent(root, operation.path, Missing::kMake),
                       "make");
  const std::string name = last_name(operation.path);
  const bool made = ::mkdirat(parent.get(), name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return failure(operation.path);
  const Descriptor folder(::openat(parent.get(), name.c_str(), kFolder));
  if (!folder.ok()) return failure(operation.path);
  const std::string perm = operation.perm.empty() ? "0777" : operation.perm;
  if (::fchmod(folder.get(), static_cast<mode_t>(std::stoul(perm, nullptr, 8))) != 0) {
    return failure(operation.path);
  }
  return made ? Directory::kMade : Directory::kFound;
}

/// Directories of this process have no limits; one that is missing can have none either.
Result<Directory> resize(const std::string& root, const Operation& operation) {
  LPP_ASSIGN_OR_RETURN(const Descriptor parent, open_parent(root, operation.path, Missing::kError),
                       "resize");
  const Descriptor folder(::openat(parent.get(), last_name(operation.path).c_str(), kFolder));
  if (!folder.ok()) return failure(operation.path);
  return Directory::kFound;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::dup(folder)), ::closedir);
  if (entries == nullptr) return names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else has this stream
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

/// The name in the folder, with everything below it.
Result<void> remove_tree(int parent, const std::string& name) {
  if (::unlinkat(parent, name.c_str(), 0) == 0) return {};
  if (errno != EISDIR && errno != EPERM) return failure(name);
  const Descriptor folder(::openat(parent, name.c_str(), kFolder));
  if (!folder.ok()) return failure(name);
  for (const std::string& inner : names_in(folder.get())) {
    LPP_RETURN_IF_ERROR(remove_tree(folder.get(), inner), name);
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return failure(name);
  return {};
}

/// Folders of a path pattern go with the last volume in them.
void remove_empty_above(const std::string& root, const Operation& operation) {
  std::string path = operation.path.substr(0, operation.path.rfind('/'));
  while (!operation.base_path.empty() && strictly_below(path, operation.base_path)) {
    const auto parent = open_parent(root, path, Missing::kError);
    if (!parent.ok()) return;
    if (::unlinkat(parent->get(), last_name(path).c_str(), AT_REMOVEDIR) != 0) return;
    path.resize(path.rfind('/'));
  }
}

Result<Directory> remove(const std::string& root, const Operation& operation) {
  const auto parent = open_parent(root, operation.path, Missing::kError);
  if (!parent.ok() && parent.error().is(ErrorCode::kNotFound)) return Directory::kRemoved;
  if (!parent.ok()) return parent.error();
  const std::string name = last_name(operation.path);
  if (operation.only_if_empty) {
    const bool gone = ::unlinkat(parent->get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
    if (!gone && (errno == ENOTEMPTY || errno == EEXIST)) return Directory::kKept;
    if (!gone) return failure(operation.path);
  } else {
    const auto removed = remove_tree(parent->get(), name);
    if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) return removed.error();
  }
  remove_empty_above(root, operation);
  return Directory::kRemoved;
}

}  // namespace

Result<Directory> work_on_directory(const std::string& root, const Operation& operation) {
  switch (operation.kind) {
    case operation::Kind::kMake: return make(root, operation);
    case operation::Kind::kResize: return resize(root, operation);
    case operation::Kind::kTakeBack:
    case operation::Kind::kRemove: break;
  }
  return remove(root, operation);
}

}  // namespace lpp::testing
