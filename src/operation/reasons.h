// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lpp::operation {

/// Progress::reason of a make that its owner called off, and that has ended without having been
/// brought to its end.
inline constexpr std::string_view kCalledOff = "CalledOff";

/// Error::reason, and Progress::reason: what is at the base path is not the disk that it should be.
inline constexpr std::string_view kOtherDisk = "OtherDisk";

}  // namespace lpp::operation
