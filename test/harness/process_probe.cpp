// SPDX-License-Identifier: Apache-2.0
#include "harness/process_probe.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/file_text.h"
#include "harness/http_get.h"

namespace lpp::testing {

std::string tail_of_log(const std::string& file, std::size_t lines) {
  const std::string all = text_of(file);
  std::size_t start = all.size();
  for (std::size_t i = 0; i <= lines && start != std::string::npos && start > 0; ++i) {
    start = all.rfind('\n', start - 1);
  }
  return "end of " + file + ":\n" +
         all.substr(start == std::string::npos || start == 0 ? 0 : start + 1);
}

int status_kib(pid_t pid, std::string_view name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    if (word != std::string(name) + ":") continue;
    int kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

namespace {

/// The state in /proc/PID/task/TID/stat: after the name, which may hold anything but ends with the
/// last bracket.
bool is_stopped(const std::string& stat) {
  const auto end = stat.rfind(") ");
  return end == std::string::npos ||
         std::string_view("TtZX").find(stat[end + 2]) != std::string::npos;
}

}  // namespace

bool freeze(pid_t pid) {
  using namespace std::chrono_literals;
  if (::kill(pid, SIGSTOP) != 0) return false;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  for (; std::chrono::steady_clock::now() < deadline; std::this_thread::sleep_for(1ms)) {
    std::error_code gone;
    bool runs = false;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
      runs = runs || !is_stopped(text_of(task.path() / "stat"));
    }
    if (gone) return false;
    if (!runs) return true;
  }
  return false;
}

Result<void> wait_for_page(ChildProcess& child, int port, const std::string& page,
                           std::chrono::milliseconds limit, const std::string& log_file) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::string last;
  while (true) {
    const auto answer = http_get(port, page, std::chrono::seconds(2));
    if (answer.ok() && answer->status == 200) return {};
    last = answer.ok() ? std::to_string(answer->status) + " " + answer->body
                       : "no answer: " + answer.error().message;
    if (const auto exit = child.wait(std::chrono::milliseconds(10))) {
      return Error{.message = "the process ended with " + exit->to_string() + "\n" +
                              tail_of_log(log_file)};
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error{.code = ErrorCode::kTimeout,
                   .message = "it is not ready (" + last + ")\n" + tail_of_log(log_file)};
    }
  }
}

Result<ChildExit> terminate_process(ChildProcess& child, std::chrono::milliseconds limit,
                                    const std::string& log_file) {
  child.signal(SIGTERM);
  if (const auto exit = child.wait(limit)) return *exit;
  child.kill();
  return Error{.code = ErrorCode::kTimeout,
               .message = "the process did not end in time\n" + tail_of_log(log_file)};
}

}  // namespace lpp::testing
