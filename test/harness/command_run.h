// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "harness/child_process.h"

namespace lpp::testing {

struct CommandOutput {
  int code = -1;
  std::string text{};  // standard output and error
  bool says(const std::string& part) const { return text.find(part) != std::string::npos; }
};

/// Runs a program to its end; `log_file` of the options is not used. kTimeout, and killed, when
/// that takes longer than the limit; an error when a signal ended it.
Result<CommandOutput> run_command(ChildOptions options, std::chrono::milliseconds limit);

}  // namespace lpp::testing
