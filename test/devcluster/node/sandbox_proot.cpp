// SPDX-License-Identifier: Apache-2.0
// The sandbox without namespaces: see lpp-container-init for what happens inside.

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "base/strings.h"
#include "devcluster/node/node_disk.h"
#include "devcluster/node/sandbox.h"
#include "places/places.h"

namespace lpp::devcluster {

namespace fs = std::filesystem;

namespace {

std::string container_init() { return lpp::testing::built("test/devcluster/lpp-container-init"); }

constexpr std::string_view kInit = "/dev/.container-init";  // in the container
constexpr std::array kDevices = {"null", "zero", "full", "random", "urandom", "tty"};

std::uint64_t capability_bits(const std::set<std::string>& names) {
  // By their numbers.
  static constexpr std::array kNames = {"CHOWN",
                                        "DAC_OVERRIDE",
                                        "DAC_READ_SEARCH",
                                        "FOWNER",
                                        "FSETID",
                                        "KILL",
                                        "SETGID",
                                        "SETUID",
                                        "SETPCAP",
                                        "LINUX_IMMUTABLE",
                                        "NET_BIND_SERVICE",
                                        "NET_BROADCAST",
                                        "NET_ADMIN",
                                        "NET_RAW",
                                        "IPC_LOCK",
                                        "IPC_OWNER",
                                        "SYS_MODULE",
                                        "SYS_RAWIO",
                                        "SYS_CHROOT",
                                        "SYS_PTRACE",
                                        "SYS_PACCT",
                                        "SYS_ADMIN",
                                        "SYS_BOOT",
                                        "SYS_NICE",
                                        "SYS_RESOURCE",
                                        "SYS_TIME",
                                        "SYS_TTY_CONFIG",
                                        "MKNOD",
                                        "LEASE",
                                        "AUDIT_WRITE",
                                        "AUDIT_CONTROL",
                                        "SETFCAP",
                                        "MAC_OVERRIDE",
                                        "MAC_ADMIN",
                                        "SYSLOG",
                                        "WAKE_ALARM",
                                        "BLOCK_SUSPEND",
                                        "AUDIT_READ",
                                        "PERFMON",
                                        "BPF",
                                        "CHECKPOINT_RESTORE"};
  static_assert(kNames.size() == CAP_LAST_CAP + 1);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (names.contains(std::string("CAP_") + kNames.at(i))) bits |= std::uint64_t{1} << i;
  }
  return bits;
}

void touch(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd >= 0) close(fd);
}

Result<void> make_root(const std::string& root, const SandboxSpec& spec) {
  std::error_code error;
  for (const char* folder : {"bin", "usr", "etc", "root", "var", "tmp", "dev/shm", "proc"}) {
    fs::create_directories(root + '/' + folder, error);
    if (error) return invalid("create " + root + '/' + folder + ": " + error.message());
  }
  const std::map<std::string, std::string> links = {{"sbin", "bin"},
                                                    {"usr/bin", "../bin"},
                                                    {"usr/sbin", "../bin"},
                                                    {"dev/fd", "/proc/self/fd"},
                                                    {"dev/stdin", "/proc/self/fd/0"},
                                                    {"dev/stdout", "/proc/self/fd/1"},
                                                    {"dev/stderr", "/proc/self/fd/2"}};
  for (const auto& [name, target] : links) {
    const std::string place = fmt::format("{}/{}", root, name);
    fs::create_symlink(target, place, error);
    if (error) return invalid(fmt::format("link {}: {}", place, error.message()));
  }
  for (const char* folder : {"tmp", "dev/shm"}) {
    fs::permissions(root + '/' + folder, fs::perms::all | fs::perms::sticky_bit, error);
  }
  for (const char* device : kDevices) touch(root + "/dev/" + device);
  touch(root + std::string(kInit));
  if (!spec.passwd_file.empty()) fs::copy_file(spec.passwd_file, root + "/etc/passwd", error);
  return {};
}

/// The mount whose source holds this one's, if it can be a link there. proot knows a folder by one
/// name: with both bound, a shell that walks through the outer one would find itself in the inner.
const SandboxMount* holder_of(const std::vector<SandboxMount>& mounts, const SandboxMount& inner) {
  for (const SandboxMount& other : mounts) {
    if (inner.target.starts_with(other.target + '/')) return nullptr;
    if (other.target.starts_with(inner.target + '/')) return nullptr;
  }
  for (const SandboxMount& other : mounts) {
    if (inner.source.starts_with(other.source + '/')) return &other;
  }
  return nullptr;
}

