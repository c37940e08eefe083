// SPDX-License-Identifier: Apache-2.0
// lpp-container-init: the first process of a container where there is no PID namespace.
//
//   lpp-container-init [OPTION VALUE]... -- PROGRAM [ARGUMENT]...
//
// It runs inside proot and does what a namespace would: it gives the program its writable folders,
// tells about it on the status descriptor in bubblewrap's words, keeps signals from it that it does
// not handle, and ends when the program or the reader of the status ends, with all processes that
// the program has left. Linked statically: containers have no libraries.
//
//   lpp-container-init --become UID:GID:CAPABILITIES -- PROOT [ARGUMENT]...
//
// comes before proot: it takes the user and keeps no more than the capabilities (hexadecimal).

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kNotStarted = 127;

struct Options {
  int status_fd = -1;
  std::string become;
  std::string working_dir = "/";
  std::vector<std::string> writable;  // nothing else is, where the kernel has Landlock
  std::vector<char*> env;
  char** command = nullptr;
};

int failed_fd = -1;  // in the child: a byte there says that the program was not started

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  if (failed_fd >= 0) [[maybe_unused]]
    const ssize_t n = write(failed_fd, "x", 1);
  _exit(kNotStarted);
}

[[noreturn]] void fail_errno(const std::string& what) {
  fail(what + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc) fail("lpp-container-init: " + name + " without a value");
    char* value = argv[i + 1];
    if (name == "--") {
      options.command = argv + i + 1;
      break;
    }
    if (name == "--fail") fail(value);
    if (name == "--status-fd") options.status_fd = std::stoi(value);
    if (name == "--become") options.become = value;
    if (name == "--chdir") options.working_dir = value;
    if (name == "--writable") options.writable.emplace_back(value);
    if (name == "--env") options.env.push_back(value);
  }
  options.env.push_back(nullptr);
  if (options.command == nullptr) fail("lpp-container-init: no program");
  return options;
}

/// Makes everything read-only but the given places. It holds by what a file is and not by what it
/// is called, so it also holds for processes that have lost their proot and see the machine's
/// names. Without Landlock 2 (Linux 5.19), which knows renames, nothing happens.
void confine(const std::vector<std::string>& writable) {
  const auto version = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* asks for it */);
  if (version < 2) return;
  constexpr std::uint64_t kFiles = LANDLOCK_ACCESS_FS_WRITE_FILE;
  constexpr std::uint64_t kFolders =
      LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
      LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
      LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
      LANDLOCK_ACCESS_FS_MAKE_SYM | (1ULL << 13) /* between folders, 2 */;
  const std::uint64_t truncate = version >= 3 ? 1ULL << 14 : 0;
  // The kernel takes a longer structure than it knows if the rest is 0.
  struct {
    std::uint64_t files = 0;
    std::uint64_t network = 0;
    std::uint64_t scoped = 0;
  } rules{};
  rules.files = kFiles | kFolders | truncate;
  // Since 6: signals stay inside. `kill -1` would reach all that this user runs.
  if (version >= 6) rules.scoped = 2;
  const auto ruleset =
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
  if (ruleset < 0) fail_errno("landlock_create_ruleset");
  for (const std::string& path : writable) {
    landlock_path_beneath_attr rule{};
    rule.parent_fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    struct stat about {};
    if (rule.parent_fd < 0 || fstat(rule.parent_fd, &about) != 0) fail_errno(path);
    rule.allowed_access = S_ISDIR(about.st_mode) ? rules.files : kFiles | truncate;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      fail_errno("landlock_add_rule " + path);
    }
    close(rule.parent_fd);
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
    fail_errno("landlock_restrict_self");
  }
  close(ruleset);
}

void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0755);  // what cannot be made fails at chdir
    if (end == std::string::npos) return;
  }
}

void take_identity(const std::string& wanted) {
  std::size_t at = 0;
  const auto uid = static_cast<uid_t>(std::stoul(wanted, &at));
  std::string rest = wanted.substr(at + 1);
  const auto gid = static_cast<gid_t>(std::stoul(rest, &at));
  const std::uint64_t keep = std::stoull(rest.substr(at + 1), nullptr, 16);
  for (unsigned long i = 0; i < 64; ++i) {  // those that the kernel does not know fail
    if ((keep >> i & 1) == 0) prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
  }
  const bool other = uid != 0 || gid != 0;
  if (other && (setgroups(0, nullptr) != 0 || setgid(gid) != 0 || setuid(uid) != 0)) {
    fail_errno("become user " + wanted);
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) fail_errno("capget");
  for (std::size_t half = 0; half < sets.size(); ++half) {
    sets.at(half).permitted &= static_cast<std::uint32_t>(keep >> (32 * half));
    sets.at(half).effective &= sets.at(half).permitted;
    sets.at(half).inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets.data()) != 0) fail_errno("capset");
}

