// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/node_disk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/paths.h"
#include "base/strings.h"

namespace lpp::devcluster {

namespace {

/// An open descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error errno_error(std::string_view path) {
  const int code = errno;
  return {.code = code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalid,
          .message = std::string(path) + ": " + std::generic_category().message(code)};
}

/// Opens `path` below `root` as if root were "/", without needing any right on the object.
Result<Fd> open_inside(const std::string& root, const std::string& path) {
  Fd folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return errno_error(root);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Fd found(static_cast<int>(syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  if (found.get() < 0) return errno_error(path);
  return found;
}

Result<std::string> name_of(const Fd& fd) {
  std::array<char, PATH_MAX> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  const ssize_t n = readlink(link.c_str(), name.data(), name.size());
  if (n < 0) return errno_error(link);
  return std::string(name.data(), static_cast<std::size_t>(n));
}

bool type_matches(std::string_view type, mode_t mode) {
  if (type == "Directory" || type == "DirectoryOrCreate") return S_ISDIR(mode);
  if (type == "File" || type == "FileOrCreate") return S_ISREG(mode);
  if (type == "Socket") return S_ISSOCK(mode);
  if (type == "CharDevice") return S_ISCHR(mode);
  if (type == "BlockDevice") return S_ISBLK(mode);
  return true;
}

std::string type_error(std::string_view path, std::string_view type) {
  std::string what = "a " + to_lower(type);
  if (type == "Directory" || type == "DirectoryOrCreate") what = "a directory";
  if (type == "File" || type == "FileOrCreate") what = "a file";
  if (type == "Socket") what = "a socket file";
  if (type == "CharDevice") what = "a character device";
  if (type == "BlockDevice") what = "a block device";
  return "hostPath type check failed: " + std::string(path) + " is not " + what;
}

}  // namespace

NodeDisk::NodeDisk(std::string root, Shared shared)
    : root_(std::filesystem::weakly_canonical(std::move(root)).string()),
      shared_(std::move(shared)) {}

std::optional<std::string> NodeDisk::on_shared(std::string_view path) const {
  if (shared_.path.empty() || !is_at_or_below(path, shared_.path)) return std::nullopt;
  return "/" + std::string(path.substr(shared_.path.size()));
}

Result<std::string> NodeDisk::resolve(std::string_view path) const {
  if (const auto way = on_shared(path)) return NodeDisk(shared_.folder).resolve(*way);
  LPP_ASSIGN_OR_RETURN(const Fd fd, open_inside(root_, std::string(path)), "node disk");
  return name_of(fd);
}

Result<std::string> NodeDisk::make_folders(std::string_view path) const {
  if (const auto way = on_shared(path)) return NodeDisk(shared_.folder).make_folders(*way);
  std::string reached = "/";
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    const std::string next = reached + std::string(part);
    if (auto there = open_inside(root_, next); !there.ok()) {
      if (!there.error().is(ErrorCode::kNotFound)) return std::move(there).error();
      LPP_ASSIGN_OR_RETURN(const Fd parent, open_inside(root_, reached), "parent folder");
      LPP_ASSIGN_OR_RETURN(const std::string folder, name_of(parent), "parent folder");
      const std::string made = folder + '/' + std::string(part);
      if (mkdir(made.c_str(), 0755) != 0) {
        if (errno != EEXIST) return errno_error(next);
      } else {
        chmod(made.c_str(), 0755);  // whatever our umask is
      }
    }
    reached = next + '/';
  }
  LPP_ASSIGN_OR_RETURN(std::string resolved, resolve(reached), "node disk");
  return resolved;
}

Result<std::string> NodeDisk::host_path(std::string_view path, std::string_view type) const {
  // The container runtime makes a missing folder when no type asks for a check.
  if (type.empty() || type == "DirectoryOrCreate") {
    if (auto there = resolve(path); !there.ok() && there.error().is(ErrorCode::kNotFound)) {
      return make_folders(path);
    }
  }
  if (type == "FileOrCreate" && !resolve(path).ok()) {
    const auto slash = path.rfind('/');
    const std::string parent(path.substr(0, slash == std::string_view::npos ? 0 : slash));
    LPP_ASSIGN_OR_RETURN(const std::string folder, resolve(parent + '/'), "hostPath");
    const std::string file = folder + '/' + std::string(path.substr(slash + 1));
    const Fd made(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (made.get() < 0) return errno_error(path);
  }
  auto found = resolve(path);
  struct stat info {};
  if (!found.ok() || stat(found->c_str(), &info) != 0 || !type_matches(type, info.st_mode)) {
    return invalid(type_error(path, type));
  }
  return found;
}

}  // namespace lpp::devcluster
