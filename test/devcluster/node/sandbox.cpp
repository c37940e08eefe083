// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/sandbox.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "base/strings.h"

namespace lpp::devcluster {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kInstall = "apt-get install bubblewrap proot busybox-static";

/// What a container runtime leaves a container that is not privileged.
constexpr std::array kDefaultCapabilities = {
    "CAP_CHOWN",   "CAP_DAC_OVERRIDE", "CAP_FSETID",           "CAP_FOWNER",     "CAP_MKNOD",
    "CAP_NET_RAW", "CAP_SETGID",       "CAP_SETUID",           "CAP_SETFCAP",    "CAP_SETPCAP",
    "CAP_KILL",    "CAP_SYS_CHROOT",   "CAP_NET_BIND_SERVICE", "CAP_AUDIT_WRITE"};

std::string find_program(const std::string& name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* path = std::getenv("PATH");
  const std::string folders =
      std::string(path == nullptr ? "" : path) + ":/usr/local/bin:/usr/bin:/bin";
  for (const std::string_view folder : split(folders, ':')) {
    if (folder.empty()) continue;
    std::string file = std::string(folder) + '/' + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

struct Finished {
  int exit_code = -1;
  std::string output;
};

/// Runs a short program to its end and returns what it printed.
Result<Finished> run_program(const std::vector<std::string>& argv) {
  std::array<int, 2> output{};
  if (pipe2(output.data(), O_CLOEXEC) != 0) return invalid("pipe: out of file descriptors");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  posix_spawn_file_actions_adddup2(&actions, output[1], 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  // posix_spawn takes char* const* and changes nothing.
  for (const std::string& a : argv) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(output[1]);
  if (error != 0) {
    close(output[0]);
    return invalid(argv[0] + ": " + std::generic_category().message(error));
  }
  Finished finished;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = read(output[0], buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    finished.output.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(output[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

std::string capability(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name.starts_with("CAP_") ? name : "CAP_" + name;
}

/// Runs the busybox in a sandbox of the kind.
Result<void> try_sandbox(const SandboxTools& tools) {
  SandboxSpec spec;
  spec.mounts = {{tools.busybox, "/busybox", true}};
  spec.argv = {"/busybox", "true"};
  const std::string folder =
      (fs::temp_directory_path() / ("lpp-sandbox-" + random_uuid())).string();
  auto finished = run_program(sandbox_command(tools, spec, -1, folder));
  std::error_code error;
  fs::remove_all(folder, error);
  if (!finished.ok()) return std::move(finished).error().wrap("sandbox");
  if (finished->exit_code == 0) return {};
  const std::string said(trim(finished->output));
  if (said.find("execvp") != std::string::npos) {
    return invalid(tools.busybox + " is not a static program (" + said +
                   "): " + std::string(kInstall));
  }
  if (tools.kind == SandboxKind::kProot) {
    return invalid("proot cannot run a program on this machine (is ptrace forbidden?): " + said);
  }
  return invalid("bubblewrap cannot make a sandbox on this machine: " + said +
                 (tools.root ? ""
                             : "; run as root, or allow user namespaces "
                               "(sysctl kernel.unprivileged_userns_clone=1)"));
}

}  // namespace

std::string SandboxTools::description() const {
  if (kind == SandboxKind::kBubblewrap) return "bubblewrap";
  return std::string("proot, without isolation") + (read_only ? "" : " and read-only mounts") +
         (why_not_bwrap.empty() ? "" : " (" + why_not_bwrap + ')');
}

Result<SandboxTools> find_sandbox_tools(SandboxKind kind, const std::string& busybox) {
  SandboxTools tools;
  tools.kind = kind;
  const bool bwrap = kind == SandboxKind::kBubblewrap;
  tools.program = find_program(bwrap ? "bwrap" : "proot");
  if (tools.program.empty()) {
    return invalid(std::string(bwrap ? "bubblewrap (bwrap)" : "proot") +
                   " is not installed: " + std::string(kInstall));
  }
  tools.busybox = busybox.empty() ? find_program("busybox") : busybox;
  if (tools.busybox.empty() || access(tools.busybox.c_str(), X_OK) != 0) {
    return invalid("no busybox found: " + std::string(kInstall));
  }
  tools.root = geteuid() == 0;
  // As lpp-container-init decides.
  tools.read_only = bwrap || syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) >= 2;
  if (auto tried = try_sandbox(tools); !tried.ok()) return std::move(tried).error();
  return tools;
}

Result<SandboxTools> find_sandbox_tools(const std::string& busybox) {
  auto bwrap = find_sandbox_tools(SandboxKind::kBubblewrap, busybox);
  if (bwrap.ok()) return bwrap;
  auto proot = find_sandbox_tools(SandboxKind::kProot, busybox);
  if (!proot.ok()) return invalid(bwrap.error().message + "; " + proot.error().message);
  proot->why_not_bwrap = bwrap.error().message;
  return proot;
}

Result<void> make_image_root(const SandboxTools& tools, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder + "/bin", error);
  if (error) return invalid("create " + folder + "/bin: " + error.message());
  fs::copy_file(tools.busybox, folder + "/bin/busybox", fs::copy_options::overwrite_existing,
                error);
  if (error) return invalid("copy " + tools.busybox + ": " + error.message());
  LPP_ASSIGN_OR_RETURN(const Finished list, run_program({tools.busybox, "--list"}), "busybox");
  for (const std::string_view name : split(list.output, '\n')) {
    if (name.empty() || name == "busybox" || name.find('/') != std::string_view::npos) continue;
    fs::create_symlink("busybox", folder + "/bin/" + std::string(name), error);
    if (error && error != std::errc::file_exists) {
      return invalid("link " + std::string(name) + ": " + error.message());
    }
  }
  return {};
}

std::optional<std::set<std::string>> kept_capabilities(const SandboxSpec& spec) {
  if (spec.privileged) return std::nullopt;
  std::set<std::string> keep;
  if (!spec.drop_all_capabilities)
    keep.insert(kDefaultCapabilities.begin(), kDefaultCapabilities.end());
  for (const std::string& name : spec.drop_capabilities) keep.erase(capability(name));
  for (const std::string& name : spec.add_capabilities) {
    if (capability(name) == "CAP_ALL") return std::nullopt;
    keep.insert(capability(name));
  }
  return keep;
}

std::vector<std::string> sandbox_command(const SandboxTools& tools, const SandboxSpec& spec,
                                         int status_fd, const std::string& folder) {
  return tools.kind == SandboxKind::kBubblewrap ? bwrap_command(tools, spec, status_fd)
                                                : proot_command(tools, spec, status_fd, folder);
}

std::vector<std::string> bwrap_command(const SandboxTools& tools, const SandboxSpec& spec,
                                       int status_fd) {
  std::vector<std::string> c{tools.program,   "--die-with-parent", "--new-session",
                             "--as-pid-1",    "--unshare-ipc",     "--unshare-pid",
                             "--unshare-net", "--unshare-uts",     "--clearenv"};
  const auto add = [&c](std::initializer_list<std::string> words) {
    c.insert(c.end(), words.begin(), words.end());
  };
  if (status_fd >= 0) add({"--json-status-fd", std::to_string(status_fd)});
  if (!spec.hostname.empty()) add({"--hostname", spec.hostname});
  const std::string uid = std::to_string(spec.uid);
  const std::string gid = std::to_string(spec.gid);
  if (!tools.root) add({"--unshare-user", "--uid", uid, "--gid", gid});
  for (const auto& [name, value] : spec.env) add({"--setenv", name, value});

  // Without a bind on "/" the root is an empty tmpfs of the container's own, so mount points can
  // be made anywhere and nothing a container writes outside its volumes stays.
  if (!spec.image_root.empty()) {
    add({"--ro-bind", spec.image_root + "/bin", "/bin", "--symlink", "bin", "/sbin", "--dir",
         "/usr", "--symlink", "../bin", "/usr/bin", "--symlink", "../bin", "/usr/sbin"});
  }
  add({"--dir", "/etc", "--dir", "/root", "--dir", "/var", "--perms", "1777", "--dir", "/tmp"});
  if (!spec.passwd_file.empty()) add({"--ro-bind", spec.passwd_file, "/etc/passwd"});
  add({"--proc", "/proc", "--dev", "/dev"});
  std::vector<SandboxMount> mounts = spec.mounts;
  std::stable_sort(mounts.begin(), mounts.end(), [](const auto& a, const auto& b) {
    return a.target < b.target;  // parents before what is mounted into them
  });
  for (const SandboxMount& m : mounts)
    add({m.read_only ? "--ro-bind" : "--bind", m.source, m.target});
  const std::string working_dir = spec.working_dir.empty() ? "/" : spec.working_dir;
  if (working_dir != "/") add({"--dir", working_dir});
  if (spec.read_only_root) add({"--remount-ro", "/"});
  add({"--chdir", working_dir});
  if (auto keep = kept_capabilities(spec); tools.root && keep.has_value()) {
    // Needed to become another user; the change itself takes all capabilities away.
    if (spec.uid != 0) keep->insert({"CAP_SETUID", "CAP_SETGID"});
    add({"--cap-drop", "ALL"});
    for (const std::string& name : *keep) add({"--cap-add", name});
  }

  add({"--"});
  if (tools.root && (spec.uid != 0 || spec.gid != 0)) {
    // Becomes the user named in the passwd file, then the program: it stays process 1.
    add({"/bin/start-stop-daemon", "-S", "-p", "/.no-pid-file", "-c", uid + ":" + gid, "-a",
         spec.argv[0], "--"});
    c.insert(c.end(), spec.argv.begin() + 1, spec.argv.end());
  } else {
    c.insert(c.end(), spec.argv.begin(), spec.argv.end());
  }
  return c;
}

}  // namespace lpp::devcluster
