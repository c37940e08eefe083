// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace lpp {

/// Any RFC 3339 time, with or without a fraction and with "Z" or an offset; nothing for other text.
/// What this clock cannot hold, as the year 9999 for "never", is the nearest of 1970 and 2200.
/// clock.h has the other way.
std::optional<std::chrono::system_clock::time_point> parse_rfc3339(std::string_view text);

}  // namespace lpp
