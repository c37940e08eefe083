// SPDX-License-Identifier: Apache-2.0
#include "k8s/quantity.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/log.h"
#include "base/strings.h"

namespace lpp::k8s {

namespace {

/// Larger exponents are refused: no size needs them, and arithmetic on them would cost memory.
constexpr int kMaxExponent = 1000;
constexpr std::uint64_t kMaxPositive = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMaxNegative = kMaxPositive + 1;

struct Scale {
  int exponent = 0;
  bool binary = false;  // of 2, else of 10
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Scale> parse_suffix(std::string_view suffix) {
  constexpr std::string_view kSteps = "kMGTPE";
  if (suffix.empty()) return Scale{};
  if (suffix.size() == 1) {
    if (suffix == "n") return Scale{.exponent = -9};
    if (suffix == "u") return Scale{.exponent = -6};
    if (suffix == "m") return Scale{.exponent = -3};
    const auto step = kSteps.find(suffix[0]);
    if (step == std::string_view::npos) return std::nullopt;
    return Scale{.exponent = 3 * (static_cast<int>(step) + 1)};
  }
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const auto step = suffix[0] == 'K' ? 0 : kSteps.find(suffix[0]);
    if (step == std::string_view::npos || suffix[0] == 'k') return std::nullopt;
    return Scale{.exponent = 10 * (static_cast<int>(step) + 1), .binary = true};
  }
  if (suffix[0] != 'e' && suffix[0] != 'E') return std::nullopt;
  suffix.remove_prefix(1);
  const bool negative = suffix[0] == '-';
  if (negative || suffix[0] == '+') suffix.remove_prefix(1);
  if (suffix.empty() || !std::all_of(suffix.begin(), suffix.end(), is_digit)) return std::nullopt;
  int exponent = 0;
  for (const char c : suffix) {
    exponent = exponent * 10 + (c - '0');
    if (exponent > kMaxExponent) return std::nullopt;
  }
  return Scale{.exponent = negative ? -exponent : exponent};
}

std::string_view without_leading_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

/// Up to 19 digits fit in 64 unsigned bits.
constexpr std::size_t kSafeDigits = 19;

/// whole.fraction * 10^exponent, rounded up; nothing when it needs more than 19 digits.
std::optional<std::uint64_t> scale_decimal(std::string_view whole, std::string_view fraction,
                                           int exponent) {
  // The value is 0.digits * 10^point.
  const std::string digits = std::string(whole) + std::string(fraction);
  const auto first = digits.find_first_not_of('0');
  if (first == std::string::npos) return 0;
  const auto point = static_cast<std::int64_t>(whole.size()) + exponent;
  if (point - static_cast<std::int64_t>(first) > static_cast<std::int64_t>(kSafeDigits)) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  const auto end = point < 0 ? std::size_t{0} : static_cast<std::size_t>(point);
  for (std::size_t i = 0; i < end; ++i) {
    const char digit = i < digits.size() ? digits[i] : '0';
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  const bool rest = digits.find_first_not_of('0', end) != std::string::npos;
  return value + (rest ? 1 : 0);
}

/// whole.fraction * 2^exponent, rounded up; nothing when it does not fit in 63 bits.
std::optional<std::uint64_t> scale_binary(std::string_view whole, std::string_view fraction,
                                          int exponent) {
  const auto integer = scale_decimal(whole, {}, 0);
  if (!integer || *integer > (kMaxPositive >> exponent)) return std::nullopt;
  // Double the decimal fraction once per bit: what is carried out of it are the bits of the result.
  std::string rest(fraction);
  std::uint64_t carried = 0;
  for (int bit = 0; bit < exponent; ++bit) {
    int carry = 0;
    for (auto digit = rest.rbegin(); digit != rest.rend(); ++digit) {
      const int doubled = (*digit - '0') * 2 + carry;
      *digit = static_cast<char>('0' + doubled % 10);
      carry = doubled / 10;
    }
    carried = carried * 2 + static_cast<std::uint64_t>(carry);
  }
  if (rest.find_first_not_of('0') != std::string::npos) ++carried;
  const std::uint64_t value = (*integer << exponent) + carried;
  if (value > kMaxPositive) return std::nullopt;
  return value;
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return invalid(std::string(why) + ": " + log::quoted(truncate_utf8(text, 64)));
  };
  std::string_view rest = trim(text);
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);

  const auto take_digits = [&rest] {
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_digit);
    const auto count = static_cast<std::size_t>(end - rest.begin());
    const std::string_view digits = rest.substr(0, count);
    rest.remove_prefix(count);
    return digits;
  };
  std::string_view whole = take_digits();
  std::string_view fraction;
  const bool has_whole = !whole.empty();
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = take_digits();
  }
  if (!has_whole && fraction.empty()) return refuse("not a quantity");
  const auto scale = parse_suffix(rest);
  if (!scale) return refuse("not a quantity");

  whole = without_leading_zeros(whole);
  const auto magnitude = scale->binary ? scale_binary(whole, fraction, scale->exponent)
                                       : scale_decimal(whole, fraction, scale->exponent);
  // The binary form ends at 2^63-1 on both sides, as in the API server.
  const std::uint64_t limit = negative && !scale->binary ? kMaxNegative : kMaxPositive;
  Quantity result;
  result.saturated_ = !magnitude || *magnitude > limit;
  const std::uint64_t bounded = result.saturated_ ? limit : *magnitude;
  // Two's complement: well defined for every magnitude up to the limit, INT64_MIN included.
  result.value_ = static_cast<std::int64_t>(negative ? ~bounded + 1 : bounded);
  return result;
}

}  // namespace lpp::k8s
