// SPDX-License-Identifier: Apache-2.0
#include "k8s/names.h"

#include <algorithm>

#include "text/dns_names.h"

namespace lpp::k8s {

namespace {

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alphanumeric(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool is_qualified_name(std::string_view text) {
  const auto slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (!text::is_dns_subdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return !text.empty() && is_label_value(text);
}

bool is_label_value(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= 63 && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace lpp::k8s
