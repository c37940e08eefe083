// SPDX-License-Identifier: Apache-2.0
#include "bench/sample.h"

#include <filesystem>

#include "bench/startup.h"

namespace lpp::bench {

using nlohmann::json;

std::set<std::string> sample_flags() {
  std::set<std::string> flags = measurement_flags();
  flags.merge(std::set<std::string>{"seconds", "until-watching"});
  return flags;
}

Result<SampleOptions> sample_options(const Arguments& arguments) {
  SampleOptions options;
  LPP_ASSIGN_OR_RETURN(const auto length, arguments.number("seconds", 60), "sample");
  options.length = std::chrono::seconds(length);
  options.until_watching = arguments.text("until-watching") == "true";
  LPP_ASSIGN_OR_RETURN(options.things, measured_things(arguments), "sample");
  return options;
}

json sample(Clock& clock, const SampleOptions& options) {
  std::error_code no_file;
  const auto size = std::filesystem::file_size(options.things.audit_file, no_file);
  const auto offset = no_file ? 0 : static_cast<std::int64_t>(size);
  const double began_wall =
      std::chrono::duration<double>(clock.wall_now().time_since_epoch()).count();
  Measurement measurement(clock, options.things);
  const auto deadline = clock.now() + options.length;
  if (!options.until_watching) {
    clock.sleep_until(deadline, {});
    json result = measurement.result();
    result["seconds"] = std::chrono::duration<double>(options.length).count();
    return result;
  }
  constexpr auto kLook = std::chrono::milliseconds(100);
  double accepted = 0;
  while (accepted == 0 && clock.now() < deadline) {
    clock.sleep_for(kLook, {});
    accepted = watches_accepted(options.things.audit_file, options.things.audit_user, offset);
  }
  measurement.wait_quiet();
  json result = measurement.result();
  result["complete"] = accepted != 0;
  result["seconds"] = accepted == 0 ? 0 : accepted - began_wall;
  return result;
}

}  // namespace lpp::bench
