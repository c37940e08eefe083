// SPDX-License-Identifier: Apache-2.0
#include "bench/startup.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/parse_time.h"
#include "bench/process_usage.h"
#include "harness/child_process.h"

namespace lpp::bench {

namespace {

using nlohmann::json;

constexpr auto kLook = std::chrono::milliseconds(50);
constexpr auto kSettle = std::chrono::seconds(2);
constexpr auto kLimit = std::chrono::seconds(60);

double wall_seconds(Clock& clock) {
  return std::chrono::duration<double>(clock.wall_now().time_since_epoch()).count();
}

/// Seconds of "2026-11-20T09:15:16.123456Z".
double parse_time(const std::string& text) {
  const auto time = parse_rfc3339(text);
  return time ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

Result<json> measure_one(Clock& clock, const StartupOptions& options) {
  std::error_code no_file;
  const auto offset = std::filesystem::file_size(options.things.audit_file, no_file);
  if (no_file) return invalid("--audit-log: cannot be read");
  testing::ChildOptions child{
      .program = options.program, .args = options.args, .log_file = options.things.log_file};
  for (const auto& [name, value] : options.env) child.env[name] = value;
  const double began = wall_seconds(clock);
  LPP_ASSIGN_OR_RETURN(const auto process, testing::ChildProcess::start(child), "startup");
  const auto deadline = clock.now() + kLimit;
  double synced = 0;
  while (synced == 0) {
    clock.sleep_for(kLook, {});
    synced = watches_accepted(options.things.audit_file, options.things.audit_user,
                              static_cast<std::int64_t>(offset));
    if (!process->alive()) return Error{.message = "the program ended; see its log"};
    if (clock.now() > deadline) return Error{.message = "no watches of it were seen"};
  }
  clock.sleep_for(kSettle, {});
  json result = {{"synced_s", synced - began},
                 {"cpu_s", cpu_seconds(process->pid())},
                 {"memory_kib", memory_kib(process->pid())}};
  const auto asked = clock.now();
  process->signal(SIGTERM);
  if (!process->wait(std::chrono::seconds(20))) return Error{.message = "it does not end"};
  result["stop_s"] = std::chrono::duration<double>(clock.now() - asked).count();
  return result;
}

}  // namespace

std::set<std::string> startup_flags() {
  std::set<std::string> flags = measurement_flags();
  flags.merge(std::set<std::string>{"program", "arg", "env", "rounds"});
  return flags;
}

Result<StartupOptions> startup_options(const Arguments& arguments) {
  StartupOptions options;
  LPP_ASSIGN_OR_RETURN(options.program, arguments.required("program"), "startup");
  options.args = arguments.all("arg");
  for (const std::string& pair : arguments.all("env")) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos) return invalid("--env: not NAME=VALUE: " + pair);
    options.env.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  LPP_ASSIGN_OR_RETURN(options.rounds, arguments.number("rounds", options.rounds), "startup");
  LPP_ASSIGN_OR_RETURN(options.things, measured_things(arguments), "startup");
  return options;
}

double watches_accepted(const std::string& audit_file, const std::string& user,
                        std::int64_t offset) {
  std::ifstream file(audit_file, std::ios::binary);
  file.seekg(offset);
  std::map<std::string, double> accepted{
      {"persistentvolumeclaims", 0}, {"persistentvolumes", 0}, {"storageclasses", 0}};
  const std::string needle = "\"username\":\"" + user + "\"";
  for (std::string line; std::getline(file, line);) {
    if (line.find(needle) == std::string::npos) continue;
    const json event = json::parse(line, nullptr, false);
    // Its end is logged too, perhaps that of an earlier process.
    if (event.is_discarded() || event.value("stage", "") != "ResponseStarted") continue;
    const auto kind = accepted.find(event.value("objectRef", json::object()).value("resource", ""));
    if (kind == accepted.end() || kind->second != 0) continue;
    if (event.value("responseStatus", json::object()).value("code", 0) != 200) continue;
    kind->second = parse_time(event.value("requestReceivedTimestamp", ""));
  }
  double last = 0;
  for (const auto& [kind, when] : accepted) {
    if (when == 0) return 0;
    last = std::max(last, when);
  }
  return last;
}

Result<json> measure_startup(Clock& clock, const StartupOptions& options) {
  json result = {{"rounds", json::array()}};
  for (std::size_t i = 0; i < options.rounds; ++i) {
    LPP_ASSIGN_OR_RETURN(auto one, measure_one(clock, options), "startup");
    result["rounds"].push_back(std::move(one));
  }
  return result;
}

}  // namespace lpp::bench