/// In the child. What goes wrong is on the standard error.
[[noreturn]] void run_program(const Options& options) {
  confine(options.writable);
  make_folders(options.working_dir);
  if (chdir(options.working_dir.c_str()) != 0) fail_errno("chdir " + options.working_dir);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  environ = const_cast<char**>(options.env.data());
  execvp(options.command[0], options.command);
  fail_errno(std::string("execvp ") + options.command[0]);
}

void say(int fd, const std::string& line) {
  if (fd >= 0) [[maybe_unused]]
    const ssize_t n = write(fd, line.data(), line.size());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool handles(pid_t process, int signal_number) {
  const std::string status = read_file("/proc/" + std::to_string(process) + "/status");
  const auto caught = status.find("\nSigCgt:");
  if (caught == std::string::npos) return true;
  const auto mask = std::strtoull(status.c_str() + caught + 8, nullptr, 16);
  return (mask >> (signal_number - 1) & 1) != 0;
}

/// Kills what the program has left: all of it are children of this process, or will be when their
/// parents have gone. The program itself is not waited for, so that its number stays taken.
void kill_the_rest(pid_t program) {
  const std::string self = std::to_string(getpid());
  const std::string file = "/proc/" + self + "/task/" + self + "/children";
  for (bool again = true; again;) {
    again = false;
    std::istringstream children(read_file(file));
    for (pid_t child = 0; children >> child;) {
      if (child == program) continue;
      kill(child, SIGKILL);
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
      }
      again = true;
    }
  }
}

/// Waits for the end of the program; its exit code as a shell has it.
int supervise(pid_t program, int signals, int status_fd) {
  std::array<pollfd, 2> wanted{pollfd{signals, POLLIN, 0}, pollfd{status_fd, 0, 0}};
  for (;;) {
    poll(wanted.data(), wanted.size(), -1);
    if (wanted[1].revents != 0) {  // nobody reads it any more
      wanted[1].fd = -1;
      kill(program, SIGKILL);
    }
    signalfd_siginfo signal{};
    if ((wanted[0].revents & POLLIN) == 0 ||
        read(signals, &signal, sizeof signal) != static_cast<ssize_t>(sizeof signal)) {
      continue;
    }
    const auto number = static_cast<int>(signal.ssi_signo);
    if (number != SIGCHLD) {
      if (handles(program, number)) kill(program, number);  // process 1 has no default actions
      continue;
    }
    for (;;) {
      siginfo_t child{};
      if (waitid(P_PID, static_cast<id_t>(program), &child, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          child.si_pid == program) {
        kill_the_rest(program);
        return child.si_code == CLD_EXITED ? child.si_status : 128 + child.si_status;
      }
      // Orphans. One of them at a time, so that it is never the program.
      if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 || child.si_pid == 0) break;
      if (child.si_pid != program) waitpid(child.si_pid, nullptr, 0);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!options.become.empty()) {
    take_identity(options.become);
    execvp(options.command[0], options.command);
    fail_errno(std::string("execvp ") + options.command[0]);
  }
  sigset_t handled;
  sigfillset(&handled);
  pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC);
  if (options.status_fd >= 0) fcntl(options.status_fd, F_SETFD, FD_CLOEXEC);
  std::array<int, 2> failed{};
  if (signals < 0 || pipe2(failed.data(), O_CLOEXEC) != 0) fail_errno("lpp-container-init");
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const pid_t program = fork();
  if (program < 0) fail_errno("fork");
  if (program == 0) {
    failed_fd = failed[1];
    run_program(options);
  }
  say(options.status_fd, "{\"child-pid\": " + std::to_string(program) +
                             ", \"init-pid\": " + std::to_string(getpid()) + "}\n");
  close(failed[1]);
  char byte = 0;
  const bool started = read(failed[0], &byte, 1) == 0;
  const int code = supervise(program, signals, options.status_fd);
  if (started) say(options.status_fd, "{\"exit-code\": " + std::to_string(code) + "}\n");
  return code;
}
