// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "devcluster/demo.h"
#include "harness/agent_process.h"

namespace lpp::devcluster {

/// The same story with an agent on each node, and how long its parts take without helper pods. The
/// agents are processes, with what their pods would be given. As Demo else.
class AgentsDemo final : public Demo {
 public:
  explicit AgentsDemo(DemoOptions options);

 protected:
  std::vector<std::string> daemon_arguments() const override;
  Result<void> start_others() override;
  Result<void> show() override;

 private:
  Result<void> take_certificate();
  Result<void> start_agent(const std::string& node);

  const int port_;
  std::map<std::string, std::unique_ptr<testing::AgentProcess>> agents_;
};

}  // namespace lpp::devcluster