/// Makes the place that the mount covers, in the container's root or in a mount before it.
Result<void> make_mount_point(const std::string& root, const std::vector<SandboxMount>& before,
                              const SandboxMount& mount) {
  std::string folder = root;
  std::string rest = mount.target;
  bool read_only = false;
  for (const SandboxMount& other : before) {  // the last one is the innermost
    if (mount.target == other.target) return {};
    if (!mount.target.starts_with(other.target + '/')) continue;
    folder = other.source;
    rest = mount.target.substr(other.target.size());
    read_only = other.read_only;
  }
  const NodeDisk inside(folder);
  if (inside.resolve(rest).ok()) return {};
  if (read_only) return invalid("mount point " + mount.target + ": read-only file system");
  if (fs::is_directory(mount.source)) {
    if (auto made = inside.make_folders(rest); !made.ok()) return std::move(made).error();
    return {};
  }
  const auto slash = rest.rfind('/');
  LPP_ASSIGN_OR_RETURN(const std::string parent, inside.make_folders(rest.substr(0, slash)),
                       "mount point");
  touch(parent + rest.substr(slash));
  return {};
}

Result<std::vector<std::string>> make_command(const SandboxTools& tools, const SandboxSpec& spec,
                                              int status_fd, const std::string& folder) {
  const std::string root = folder + "/root";
  LPP_RETURN_IF_ERROR(make_root(root, spec), "container root");
  std::vector<std::string> c;
  const auto add = [&c](std::initializer_list<std::string> words) {
    c.insert(c.end(), words.begin(), words.end());
  };
  const auto keep = kept_capabilities(spec);
  if (tools.root && (keep.has_value() || spec.uid != 0 || spec.gid != 0)) {
    const auto bits = keep.has_value() ? capability_bits(*keep) : ~std::uint64_t{0};
    add({container_init(), "--become", fmt::format("{}:{}:{:x}", spec.uid, spec.gid, bits), "--"});
  }
  add({tools.program, "-v", "-1", "-r", root, "-w", "/"});
  if (!tools.root) add({"-i", fmt::format("{}:{}", spec.uid, spec.gid)});
  add({"-b", "/proc", "-b", container_init() + ':' + std::string(kInit)});
  if (!spec.image_root.empty()) add({"-b", spec.image_root + "/bin:/bin"});
  std::vector<std::string> writable;
  if (!spec.read_only_root) writable.emplace_back("/");
  for (const char* device : kDevices) {
    const std::string path = std::string("/dev/") + device;
    if (access(path.c_str(), F_OK) != 0) continue;
    add({"-b", path});
    writable.push_back(path);
  }
  std::vector<SandboxMount> mounts = spec.mounts;
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const auto& a, const auto& b) { return a.target < b.target; });
  std::vector<SandboxMount> done;
  std::error_code error;
  fs::create_directories(folder + "/sources", error);
  for (const SandboxMount& mount : mounts) {
    if (!fs::exists(mount.source, error)) {
      return invalid("mount " + mount.source + ": no such file or directory");
    }
    if (!mount.read_only) writable.push_back(mount.target);
    if (const SandboxMount* holder = holder_of(mounts, mount); holder != nullptr) {
      const fs::path target = fs::path(root + mount.target).lexically_normal();
      const std::string place = target.has_filename() ? target : target.parent_path();
      fs::create_directories(fs::path(place).parent_path(), error);
      fs::remove(place, error);  // /tmp and its like
      fs::create_symlink(holder->target + mount.source.substr(holder->source.size()), place, error);
      if (error) return invalid("link " + place + ": " + error.message());
      continue;
    }
    LPP_RETURN_IF_ERROR(make_mount_point(root, done, mount), "container root");
    // By a link, as a source with a colon would end there.
    const std::string link = fmt::format("{}/sources/{}", folder, done.size());
    fs::create_symlink(mount.source, link, error);
    if (error) return invalid("link " + link + ": " + error.message());
    add({"-b", link + ':' + mount.target});
    done.push_back(mount);
  }

  add({std::string(kInit)});
  if (status_fd >= 0) add({"--status-fd", std::to_string(status_fd)});
  for (const auto& [name, value] : spec.env) add({"--env", fmt::format("{}={}", name, value)});
  for (const std::string& path : writable) add({"--writable", path});
  if (!spec.working_dir.empty()) add({"--chdir", spec.working_dir});
  add({"--"});
  c.insert(c.end(), spec.argv.begin(), spec.argv.end());
  return c;
}

}  // namespace

std::vector<std::string> proot_command(const SandboxTools& tools, const SandboxSpec& spec,
                                       int status_fd, const std::string& folder) {
  auto command = make_command(tools, spec, status_fd, folder);
  if (command.ok()) return *std::move(command);
  return {container_init(), "--fail", command.error().message};
}

}  // namespace lpp::devcluster
