#include "harness/daemon_process.h"

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/strings.h"
#include "harness/http_get.h"

namespace lpp::testing {

Result<std::unique_ptr<DaemonProcess>> DaemonProcess::start(const DaemonOptions& options) {
  const int port = free_port();
  ChildOptions child{.program = options.program,
                     .args = {"start", "--health-port", std::to_string(port)},
                     .env = options.env,
                     .log_file = options.log_file};
  child.args.insert(child.args.end(), options.args.begin(), options.args.end());
  LPP_ASSIGN_OR_RETURN(auto process, ChildProcess::start(child), "start the daemon");
  return std::unique_ptr<DaemonProcess>(
      new DaemonProcess(std::move(process), port, options.log_file));
}

Result<void> DaemonProcess::wait_ready(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::string last = "no answer";
  while (true) {
    const auto answer = http_get(health_port_, "/ready", std::chrono::seconds(2));
    if (answer.ok() && answer->status == 200) return {};
    if (answer.ok()) last = std::to_string(answer->status) + " " + answer->body;
    if (const auto exit = child_->wait(std::chrono::milliseconds(10))) {
      return Error{.message = "the daemon ended with " + exit->to_string() + "\n" + log_tail()};
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error{.code = ErrorCode::kTimeout,
                   .message = "the daemon is not ready (" + last + ")\n" + log_tail()};
    }
  }
}

Result<DaemonProcess::Ending> DaemonProcess::terminate(std::chrono::milliseconds limit) {
  const auto began = std::chrono::steady_clock::now();
  child_->signal(SIGTERM);
  const auto exit = child_->wait(limit);
  if (!exit) {
    child_->kill();
    return Error{.code = ErrorCode::kTimeout,
                 .message = "the daemon did not end in time\n" + log_tail()};
  }
  return Ending{.exit = *exit,
                .took = std::chrono::duration_cast<std::chrono::milliseconds>(
                    std::chrono::steady_clock::now() - began)};
}

int DaemonProcess::peak_mib() const {
  constexpr int kKibPerMib = 1024;
  std::ifstream status("/proc/" + std::to_string(pid()) + "/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    int kib = 0;
    status >> kib;
    return kib / kKibPerMib;
  }
  return 0;
}

std::string DaemonProcess::log_tail(std::size_t lines) const {
  std::ifstream in(log_file_, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  std::size_t start = all.size();
  for (std::size_t i = 0; i <= lines && start != std::string::npos && start > 0; ++i) {
    start = all.rfind('\n', start - 1);
  }
  return "end of " + log_file_ + ":\n" +
         all.substr(start == std::string::npos || start == 0 ? 0 : start + 1);
}

}  // namespace lpp::testing
