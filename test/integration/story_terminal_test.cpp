// SPDX-License-Identifier: Apache-2.0
// The commands on a terminal, which a pseudo terminal stands for.

#include <doctest/doctest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>

#include "harness/acceptor.h"
#include "harness/command_run.h"
#include "harness/must.h"
#include "harness/temp_dir.h"
#include "support/story_bed.h"

namespace lpp::testing {
namespace {

/// A program on a terminal of its own. Killed when the object goes.
class OnTerminal {
 public:
  OnTerminal(std::vector<std::string> args, std::vector<std::string> env) {
    args.insert(args.begin(), daemon_program());
    std::vector<char*> argv;
    std::vector<char*> envp;
    for (std::string& arg : args) argv.push_back(arg.data());
    for (std::string& variable : env) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    winsize size{.ws_row = 24, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      execve(argv.front(), argv.data(), envp.data());
      _exit(127);
    }
    REQUIRE(pid_ > 0);
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// Reads until that was shown, or until the end when it is "".
  void read_until(const std::string& part) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (part.empty() || shown_.find(part) == std::string::npos) {
      pollfd wait{.fd = terminal_, .events = POLLIN, .revents = 0};
      const bool late = std::chrono::steady_clock::now() > deadline;
      REQUIRE_MESSAGE(!late, "shown so far: ", shown_);
      if (::poll(&wait, 1, 1000) <= 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t got = ::read(terminal_, buffer.data(), buffer.size());
      if (got <= 0) break;  // EIO: nobody has the other side any more
      shown_.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  void press(char key) const { REQUIRE(::write(terminal_, &key, 1) == 1); }
  int wait() {
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return status;
  }
  const std::string& shown() const { return shown_; }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string shown_{};
};

/// An API server that takes connections and says nothing.
class Silence {
 public:
  Silence() {
    std::ofstream(kubeconfig()) << "current-context: c\ncontexts: [{name: c, context: {cluster: c, "
                                   "user: u}}]\nclusters: [{name: c, cluster: {server: "
                                   "'http://127.0.0.1:"
                                << listener_.port << "'}}]\nusers: [{name: u, user: {}}]\n";
  }
  std::string kubeconfig() const { return folder_.path("kubeconfig"); }

 private:
  const TempDir folder_;
  const Listener listener_ = listen_on().value();
};

constexpr const char* kErase = "\r\x1b[K";
const std::vector<std::vector<std::string>> kCommands{
    {"check"}, {"volumes"}, {"history"}, {"explain-path", "a/b"}};

TEST_CASE("Ctrl-C while a command says what it waits for takes that line away and ends it") {
  const Silence server;
  for (const auto& command : kCommands) {
    CAPTURE(command.front());
    OnTerminal program(command, {"TERM=xterm", "KUBECONFIG=" + server.kubeconfig()});
    program.read_until(" s)");  // a busy machine may leave the first second out
    program.press('\x03');
    program.read_until("");
    const int status = program.wait();
    CAPTURE(program.shown());
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGINT);
    CHECK(program.shown().ends_with(kErase));
  }
}

TEST_CASE("what a command waited for does not stand before its error") {
  for (const auto& command : {kCommands[0], kCommands[1]}) {
    CAPTURE(command.front());
    auto server = std::make_unique<Silence>();
    OnTerminal program(command, {"TERM=xterm", "KUBECONFIG=" + server->kubeconfig()});
    program.read_until(" s)");  // a busy machine may leave the first second out
    server.reset();
    program.read_until("");
    const int status = program.wait();
    CAPTURE(program.shown());
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (command.front() == "check" ? 3 : 1));
    CHECK(program.shown().find(kErase + ("local-path-provisioner " + command.front()) + ": ") !=
          std::string::npos);
  }
}

TEST_CASE("colours are for terminals that want them") {
  const TempDir folder;
  const std::string file = folder.path("class.yaml");
  std::ofstream(file) << "kind: StorageClass\nmetadata: {name: a}\n"
                         "provisioner: rancher.io/local-path\nparameters: {pathPatern: x}\n";
  const std::vector<std::string> args{"check", "-f", file};
  const auto shown = [&](std::vector<std::string> env) {
    OnTerminal program(args, std::move(env));
    program.read_until("");
    program.wait();
    CHECK(program.shown().find("pathPatern") != std::string::npos);
    return program.shown();
  };
  CHECK(shown({"TERM=xterm"}).find("\x1b[") != std::string::npos);
  CHECK(shown({"TERM=xterm", "NO_COLOR=1"}).find('\x1b') == std::string::npos);
  CHECK(shown({"TERM=dumb"}).find('\x1b') == std::string::npos);
  CHECK(shown({}).find('\x1b') == std::string::npos);
  const auto piped =
      LPP_MUST(run_command({.program = daemon_program(), .args = args, .env = {{"TERM", "xterm"}}},
                           std::chrono::seconds(30)));
  CHECK(piped.text.find("pathPatern") != std::string::npos);
  CHECK(piped.text.find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace lpp::testing
