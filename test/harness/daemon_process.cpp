// SPDX-License-Identifier: Apache-2.0
#include "harness/daemon_process.h"

#include "harness/http_get.h"
#include "harness/process_probe.h"

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
  return wait_for_page(*child_, health_port_, "/ready", limit, log_file_);
}

Result<DaemonProcess::Ending> DaemonProcess::terminate(std::chrono::milliseconds limit) {
  const auto began = std::chrono::steady_clock::now();
  LPP_ASSIGN_OR_RETURN(const ChildExit exit, terminate_process(*child_, limit, log_file_),
                       "the daemon");
  return Ending{.exit = exit,
                .took = std::chrono::duration_cast<std::chrono::milliseconds>(
                    std::chrono::steady_clock::now() - began)};
}

int DaemonProcess::peak_mib() const {
  constexpr int kKibPerMib = 1024;
  return status_kib(pid(), "VmHWM") / kKibPerMib;
}

std::string DaemonProcess::log_tail(std::size_t lines) const {
  return tail_of_log(log_file_, lines);
}

}  // namespace lpp::testing
