// SPDX-License-Identifier: Apache-2.0
// Quantities: what the text says as a decimal number with a suffix, computed another way; and the
// value's own text reads as the same value.

#include "k8s/quantity.h"

#include <cmath>
#include <limits>
#include <string>

#include "property.h"

namespace {

using lpp::fuzz::require;
using lpp::k8s::Quantity;

/// About what the text is worth: strtold and a table, good to some 18 digits.
long double estimate(const std::string& text) {
  char* end = nullptr;
  const long double number = std::strtold(text.c_str(), &end);
  const std::string suffix(end);
  if (suffix.empty() || suffix.find_first_not_of(" \t\r\n\v\f") == std::string::npos) return number;
  const std::string letters = "KMGTPE";
  const auto power = letters.find(suffix[0] == 'k' ? 'K' : suffix[0]);
  if (suffix.size() > 1 && suffix[1] == 'i') {
    return std::ldexp(number, 10 * static_cast<int>(power + 1));
  }
  if (suffix[0] == 'n') return number * 1e-9L;
  if (suffix[0] == 'u') return number * 1e-6L;
  if (suffix[0] == 'm') return number * 1e-3L;
  return number * std::pow(10.0L, 3.0L * static_cast<long double>(power + 1));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(lpp::fuzz::text_of(data, size));
  const auto parsed = Quantity::parse(text);
  if (!parsed.ok()) {
    require(parsed.error().message.size() < 1'000, "a message is bounded");
    return 0;
  }
  const std::int64_t value = parsed->value();
  const auto again = Quantity::parse(std::to_string(value));
  require(again.ok() && again->value() == value && !again->saturated(),
          "the value reads as itself");
  if (parsed->saturated()) {
    require(value == std::numeric_limits<std::int64_t>::max() ||
                value <= -std::numeric_limits<std::int64_t>::max(),
            "what does not fit is the limit");
    return 0;
  }
  if (text.find('\0') != std::string::npos) return 0;
  const long double about = estimate(text);
  require(std::fabs(about - static_cast<long double>(value)) <= 1.0L + std::fabs(about) * 1e-15L,
          "the value is what the text says, rounded away from zero");
  require(std::fabs(static_cast<long double>(value)) + 1e-6L + std::fabs(about) * 1e-15L >=
              std::fabs(about),
          "a volume is never smaller than asked for");
  return 0;
}
