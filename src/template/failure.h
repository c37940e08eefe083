// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace lpp::gotemplate {

/// Thrown inside the template engine only, and caught in Template: like the panics of the
/// original, it leaves a deep recursion from any place. `position` is a byte offset in the
/// template.
struct Failure {
  std::size_t position = 0;
  std::string message{};
};

}  // namespace lpp::gotemplate
