// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace lpp::text {

/// Levenshtein distance, in bytes. The cost is the product of the sizes. Pure.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `name` was probably meant to be; "" when none is near. Pure.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace lpp::text
