// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace lpp::bench {

/// Processor time of a process in seconds: to the nanosecond from the scheduler's figures of its
/// live threads, or from the coarser ticks when threads that have ended took a visible share.
double cpu_seconds(pid_t pid);

/// Time that the machine's processors have not been idle since its start, in seconds.
double machine_busy_seconds();

/// The memory and threads of a process: KiB by the names of /proc/PID/status and smaps_rollup
/// (VmRSS, VmHWM, RssAnon, Threads, Pss, Private_Dirty). Empty when it is gone.
std::map<std::string, std::int64_t> memory_kib(pid_t pid);

/// Makes VmHWM start again from what is resident now.
void reset_peak(pid_t pid);

/// "name=pid" pairs, e.g. daemon=123.
Result<std::map<std::string, pid_t>> parse_processes(const std::vector<std::string>& pairs);

/// The processor time each took since `before`, in seconds.
std::map<std::string, double> cpu_of(const std::map<std::string, pid_t>& processes);
nlohmann::json difference(const std::map<std::string, double>& before,
                          const std::map<std::string, double>& after);

}  // namespace lpp::bench
