// SPDX-License-Identifier: Apache-2.0
#include "base/json_extent.h"

namespace lpp {

JsonExtent first_json_value(std::string_view text, std::size_t max_depth) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > max_depth) return {.too_deep_at = i};
    } else if ((c == '}' || c == ']') && (depth == 0 || --depth == 0)) {
      return {.end = i + 1};
    }
  }
  return {.end = text.size()};
}

}  // namespace lpp
