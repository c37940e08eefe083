// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/process_host.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "devcluster/json_names.h"

namespace lpp::devcluster {

namespace {

/// Which descriptor of which child is ready; token 0 is the wake-up.
enum Source : std::uint64_t { kExit = 1, kOutput = 2, kStatus = 3 };
constexpr std::uint64_t kSourceBits = 2;
std::uint64_t token_of(ProcessHost::Id id, Source source) { return id << kSourceBits | source; }

constexpr int kStatusFd = 3;  // in the child

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) {
    return invalid("pipe: " + std::generic_category().message(errno));
  }
  fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return Pipe{fds[0], fds[1]};
}

Result<pid_t> spawn(const std::vector<std::string>& command, int output, int status) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  posix_spawn_file_actions_adddup2(&actions, status, kStatusFd);
  // A server socket kept open by a container would keep its client waiting.
  posix_spawn_file_actions_addclosefrom_np(&actions, kStatusFd + 1);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  // Its own session: Ctrl-C at a terminal is for us to handle.
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  // posix_spawn takes char* const* and leaves the texts alone.
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  std::array<char*, 1> environment{nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command[0].c_str(), &actions, &attributes, arguments.data(),
                                environment.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return invalid(command[0] + ": " + std::generic_category().message(error));
  return pid;
}

}  // namespace

struct ProcessHost::Child {
  Child(Id child_id, const std::string& log_path) : id(child_id), log(log_path) {}

  const Id id;
  BoundedLog log;
  std::string folder;  // what the sandbox needs on the disk, if anything
  pid_t sandbox = 0;   // bwrap or proot
  int pidfd = -1;
  int output = -1;
  int status = -1;
  std::string status_text;
  std::string last_output;       // enough to explain a failed start
  pid_t container = 0;           // the container's first process, once known
  pid_t forwarder = 0;           // takes its signals but SIGKILL, if there is one
  int pending_signal = 0;        // asked for before that
  bool killed = false;           // SIGKILL was sent
  std::optional<int> exit_code;  // set only if the program was really executed

  ~Child() {
    close_fd(pidfd);
    close_fd(output);
    close_fd(status);
  }

  void read_output() {
    constexpr std::size_t kExplain = 1024;
    std::array<char, 65536> buffer;
    for (;;) {
      const ssize_t n = read(output, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) close_fd(output);
      if (n <= 0) return;
      const std::string_view text(buffer.data(), static_cast<std::size_t>(n));
      log.append(text);
      last_output.append(text.substr(text.size() > kExplain ? text.size() - kExplain : 0));
      if (last_output.size() > kExplain) last_output.erase(0, last_output.size() - kExplain);
    }
  }

  /// One JSON document per line: {"child-pid": n, ...} and {"exit-code": n}, of bubblewrap or our
  /// own container init, which also takes signals: {"child-pid": n, "init-pid": n}.
  void read_status() {
    std::array<char, 1024> buffer{};
    for (;;) {
      const ssize_t n = read(status, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) close_fd(status);
      if (n <= 0) break;
      status_text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    for (auto end = status_text.find('\n'); end != std::string::npos;
         end = status_text.find('\n')) {
      const auto said = nlohmann::json::parse(status_text.substr(0, end), nullptr, false);
      status_text.erase(0, end + 1);
      if (const auto pid = number_at(said, {"child-pid"}, 0); pid != 0) {
        container = static_cast<pid_t>(pid);
        forwarder = static_cast<pid_t>(number_at(said, {"init-pid"}, 0));
      }
      if (const auto* code = find_at(said, {"exit-code"}); code != nullptr) {
        exit_code = static_cast<int>(number_at(said, {"exit-code"}, 0));
      }
    }
  }
};

Result<std::unique_ptr<ProcessHost>> ProcessHost::create(SandboxTools tools, ExitHandler on_exit) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
  if (epoll < 0 || wake < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) != 0) {
    return invalid("epoll: " + std::generic_category().message(errno));
  }
  return std::unique_ptr<ProcessHost>(
      new ProcessHost(std::move(tools), std::move(on_exit), epoll, wake));
}

ProcessHost::ProcessHost(SandboxTools tools, ExitHandler on_exit, int epoll, int wake)
    : tools_(std::move(tools)), on_exit_(std::move(on_exit)), epoll_(epoll), wake_(wake) {
  thread_ = std::jthread([this] { run(); });
}

ProcessHost::~ProcessHost() {
  stop();
  close(epoll_);
  close(wake_);
}

