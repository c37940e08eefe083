// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "bench/arguments.h"
#include "bench/measurement.h"

namespace lpp::bench {

struct SampleOptions {
  std::chrono::seconds length{60};
  bool until_watching = false;  // see sample()
  MeasuredThings things{};
};

std::set<std::string> sample_flags();
Result<SampleOptions> sample_options(const Arguments& arguments);

/// Measures what runs, without doing anything, for the given time; or, for what happens when the
/// API server comes back, until it has accepted new watches and nothing more is asked of it, at
/// most for the given time. Then "seconds" ends with the last watch.
nlohmann::json sample(Clock& clock, const SampleOptions& options);

}  // namespace lpp::bench
