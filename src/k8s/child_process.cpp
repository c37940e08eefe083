// SPDX-License-Identifier: Apache-2.0
#include "k8s/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <map>

#include "base/errno_text.h"
#include "base/unique_fd.h"

extern char** environ;

namespace lpp::k8s {

namespace {

constexpr std::size_t kMaxOutput = std::size_t{1} << 20U;
constexpr std::size_t kMaxErrors = 2048;
constexpr int kSliceMs = 10;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return invalid("pipe: " + errno_text(errno));
  Pipe made{.read = UniqueFd(fds[0]), .write = UniqueFd(fds[1])};
  ::fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
  return made;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment(const ChildProcess& child) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : child.env) all[name] = value;
  std::vector<std::string> list;
  list.reserve(all.size());
  for (const auto& [name, value] : all) {
    list.push_back(name);
    list.back().append("=").append(value);
  }
  return list;
}

Result<pid_t> spawn(const ChildProcess& child, const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  // Our blocked and ignored signals are not the child's; its own group lets us end all of it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = {child.command};
  words.insert(words.end(), child.args.begin(), child.args.end());
  std::vector<std::string> variables = environment(child);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, child.command.c_str(), &actions, &attributes,
                                   pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return invalid("cannot start " + child.command + ": " + errno_text(error));
  return pid;
}

/// Appends what there is to read now; false at the end of the stream.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > 2 * kMaxOutput) return true;
  }
}

void keep_end(std::string& text) {
  if (text.size() > kMaxErrors) text.erase(0, text.size() - kMaxErrors);
}

/// Ends the child's group when it goes out of scope and takes the child's exit code.
class Reaper {
 public:
  explicit Reaper(pid_t pid) : pid_(pid) {}
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper() {
    ::kill(-pid_, SIGKILL);
    int status = 0;
    while (!exited_ && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  bool exited(int& exit_code) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    exited_ = true;
    exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }

 private:
  const pid_t pid_;
  bool exited_ = false;
};

}  // namespace

Result<ChildOutcome> run_child(const ChildProcess& child, Clock& clock, Duration limit,
                               const std::stop_token& stop) {
  LPP_ASSIGN_OR_RETURN(Pipe out, make_pipe(), child.command);
  LPP_ASSIGN_OR_RETURN(Pipe err, make_pipe(), child.command);
  const TimePoint deadline = clock.now() + limit;
  auto pid = spawn(child, out, err);
  if (!pid.ok()) return std::move(pid).error();
  Reaper reaper(*pid);
  out.write.reset();
  err.write.reset();
  ChildOutcome outcome;
  while (true) {
    const bool exited = reaper.exited(outcome.exit_code);
    const bool more_output = drain(out.read.get(), outcome.output);
    const bool more_errors = drain(err.read.get(), outcome.errors);
    keep_end(outcome.errors);
    if (outcome.output.size() > kMaxOutput) {
      return invalid(child.command + ": it writes more than 1 MiB");
    }
    if (exited) return outcome;
    if (stop.stop_requested()) return cancelled();
    if (clock.now() >= deadline) {
      return Error{.code = ErrorCode::kTimeout, .message = child.command + ": did not end in time"};
    }
    std::array<pollfd, 2> entries{
        pollfd{.fd = more_output ? out.read.get() : -1, .events = POLLIN, .revents = 0},
        pollfd{.fd = more_errors ? err.read.get() : -1, .events = POLLIN, .revents = 0}};
    ::poll(entries.data(), entries.size(), kSliceMs);
  }
}

}  // namespace lpp::k8s
