// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lpp::operation {

/// Progress::reason of a make that its owner called off, and that has ended without having been
/// brought to its end.
inline constexpr std::string_view kCalledOff = "CalledOff";

}  // namespace lpp::operation
