// SPDX-License-Identifier: Apache-2.0
#include "template/number.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "template/quote.h"

namespace lpp::gotemplate {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_hex_digit(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f'); }

/// strconv's underscoreOK: only between digits, or between a base prefix and a digit.
bool underscores_are_good(std::string_view text) {
  char before = '^';  // '0' = digit, '_' = underscore, '!' = other
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  bool hexadecimal = false;
  if (text.size() >= 2 && text[0] == '0' &&
      (lower(text[1]) == 'b' || lower(text[1]) == 'o' || lower(text[1]) == 'x')) {
    hexadecimal = lower(text[1]) == 'x';
    before = '0';
    text.remove_prefix(2);
  }
  for (const char c : text) {
    if (is_digit(c) || (hexadecimal && is_hex_digit(c))) {
      before = '0';
    } else if (c == '_') {
      if (before != '0') return false;
      before = '_';
    } else {
      if (before == '_') return false;
      before = '!';
    }
  }
  return before != '_';
}

enum class IntegerState { kGood, kSyntax, kRange };

struct Integer {
  IntegerState state = IntegerState::kSyntax;
  std::uint64_t magnitude = 0;
  bool negative = false;
  bool has_sign = false;
};

Integer integer(std::string_view text) {
  Integer result;
  if (!underscores_are_good(text)) return result;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    result.negative = text.front() == '-';
    result.has_sign = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 1 && text.front() == '0') {
    base = 8;
    std::size_t prefix = 1;
    const char kind = lower(text[1]);
    if (kind == 'x' || kind == 'b' || kind == 'o') prefix = 2;
    if (kind == 'x') base = 16;
    if (kind == 'b') base = 2;
    if (prefix == 2 && text.size() == 2) return result;
    text.remove_prefix(prefix);
  }
  std::string digits(text);
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, result.magnitude, base);
  if (digits.empty() || stop != end || error == std::errc::invalid_argument) return result;
  result.state = error == std::errc{} ? IntegerState::kGood : IntegerState::kRange;
  return result;
}

/// A number with a fraction or an exponent.
bool is_real(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const bool hexadecimal = text.size() > 1 && text[0] == '0' && lower(text[1]) == 'x';
  return text.find_first_of(hexadecimal ? ".pP" : ".eE") != std::string_view::npos;
}

/// Decimal digits, even with a leading zero: what Go takes for a number that is too large.
bool is_decimal(std::string_view text) {
  if (!underscores_are_good(text)) return false;
  if (text.front() == '-' || text.front() == '+') text.remove_prefix(1);
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '_'; });
}

std::string parse_rune(Node& node) {
  std::string_view rest;
  const auto rune = unquote_rune(node.text, rest);
  if (!rune.has_value()) return "invalid syntax";
  if (rest != "'") return "malformed character constant: " + node.text;
  node.integer = static_cast<std::int64_t>(*rune);
  return {};
}

}  // namespace

std::string parse_number(Node& node) {
  const std::string& text = node.text;
  if (text.front() == '\'') return parse_rune(node);
  if (text.back() == 'i') return "complex numbers are not supported in patterns: " + text;

  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const Integer parsed = integer(text);
  if (parsed.state == IntegerState::kGood && parsed.magnitude <= kMax + (parsed.negative ? 1 : 0)) {
    node.integer = parsed.negative ? static_cast<std::int64_t>(0 - parsed.magnitude)
                                   : static_cast<std::int64_t>(parsed.magnitude);
    return {};
  }
  if (parsed.state == IntegerState::kGood && !parsed.has_sign) {
    node.overflows = true;
    return {};
  }
  if (is_real(text)) {
    return "numbers with a fraction or an exponent are not supported in patterns: " + text;
  }
  return (is_decimal(text) ? "integer overflow: " : "illegal number syntax: ") + quote(text);
}

}  // namespace lpp::gotemplate
