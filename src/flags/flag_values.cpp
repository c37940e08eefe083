// SPDX-License-Identifier: Apache-2.0
#include "flags/flag_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "base/whole_number.h"
#include "text/dns_names.h"

namespace lpp::flags {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Takes the sign off the front; true for minus.
bool take_sign(std::string_view& text) {
  if (text.empty() || (text.front() != '-' && text.front() != '+')) return false;
  const bool minus = text.front() == '-';
  text.remove_prefix(1);
  return minus;
}

/// Takes the base's prefix off the front.
int take_base(std::string_view& text) {
  if (text.size() < 2 || text.front() != '0') return 10;
  const char letter = text[1];
  const int base = letter == 'x' || letter == 'X' ? 16 : letter == 'b' || letter == 'B' ? 2 : 8;
  text.remove_prefix(base == 8 && letter != 'o' && letter != 'O' ? 1 : 2);
  return base;
}

/// "1_000" -> "1000"; nullopt when an underscore does not separate two digits.
std::optional<std::string> without_underscores(std::string_view digits, bool may_lead) {
  std::string out;
  char previous = may_lead ? '0' : '_';
  for (const char c : digits) {
    if (c == '_' && previous == '_') return std::nullopt;
    if (c != '_') out += c;
    previous = c;
  }
  if (previous == '_') return std::nullopt;
  return out;
}

/// Nanoseconds of the unit that begins the text, which is taken off.
std::optional<double> take_unit(std::string_view& text) {
  static constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{
      {"ns", 1.0},
      {"us", 1e3},
      {"\u00b5s", 1e3},  // micro sign
      {"\u03bcs", 1e3},  // Greek mu
      {"ms", 1e6},
      {"s", 1e9},
      {"m", 60e9},
      {"h", 3600e9},
  }};
  for (const auto& [name, nanoseconds] : kUnits) {
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    return nanoseconds;
  }
  return std::nullopt;
}

/// Unsigned decimal number, with or without a fraction, taken off the front.
std::optional<double> take_number(std::string_view& text) {
  std::size_t end = 0;
  std::size_t digits = 0;
  bool point = false;
  for (; end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !point)); ++end) {
    if (text[end] == '.') {
      point = true;
    } else {
      ++digits;
    }
  }
  if (digits == 0) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + end, value);
  if (result.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(end);
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_go_int(std::string_view text) {
  const bool minus = take_sign(text);
  const int base = take_base(text);
  const auto digits = without_underscores(text, base != 10);
  if (!digits) return std::nullopt;
  const auto magnitude = whole_number<std::uint64_t>(*digits, base);
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!magnitude || *magnitude > kMax + (minus ? 1 : 0)) return std::nullopt;
  return static_cast<std::int64_t>(minus ? 0 - *magnitude : *magnitude);
}

std::optional<bool> parse_go_bool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

std::optional<double> parse_go_float(std::string_view text) {
  const bool minus = take_sign(text);
  if (text.empty() || !(is_digit(text.front()) || text.front() == '.')) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return minus ? -value : value;
}

std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text) {
  const bool minus = take_sign(text);
  if (text == "0") return std::chrono::nanoseconds(0);
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    const auto unit = take_unit(text);
    if (!unit) return std::nullopt;
    total += *number * *unit;
  }
  if (total >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return std::chrono::nanoseconds(std::llround(minus ? -total : total));
}

bool is_provisioner_name(std::string_view text) {
  const auto parts = split(text, '/');
  if (parts.size() > 2) return false;
  if (parts.size() == 2 && !text::is_dns_subdomain(to_lower(parts.front()))) return false;
  const std::string_view name = parts.back();
  if (name.empty() || name.size() > 63) return false;
  if (!is_alnum(name.front()) || !is_alnum(name.back())) return false;
  for (const char c : name) {
    if (!is_alnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

bool is_driver_name(std::string_view text) {
  return text.size() <= 63 && text::is_dns_subdomain(text);
}

}  // namespace lpp::flags
