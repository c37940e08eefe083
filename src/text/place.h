// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace lpp::text {

/// Where something stands in a text; both count from 1, columns in bytes.
struct Place {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// The place of a byte; of one behind the end, the end. Pure.
Place place_at(std::string_view text, std::size_t offset);

}  // namespace lpp::text
