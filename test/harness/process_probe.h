// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "harness/child_process.h"

namespace lpp::testing {

/// The last lines of a log, for messages.
std::string tail_of_log(const std::string& file, std::size_t lines = 30);

/// A number of /proc/PID/status, such as VmRSS, in KiB; 0 when the process is gone.
int status_kib(pid_t pid, std::string_view name);

/// SIGSTOP; returns when no thread of the process runs any more, which the signal alone does not
/// mean. False when that was not to be had in ten seconds, or the process is gone.
bool freeze(pid_t pid);

/// Waits until the page answers 200. The error says how the process ended, or what it answered
/// last, with the end of its log.
Result<void> wait_for_page(ChildProcess& child, int port, const std::string& page,
                           std::chrono::milliseconds limit, const std::string& log_file);

/// SIGTERM; kTimeout (and killed) when it does not end in time.
Result<ChildExit> terminate_process(ChildProcess& child, std::chrono::milliseconds limit,
                                    const std::string& log_file);

}  // namespace lpp::testing
