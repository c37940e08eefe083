// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/arguments.h"
#include "bench/measurement.h"

namespace lpp::bench {

struct StartupOptions {
  std::string program{};
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};
  std::size_t rounds = 3;
  MeasuredThings things{};
};

std::set<std::string> startup_flags();
Result<StartupOptions> startup_options(const Arguments& arguments);

/// Starts a provisioner some times and reports: seconds from its start to the moment at which the
/// API server has accepted its watches of claims, volumes and classes (a watch follows a complete
/// list, so the caches are filled then), memory two seconds later, and seconds that it took to end.
Result<nlohmann::json> measure_startup(Clock& clock, const StartupOptions& options);

/// When the user's first watch of each of claims, volumes and classes was accepted, by the audit
/// log from `offset` on: the last of the three, as seconds of the wall clock; 0 when one is
/// missing.
double watches_accepted(const std::string& audit_file, const std::string& user,
                        std::int64_t offset);

}  // namespace lpp::bench
