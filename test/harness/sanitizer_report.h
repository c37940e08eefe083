#pragma once

#include <string>
#include <string_view>

namespace lpp::testing {

/// The line of a log with which a sanitizer's first report begins; "" when there is none. Pure.
std::string sanitizer_report(std::string_view log);

}  // namespace lpp::testing
