// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace lpp::k8s {

/// A program to run without a terminal: its input is empty.
struct ChildProcess {
  std::string command{};  // looked up in PATH when it holds no slash
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};  // besides and instead of ours
};

struct ChildOutcome {
  int exit_code = 0;  // 128 + n after signal n
  std::string output{};
  std::string errors{};  // the end of its stderr
};

/// Runs it to its end. What it leaves behind in its process group is killed. kTimeout after
/// `limit`, kCancelled on stop, kInvalid when it cannot be started or writes more than 1 MiB.
/// Thread-safe.
Result<ChildOutcome> run_child(const ChildProcess& child, Clock& clock, Duration limit,
                               const std::stop_token& stop);

}  // namespace lpp::k8s
