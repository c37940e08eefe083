// SPDX-License-Identifier: Apache-2.0
#include "devcluster/node/expansion.h"

namespace lpp::devcluster {

std::string expand_variables(std::string_view text, const VariableLookup& lookup) {
  std::string result;
  result.reserve(text.size());
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c != '$' || at + 1 == text.size()) {
      result += c;
      ++at;
      continue;
    }
    const char next = text[at + 1];
    if (next == '$') {
      result += '$';
      at += 2;
      continue;
    }
    const std::size_t close = next == '(' ? text.find(')', at + 2) : std::string_view::npos;
    if (close == std::string_view::npos) {
      // Not a reference: the dollar and the character after it are plain text.
      result.append(text.substr(at, 2));
      at += 2;
      continue;
    }
    const std::string_view name = text.substr(at + 2, close - at - 2);
    if (const std::string* value = lookup(name); value != nullptr) {
      result += *value;
    } else {
      result.append(text.substr(at, close + 1 - at));
    }
    at = close + 1;
  }
  return result;
}

}  // namespace lpp::devcluster
