// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/options.h"

/// Command lines as main() would read them, in an environment of the test's own.
namespace lpp::app::testing {

using Environment = std::map<std::string, std::string>;
using Arguments = std::vector<std::string>;

inline Invocation parse(const Arguments& arguments, const Environment& environment = {}) {
  return parse_command_line(arguments, [&](const std::string& name) -> std::optional<std::string> {
    const auto it = environment.find(name);
    if (it == environment.end()) return std::nullopt;
    return it->second;
  });
}

inline Options options(const Arguments& arguments, const Environment& environment = {}) {
  const auto invocation = parse(arguments, environment);
  if (const auto* text = std::get_if<PrintAndExit>(&invocation)) FAIL(text->text);
  return std::get<Options>(invocation);
}

inline PrintAndExit text(const Arguments& arguments, const Environment& environment = {}) {
  const auto invocation = parse(arguments, environment);
  REQUIRE(std::holds_alternative<PrintAndExit>(invocation));
  return std::get<PrintAndExit>(invocation);
}

/// A usage error: exit code 2, the message, and how to go on.
inline void check_refused(const Arguments& arguments, const Environment& environment,
                          const std::string& message) {
  const PrintAndExit out = text(arguments, environment);
  CAPTURE(out.text);
  CHECK(out.exit_code == 2);
  CHECK(out.text.starts_with("local-path-provisioner: "));
  CHECK(out.text.find(message) != std::string::npos);
  CHECK(out.text.find("Usage:") != std::string::npos);
  CHECK(out.text.find("--help`") != std::string::npos);
}

}  // namespace lpp::app::testing
