// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lpp {

/// Where the first value of a JSON text ends, and whether a parser may be let at it: the depth of
/// its call stack, or of the value's destructor, is that of the text.
struct JsonExtent {
  std::size_t end = 0;                       // the place after the value
  std::optional<std::size_t> too_deep_at{};  // the bracket that is one too many; `end` is unset
};

/// Found by brackets and strings alone. Text that is not JSON gets some end: a parser then finds
/// the error there or before, and has not been nested deeper than `max_depth` by then.
JsonExtent first_json_value(std::string_view text, std::size_t max_depth);

}  // namespace lpp
