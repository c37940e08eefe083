// SPDX-License-Identifier: Apache-2.0
#include "flags/flag_reader.h"

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/strings.h"
#include "flags/flag_values.h"

namespace lpp::flags {

bool FlagReader::given(std::string_view name) const {
  const Source source = look_up(name);
  return source.origin != Origin::kDefault && !is_empty_variable(source);
}

std::vector<std::string> FlagReader::texts(std::string_view name) const {
  const auto it = given_.flags.find(name);
  return it == given_.flags.end() ? std::vector<std::string>() : it->second;
}

std::string FlagReader::checked_text(std::string_view name, bool (*accept)(std::string_view),
                                     std::string_view expected) {
  const Source source = look_up(name);
  if (!accept(source.value)) fail(source, expected);
  return source.value;
}

std::string FlagReader::choice(std::string_view name) {
  const Source source = look_up(name);
  const auto choices = split(source.flag->choices, '|');
  const bool known = std::find(choices.begin(), choices.end(), source.value) != choices.end();
  if (source.origin != Origin::kDefault && !known) {
    fail(source, fmt::format("one of {}", source.flag->choices));
  }
  return source.value;
}

bool FlagReader::boolean(std::string_view name) {
  return number<bool>(name, parse_go_bool, "true or false").value_or(false);
}

int FlagReader::integer(std::string_view name, int low, int high) {
  const auto expected = high == std::numeric_limits<int>::max()
                            ? fmt::format("a whole number from {}", low)
                            : fmt::format("a whole number from {} to {}", low, high);
  const auto value = number<std::int64_t>(name, parse_go_int, expected);
  if (!value) return low;
  if (*value < low || *value > high) fail(usable_source(name), expected);
  return static_cast<int>(*value);
}

double FlagReader::real(std::string_view name) {
  return number<double>(name, parse_go_float, "a number").value_or(0);
}

std::chrono::seconds FlagReader::seconds(std::string_view name) {
  return whole_seconds(name, std::chrono::seconds(1),
                       "a duration of whole seconds from 1s to 24h, like 15s");
}

std::chrono::seconds FlagReader::seconds_or_zero(std::string_view name) {
  return whole_seconds(name, std::chrono::seconds(0),
                       "0, or a duration of whole seconds from 1s to 24h, like 15s");
}

std::chrono::seconds FlagReader::whole_seconds(std::string_view name, std::chrono::seconds least,
                                               std::string_view expected) {
  const auto value = number<std::chrono::nanoseconds>(name, parse_go_duration, expected);
  if (!value) return std::chrono::seconds(1);
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*value);
  if (whole != *value || whole < least || whole > std::chrono::hours(24)) {
    fail(usable_source(name), expected);
  }
  return whole;
}

std::chrono::nanoseconds FlagReader::duration(std::string_view name) {
  constexpr std::string_view kExpected = "a duration like 90s, 30m or 12h";
  const auto value = number<std::chrono::nanoseconds>(name, parse_go_duration, kExpected);
  if (value && value->count() <= 0) fail(usable_source(name), kExpected);
  return value.value_or(std::chrono::seconds(1));
}

FlagReader::Source FlagReader::look_up(std::string_view name) const {
  const Flag* const flag = find_flag(groups_, name);
  if (const auto it = given_.flags.find(name); it != given_.flags.end()) {
    return {flag, Origin::kFlag, it->second.back()};  // the last one wins
  }
  if (!flag->env.empty()) {
    if (auto value = getenv_(std::string(flag->env))) {
      return {flag, Origin::kVariable, *std::move(value)};
    }
  }
  return {flag, Origin::kDefault, std::string(flag->fallback)};
}

FlagReader::Source FlagReader::usable_source(std::string_view name) const {
  Source source = look_up(name);
  if (is_empty_variable(source)) source.value = source.flag->fallback;
  return source;
}

template <typename T>
std::optional<T> FlagReader::number(std::string_view name,
                                    std::optional<T> (*parse)(std::string_view),
                                    std::string_view expected) {
  const Source source = usable_source(name);
  auto value = parse(source.value);
  if (!value) fail(source, expected);
  return value;
}

void FlagReader::fail(const Source& source, std::string_view expected) {
  const bool variable = source.origin == Origin::kVariable;
  fail(fmt::format("{}{}={}: expected {}", variable ? "$" : "--",
                   variable ? source.flag->env : source.flag->name,
                   log::quoted(truncate_utf8(source.value, 200)), expected));
}

}  // namespace lpp::flags
