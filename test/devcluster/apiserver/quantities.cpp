// SPDX-License-Identifier: Apache-2.0
#include "devcluster/apiserver/quantities.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "devcluster/json_names.h"

namespace lpp::devcluster {
namespace {

constexpr std::array<std::string_view, 7> kBinary = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::array<std::string_view, 10> kDecimal = {"n", "u", "m", "",  "k",
                                                       "M", "G", "T", "P", "E"};
constexpr int kUnit = 3;  // index of the decimal suffix that means 1
constexpr std::size_t kMostDigits = 15;

/// "1.50Gi" taken apart: digits 15, exponent -1, suffix "Gi".
struct Parts {
  std::int64_t digits = 0;
  int exponent = 0;
  std::string_view suffix{};
};

bool parse(std::string_view text, Parts& parts) {
  std::size_t count = 0;
  bool fraction = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (text[i] < '0' || text[i] > '9') break;
    parts.digits = parts.digits * 10 + (text[i] - '0');
    if (fraction) --parts.exponent;
    if (++count > kMostDigits) return false;
  }
  parts.suffix = text.substr(i);
  while (parts.digits != 0 && parts.digits % 10 == 0 && parts.exponent < 0) {
    parts.digits /= 10;
    ++parts.exponent;
  }
  return count > 0;
}

/// Whole bytes in the largest binary suffix; false where they are not whole or too many.
bool binary(const Parts& parts, std::size_t power, std::string& text) {
  std::int64_t value = parts.digits;
  for (int e = parts.exponent; e < 0; ++e) {
    // 10 = 2 * 5: a fraction is whole in bytes only if the suffix brings the twos.
    if (value % 5 != 0) return false;
    value /= 5;
    if (value % 2 == 0) {
      value /= 2;
    } else if (power > 0) {
      --power;
      if (value > INT64_MAX / 512) return false;
      value *= 512;
    } else {
      return false;
    }
  }
  while (value % 1024 == 0 && power + 1 < kBinary.size()) {
    value /= 1024;
    ++power;
  }
  text = std::to_string(value) + std::string(kBinary[power]);
  return true;
}

std::string decimal(Parts parts, int index) {
  int exponent = parts.exponent + (index - kUnit) * 3;
  while (parts.digits % 10 == 0) {
    parts.digits /= 10;
    ++exponent;
  }
  const int most = (static_cast<int>(kDecimal.size()) - 1 - kUnit) * 3;
  while (exponent % 3 != 0 || exponent > most) {
    parts.digits *= 10;
    --exponent;
  }
  const int at = exponent / 3 + kUnit;
  if (at < 0) return {};
  return std::to_string(parts.digits) + std::string(kDecimal[static_cast<std::size_t>(at)]);
}

}  // namespace

std::string canonical_quantity(std::string_view text) {
  Parts parts;
  if (!parse(text, parts)) return std::string(text);
  if (parts.digits == 0) return "0";
  for (std::size_t power = 1; power < kBinary.size(); ++power) {
    if (parts.suffix != kBinary[power]) continue;
    std::string canonical;
    return binary(parts, power, canonical) ? canonical : std::string(text);
  }
  for (int index = 0; index < static_cast<int>(kDecimal.size()); ++index) {
    if (parts.suffix != kDecimal[static_cast<std::size_t>(index)]) continue;
    const std::string canonical = decimal(parts, index);
    return canonical.empty() ? std::string(text) : canonical;
  }
  return std::string(text);
}

long double quantity_value(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const long double number = std::strtold(copy.c_str(), &end);
  const std::string_view suffix(end);
  if (suffix.empty() || end == copy.c_str()) return end == copy.c_str() ? 0 : number;
  constexpr std::string_view kLarge = "KMGTPE";
  constexpr std::string_view kSmall = "mun";
  const char unit = suffix[0] == 'k' ? 'K' : suffix[0];
  if (const auto power = kLarge.find(unit); power != std::string_view::npos) {
    const long double base = suffix.ends_with('i') ? 1024 : 1000;
    return number * std::pow(base, static_cast<long double>(power + 1));
  }
  if (const auto power = kSmall.find(unit); power != std::string_view::npos) {
    return number / std::pow(1000.0L, static_cast<long double>(power + 1));
  }
  return 0;
}

void canonicalize_quantities(Json& list) {
  if (!list.is_object()) return;
  for (auto& [name, quantity] : list.items()) {
    if (quantity.is_string()) {
      quantity = canonical_quantity(quantity.get<std::string>());
    } else if (quantity.is_number()) {
      quantity = canonical_quantity(quantity.dump());
    }
  }
}

}  // namespace lpp::devcluster
