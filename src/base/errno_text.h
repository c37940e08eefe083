// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

namespace lpp {

/// What the system says of an errno. Thread-safe.
inline std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace lpp
