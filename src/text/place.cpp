// SPDX-License-Identifier: Apache-2.0
#include "text/place.h"

#include <algorithm>

namespace lpp::text {

Place place_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto breaks = std::count(before.begin(), before.end(), '\n');
  const auto last = before.rfind('\n');
  const std::size_t start = last == std::string_view::npos ? 0 : last + 1;
  return {.line = static_cast<std::size_t>(breaks) + 1, .column = before.size() - start + 1};
}

}  // namespace lpp::text
