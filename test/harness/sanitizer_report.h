// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace lpp::testing {

/// The first report of a sanitizer in a log, its line and the next 79 at most; "" when there is
/// none. Pure.
std::string sanitizer_report(std::string_view log);

}  // namespace lpp::testing
