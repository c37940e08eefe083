// SPDX-License-Identifier: Apache-2.0
#include "harness/agent_process.h"

#include "harness/http_get.h"
#include "harness/process_probe.h"

namespace lpp::testing {

Result<std::unique_ptr<AgentProcess>> AgentProcess::start(const AgentProcessOptions& options) {
  const int port = free_port();
  ChildOptions child{.program = options.program,
                     .args = {"agent", "--controller", options.controller, "--ca-file",
                              options.ca_file, "--token-file", options.token_file, "--root",
                              options.root, "--health-port", std::to_string(port)},
                     .env = options.env,
                     .log_file = options.log_file};
  child.args.insert(child.args.end(), options.args.begin(), options.args.end());
  LPP_ASSIGN_OR_RETURN(auto process, ChildProcess::start(child), "start the agent");
  return std::unique_ptr<AgentProcess>(
      new AgentProcess(std::move(process), port, options.log_file));
}

int AgentProcess::resident_kib() const { return status_kib(pid(), "VmRSS"); }

Result<void> AgentProcess::wait_connected(std::chrono::milliseconds limit) {
  return wait_for_page(*child_, health_port_, "/readyz", limit, log_file_);
}

Result<ChildExit> AgentProcess::terminate(std::chrono::milliseconds limit) {
  return terminate_process(*child_, limit, log_file_);
}

}  // namespace lpp::testing
