// SPDX-License-Identifier: Apache-2.0
#include "bench/measurement.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "bench/process_usage.h"

namespace lpp::bench {

namespace {

using nlohmann::json;

std::int64_t size_of(const std::string& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

}  // namespace

std::set<std::string> measurement_flags() {
  return {"audit-log", "audit-user", "log-file", "process"};
}

Result<MeasuredThings> measured_things(const Arguments& arguments) {
  MeasuredThings things{.audit_file = arguments.text("audit-log"),
                        .audit_user = arguments.text("audit-user"),
                        .log_file = arguments.text("log-file")};
  LPP_ASSIGN_OR_RETURN(things.processes, parse_processes(arguments.all("process")), "flags");
  return things;
}

json distribution(std::vector<double> values) {
  if (values.empty()) return json::object();
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(values.size()));
    return values[std::min(index, values.size() - 1)];
  };
  return {{"min", values.front()},
          {"p50", at(0.5)},
          {"p95", at(0.95)},
          {"p99", at(0.99)},
          {"max", values.back()}};
}

Measurement::Measurement(Clock& clock, const MeasuredThings& things)
    : clock_(clock),
      things_(things),
      audit_(things.audit_file, things.audit_user),
      began_(clock.now()),
      machine_(machine_busy_seconds()),
      self_(cpu_seconds(::getpid())),
      cpu_(cpu_of(things.processes)),
      log_bytes_(size_of(things.log_file)) {
  if (daemon() != 0) reset_peak(daemon());
}

pid_t Measurement::daemon() const {
  const auto it = things_.processes.find("daemon");
  return it == things_.processes.end() ? 0 : it->second;
}

void Measurement::wait_quiet() {
  constexpr auto kQuiet = std::chrono::milliseconds(500);
  constexpr int kLongest = 300;  // Events may be sent slowly on purpose
  for (int i = 0; i < kLongest; ++i) {
    audit_.read();
    clock_.sleep_for(kQuiet, {});
    if (audit_.read() == 0) return;
  }
}

json Measurement::result() {
  audit_.read();
  const auto after = cpu_of(things_.processes);
  double known = cpu_seconds(::getpid()) - self_;
  for (const auto& [name, seconds] : after) known += seconds - cpu_.at(name);
  const double wall = std::chrono::duration<double>(clock_.now() - began_).count();
  const double foreign = std::max(0.0, machine_busy_seconds() - machine_ - known);
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  json result = {{"cpu_s", difference(cpu_, after)},
                 {"foreign_share", foreign / (wall * cores)},
                 {"requests", audit_.take()},
                 {"log_bytes", size_of(things_.log_file) - log_bytes_}};
  if (daemon() != 0) result["memory_kib"] = memory_kib(daemon());
  return result;
}

}  // namespace lpp::bench
