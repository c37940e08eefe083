// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

/// Runs programs to their end, for tests of scripts.
namespace lpp::testing {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Run {
  int exit_code = -1;
  std::string output{};  // both streams
};

inline std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

inline Run run(std::vector<std::string> command, const Environment& environment) {
  std::vector<std::string> variables{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const auto& [name, value] : environment) {
    std::string& variable = variables.emplace_back(name);
    variable.append("=").append(value);
  }
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const auto argv = pointers(command);
  const auto envp = pointers(variables);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execvpe(command[0].c_str(), argv.data(), envp.data());
    _exit(127);
  }
  REQUIRE(child > 0);
  close(ends[1]);
  Run out;
  std::array<char, 4096> buffer{};
  ssize_t got = 0;
  while ((got = read(ends[0], buffer.data(), buffer.size())) > 0) {
    out.output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

/// As in the helper pods, and the machine's own.
inline std::vector<std::vector<std::string>> shells() {
  std::vector<std::vector<std::string>> out{{"sh"}};
  if (run({"busybox", "true"}, {}).exit_code == 0) out.push_back({"busybox", "sh"});
  return out;
}

}  // namespace lpp::testing
