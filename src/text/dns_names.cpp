// SPDX-License-Identifier: Apache-2.0
#include "text/dns_names.h"

#include <algorithm>

#include "base/strings.h"

namespace lpp::text {

namespace {

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// A label of any length.
bool is_dns_part(std::string_view text) {
  return !text.empty() && is_lower_or_digit(text.front()) && is_lower_or_digit(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

}  // namespace

bool is_dns_label(std::string_view text) { return text.size() <= 63 && is_dns_part(text); }

bool is_dns_subdomain(std::string_view text) {
  if (text.size() > 253) return false;
  const auto parts = split(text, '.');
  return std::all_of(parts.begin(), parts.end(), is_dns_part);
}

}  // namespace lpp::text
