// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "app/metric_family.h"
#include "app/metrics.h"
#include "base/strings.h"

namespace lpp::app {

namespace {

using Family = MetricFamily;

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

double number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Seconds since 1970 at which the machine started.
double boot_time(const std::string& stat) {
  constexpr std::string_view kLine = "\nbtime ";
  const auto at = stat.find(kLine);
  return at == std::string::npos ? 0 : number(std::string_view(stat).substr(at + kLine.size()));
}

double open_files(const std::string& folder) {
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return 0;
  double count = -3;                        // ".", ".." and the descriptor of the folder itself
  while (readdir(dir) != nullptr) ++count;  // NOLINT(concurrency-mt-unsafe): a stream of our own
  closedir(dir);
  return count;
}

void add(std::string& out, Family family, double value) { out += family.add({}, value).text(); }

}  // namespace

std::string process_metrics(const std::string& proc) {
  std::string out;
  // The name, in parentheses, may hold anything; fields are counted from behind it, the first
  // being the third of proc(5).
  const std::string stat = text_of(proc + "/self/stat");
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return out;
  const auto fields = split(trim(std::string_view(stat).substr(name_end + 2)), ' ');
  constexpr std::size_t kUtime = 11, kStime = 12, kStarted = 19, kVirtual = 20, kResident = 21;
  if (fields.size() <= kResident) return out;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  add(out,
      Family::counter("process_cpu_seconds_total",
                      "Total user and system CPU time spent in seconds."),
      (number(fields[kUtime]) + number(fields[kStime])) / ticks);
  add(out,
      Family::gauge("process_start_time_seconds",
                    "Start time of the process since unix epoch in seconds."),
      boot_time(text_of(proc + "/stat")) + number(fields[kStarted]) / ticks);
  add(out, Family::gauge("process_virtual_memory_bytes", "Virtual memory size in bytes."),
      number(fields[kVirtual]));
  add(out, Family::gauge("process_resident_memory_bytes", "Resident memory size in bytes."),
      number(fields[kResident]) * page);
  add(out, Family::gauge("process_open_fds", "Number of open file descriptors."),
      open_files(proc + "/self/fd"));
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add(out, Family::gauge("process_max_fds", "Maximum number of open file descriptors."),
        limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<double>::infinity()
                                        : static_cast<double>(limit.rlim_cur));
  }
  return out;
}

}  // namespace lpp::app
