// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/arguments.h"
#include "bench/audit_log.h"

namespace lpp::bench {

/// What is looked at while something is measured.
struct MeasuredThings {
  std::string audit_file{};
  std::string audit_user{};                  // of the provisioner
  std::string log_file{};                    // of the provisioner
  std::map<std::string, pid_t> processes{};  // "daemon" is the one that is measured in full
};

/// The flags that measured_things() understands.
std::set<std::string> measurement_flags();
Result<MeasuredThings> measured_things(const Arguments& arguments);

/// Smallest, 50th, 95th, 99th percentile and largest of some values; empty for none.
nlohmann::json distribution(std::vector<double> values);

/// Processor time, memory, requests and log bytes from its making to result(). One thread.
class Measurement {
 public:
  /// The clock and the things must outlive it. Makes the daemon's peak memory start anew.
  Measurement(Clock& clock, const MeasuredThings& things);

  /// Waits until the provisioner asks nothing more of the API server for half a second: what is
  /// done after the last volume (Events, tidying up) belongs to the cost.
  void wait_quiet();
  /// {cpu_s, foreign_share, requests, log_bytes, memory_kib}. foreign_share is how much of the
  /// machine was used by processes that do not belong to the measurement.
  nlohmann::json result();

 private:
  pid_t daemon() const;

  Clock& clock_;
  const MeasuredThings& things_;
  AuditLog audit_;
  const TimePoint began_;
  const double machine_;
  const double self_;
  const std::map<std::string, double> cpu_;
  const std::int64_t log_bytes_;
};

}  // namespace lpp::bench
