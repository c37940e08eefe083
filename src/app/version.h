// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace lpp::app {

/// Version of this build, e.g. "0.1.0": the project's version in CMakeLists.txt.
std::string_view version();
/// That made it, e.g. "gcc 12.2.0".
std::string_view compiler();

}  // namespace lpp::app
