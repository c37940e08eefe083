// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

#include "base/whole_number.h"

namespace lpp::text {

namespace {

using nlohmann::json;

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                    "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                     "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> kNotFinite = {".nan",  ".NaN",  ".NAN",  ".inf",
                                                         ".Inf",  ".INF",  "+.inf", "+.Inf",
                                                         "+.INF", "-.inf", "-.Inf", "-.INF"};

std::string without_underscores(std::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  return plain;
}

/// The base that follows from the character after a leading zero.
int base_of(char c) {
  if (c == 'x' || c == 'X') return 16;
  if (c == 'b' || c == 'B') return 2;
  return 8;
}

/// Go's ParseInt(text, 0, 64) and, for what is too big for it, ParseUint.
std::optional<json> integer(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    base = base_of(text[1]);
    text.remove_prefix(base == 8 && text[1] != 'o' && text[1] != 'O' ? 1 : 2);
  }
  const auto read = whole_number<std::uint64_t>(text, base);
  if (!read) return std::nullopt;
  const std::uint64_t value = *read;
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!negative) return json(value);
  if (value > kMax + 1) return std::nullopt;
  return json(value == kMax + 1 ? std::numeric_limits<std::int64_t>::min()
                                : -static_cast<std::int64_t>(value));
}

/// [-+]? (.digits | digits[.digits]) ([eE][-+]?digits)?
bool looks_like_float(std::string_view text) {
  std::size_t at = 0;
  const auto sign = [&] {
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  };
  const auto digits = [&] {
    const std::size_t start = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - start;
  };
  sign();
  const std::size_t whole = digits();
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits();
  }
  if (whole == 0 && fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    sign();
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::optional<json> floating(std::string_view text) {
  if (!looks_like_float(text)) return std::nullopt;
  if (text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return json(value);
}

}  // namespace

std::optional<json> plain_scalar(const std::string& text) {
  if (is_one_of(text, kNull)) return json(nullptr);
  if (is_one_of(text, kTrue)) return json(true);
  if (is_one_of(text, kFalse)) return json(false);
  if (is_one_of(text, kNotFinite)) return std::nullopt;
  const char first = text.front();
  if (first == '-' || first == '+' || first == '.' || (first >= '0' && first <= '9')) {
    const std::string plain = without_underscores(text);
    if (auto value = integer(plain); value.has_value()) return value;
    if (auto value = floating(plain); value.has_value()) return value;
  }
  return json(text);
}

bool is_utf8(std::string_view text) {
  // nlohmann's serialiser holds the same strict decoder that will have to write the text later.
  try {
    (void)json(std::string(text)).dump();
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

}  // namespace lpp::text