Result<ProcessHost::Id> ProcessHost::start(const SandboxSpec& spec, const std::string& log_path,
                                           const std::function<void(Id)>& registered) {
  LPP_ASSIGN_OR_RETURN(Pipe output, make_pipe(), "output");
  auto status = make_pipe();
  if (!status.ok()) {
    close(output.read_end);
    close(output.write_end);
    return std::move(status).error();
  }
  Id id = 0;
  bool stopping = false;
  {
    MutexLock lock(mutex_);
    id = next_id_++;
    stopping = stopping_;
    if (!stopping) ++starting_;  // stop() waits for us from here on
  }
  if (stopping) {
    for (const Pipe& pipe : {output, *status}) {
      close(pipe.read_end);
      close(pipe.write_end);
    }
    return cancelled();
  }
  auto child = std::make_unique<Child>(id, log_path);
  child->output = output.read_end;
  child->status = status->read_end;
  child->folder = log_path + ".sandbox-" + std::to_string(id);
  const auto pid = spawn(sandbox_command(tools_, spec, kStatusFd, child->folder), output.write_end,
                         status->write_end);
  close(output.write_end);
  close(status->write_end);
  if (pid.ok()) {
    child->sandbox = *pid;
    child->pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
    if (registered) registered(id);
  }
  MutexLock lock(mutex_);
  --starting_;
  wake();
  if (!pid.ok()) return pid.error();
  if (child->pidfd < 0) {
    kill(child->sandbox, SIGKILL);
    waitpid(child->sandbox, nullptr, 0);
    return invalid("pidfd_open failed");
  }
  if (stopping_) child->pending_signal = SIGKILL;
  const auto add = [&](int fd, Source source) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = token_of(id, source)}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  };
  add(child->output, kOutput);
  add(child->status, kStatus);
  add(child->pidfd, kExit);
  children_.emplace(id, std::move(child));
  return id;
}

void ProcessHost::signal(Id id, int signal_number) {
  MutexLock lock(mutex_);
  const auto found = children_.find(id);
  if (found == children_.end()) return;
  Child& child = *found->second;
  if (child.pending_signal != SIGKILL) child.pending_signal = signal_number;
  deliver(child);
}

void ProcessHost::deliver(Child& child) {
  if (child.pending_signal == 0 || child.container == 0 || child.exit_code.has_value()) return;
  // The sandbox is not reaped yet, so the number still belongs to its child (or to nobody).
  const bool forward = child.forwarder != 0 && child.pending_signal != SIGKILL;
  kill(forward ? child.forwarder : child.container, child.pending_signal);
  child.killed = child.killed || child.pending_signal == SIGKILL;
  child.pending_signal = 0;
}

void ProcessHost::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    // Never bwrap itself: one that dies between making its child and releasing it leaves the child
    // waiting for ever. With its child it ends by itself. Nor proot: its child would go on, and
    // take the names of its files for the machine's.
    for (const auto& [id, child] : children_) {
      child->pending_signal = SIGKILL;
      deliver(*child);
    }
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void ProcessHost::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_, &one, sizeof one);
}

void ProcessHost::run() {
  set_thread_name("reaper");
  std::array<epoll_event, 64> events{};
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (stopping_ && starting_ == 0 && children_.empty()) return;
    }
    const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) on_ready(events.at(static_cast<std::size_t>(i)).data.u64);
  }
}

void ProcessHost::on_ready(std::uint64_t token) {
  if (token == 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = read(wake_, &count, sizeof count);
    return;
  }
  const Id id = token >> kSourceBits;
  const auto source = static_cast<Source>(token & ((1U << kSourceBits) - 1));
  if (source == kExit) return reap(id);
  MutexLock lock(mutex_);
  const auto found = children_.find(id);
  if (found == children_.end()) return;
  if (source == kOutput) found->second->read_output();
  if (source == kStatus) {
    found->second->read_status();
    deliver(*found->second);
  }
}

void ProcessHost::reap(Id id) {
  std::unique_ptr<Child> child;
  bool report = false;
  {
    MutexLock lock(mutex_);
    const auto found = children_.find(id);
    if (found == children_.end()) return;
    child = std::move(found->second);
    children_.erase(found);
    report = !stopping_;
  }
  int wait_status = 0;
  while (waitpid(child->sandbox, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (tools_.kind == SandboxKind::kProot) {
    std::error_code ignored;
    std::filesystem::remove_all(child->folder, ignored);
  }
  // All processes of the sandbox are gone with its first one, so both pipes end here.
  if (child->output >= 0) child->read_output();
  if (child->status >= 0) child->read_status();
  if (!report) return;
  ProcessExit exit;
  if (child->exit_code.has_value()) {
    exit.code = *child->exit_code;
    exit.signal = exit.code > 128 && WIFEXITED(wait_status) ? exit.code - 128 : 0;
  } else if (WIFSIGNALED(wait_status) || child->killed) {  // perhaps while it was being set up
    exit.signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : SIGKILL;
    exit.code = 128 + exit.signal;
  } else {
    exit.started = false;
    exit.code = 128;
    exit.message = std::string(trim(child->last_output));
  }
  on_exit_(id, exit);
}

}  // namespace lpp::devcluster
