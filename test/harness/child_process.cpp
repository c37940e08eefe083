// SPDX-License-Identifier: Apache-2.0
#include "harness/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/errno_text.h"

namespace lpp::testing {

namespace {

std::vector<std::string> environment(const ChildOptions& options) {
  std::vector<std::string> env;
  for (const char* name : {"PATH", "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                           "TSAN_OPTIONS", "LSAN_OPTIONS"}) {
    // Read before threads that might change the environment exist; tests never change it.
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see above
    if (value != nullptr && !options.env.contains(name)) {
      env.push_back(fmt::format("{}={}", name, value));
    }
  }
  for (const auto& [name, value] : options.env) env.push_back(fmt::format("{}={}", name, value));
  return env;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> array;
  array.reserve(texts.size() + 1);
  for (std::string& text : texts) array.push_back(text.data());
  array.push_back(nullptr);
  return array;
}

/// In the child between fork and exec: async-signal-safe calls only. Reports errno and ends.
[[noreturn]] void become(const char* program, char* const* argv, char* const* envp, int log,
                         int report, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  ::setpgid(0, 0);                          // Ctrl-C is for the test, which ends us in its way
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    ::sigaction(number, &standard, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execve(program, argv, envp);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

std::string ChildExit::to_string() const {
  return signal == 0 ? "exit code " + std::to_string(code) : "signal " + std::to_string(signal);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildOptions& options) {
  const std::string log_name = options.log_file.empty() ? "/dev/null" : options.log_file;
  const int log = ::open(log_name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) return invalid(log_name + ": " + errno_text(errno));
  std::array<int, 2> report{};
  if (::pipe2(report.data(), O_CLOEXEC) != 0) {
    ::close(log);
    return Error{.message = "pipe: " + errno_text(errno)};
  }
  std::vector<std::string> args{options.program};
  args.insert(args.end(), options.args.begin(), options.args.end());
  std::vector<std::string> env = environment(options);
  const std::vector<char*> argv = pointers(args);
  const std::vector<char*> envp = pointers(env);
  const pid_t parent = ::getpid();

  const pid_t pid = ::fork();
  if (pid == 0) {
    become(options.program.c_str(), argv.data(), envp.data(), log, report[1], parent);
  }
  const int fork_error = errno;
  ::close(log);
  ::close(report[1]);
  if (pid < 0) {
    ::close(report[0]);
    return Error{.message = "fork: " + errno_text(fork_error)};
  }
  int exec_error = 0;
  const auto got = ::read(report[0], &exec_error, sizeof exec_error);
  ::close(report[0]);
  if (got > 0) {
    ::waitpid(pid, nullptr, 0);
    return Error{.code = exec_error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalid,
                 .message = options.program + ": " + errno_text(exec_error)};
  }
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return Error{.message = "pidfd_open: " + errno_text(error)};
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, pidfd));
}

ChildProcess::~ChildProcess() {
  kill();
  ::close(pidfd_);
}

bool ChildProcess::alive() { return !wait(std::chrono::milliseconds(0)).has_value(); }

void ChildProcess::signal(int number) const {
  ::syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, 0);
}

void ChildProcess::kill() {
  signal(SIGKILL);
  while (!wait(std::chrono::seconds(1))) continue;
}

std::optional<ChildExit> ChildProcess::wait(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (exit_) return exit_;
      siginfo_t info{};
      const int rc = ::waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED | WNOHANG);
      if (rc == 0 && info.si_pid != 0) {
        const bool exited = info.si_code == CLD_EXITED;
        exit_ =
            ChildExit{.code = exited ? info.si_status : 0, .signal = exited ? 0 : info.si_status};
        return exit_;
      }
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd state{.fd = pidfd_, .events = POLLIN, .revents = 0};
    ::poll(&state, 1, static_cast<int>(left.count()));
  }
}

}  // namespace lpp::testing
