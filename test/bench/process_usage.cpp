// SPDX-License-Identifier: Apache-2.0
#include "bench/process_usage.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lpp::bench {

namespace {

std::string proc(pid_t pid, const std::string& file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

double ticks_seconds(pid_t pid) {
  std::ifstream file(proc(pid, "stat"));
  std::string text;
  std::getline(file, text);
  const auto after_name = text.rfind(") ");
  if (after_name == std::string::npos) return 0;
  std::istringstream fields(text.substr(after_name + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double threads_seconds(pid_t pid) {
  double sum = 0;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(proc(pid, "task"), error)) {
    std::ifstream file(thread.path() / "schedstat");
    double nanoseconds = 0;
    file >> nanoseconds;
    sum += nanoseconds / 1e9;
  }
  return sum;
}

void read_numbers(const std::string& path, std::map<std::string, std::int64_t>& into) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream value(line.substr(colon + 1));
    std::int64_t number = 0;
    if (value >> number) into[line.substr(0, colon)] = number;
  }
}

}  // namespace

double cpu_seconds(pid_t pid) {
  // Two clocks with different errors: what is missing from the threads' sum are ended threads.
  constexpr double kTolerance = 0.05;
  const double ticks = ticks_seconds(pid);
  const double threads = threads_seconds(pid);
  return threads > ticks - kTolerance ? threads : ticks;
}

double machine_busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double waiting = 0;
  double interrupts = 0;
  double soft_interrupts = 0;
  file >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts;
  return (user + nice + system + interrupts + soft_interrupts) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::map<std::string, std::int64_t> memory_kib(pid_t pid) {
  std::map<std::string, std::int64_t> all;
  read_numbers(proc(pid, "status"), all);
  read_numbers(proc(pid, "smaps_rollup"), all);
  std::map<std::string, std::int64_t> chosen;
  for (const char* name : {"VmRSS", "VmHWM", "RssAnon", "Threads", "Pss", "Private_Dirty"}) {
    if (const auto it = all.find(name); it != all.end()) chosen.insert(*it);
  }
  return chosen;
}

void reset_peak(pid_t pid) { std::ofstream(proc(pid, "clear_refs")) << "5"; }

Result<std::map<std::string, pid_t>> parse_processes(const std::vector<std::string>& pairs) {
  std::map<std::string, pid_t> processes;
  for (const std::string& pair : pairs) {
    const auto equals = pair.find('=');
    pid_t pid = 0;
    if (equals != std::string::npos) {
      std::from_chars(pair.data() + equals + 1, pair.data() + pair.size(), pid);
    }
    if (pid <= 0) return invalid("--process: not NAME=PID: " + pair);
    processes[pair.substr(0, equals)] = pid;
  }
  return processes;
}

std::map<std::string, double> cpu_of(const std::map<std::string, pid_t>& processes) {
  std::map<std::string, double> seconds;
  for (const auto& [name, pid] : processes) seconds[name] = cpu_seconds(pid);
  return seconds;
}

nlohmann::json difference(const std::map<std::string, double>& before,
                          const std::map<std::string, double>& after) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, seconds] : after) result[name] = seconds - before.at(name);
  return result;
}

}  // namespace lpp::bench
