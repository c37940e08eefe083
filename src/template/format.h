// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "template/value.h"

/// Go's fmt for the values of a pattern, ported from fmt/print.go and fmt/format.go (BSD-style
/// licence). kInvalid for what is not supported: structures, methods of times, and verbs that need
/// to know which characters beyond ASCII are printable. Pure.
namespace lpp::gotemplate {

/// No result is longer than this: the longest path has 4096 bytes.
inline constexpr std::size_t kMaxText = 64UL * 1024;

Result<std::string> sprintf(std::string_view format, std::span<const Value> values);
Result<std::string> sprint(std::span<const Value> values);
Result<std::string> sprintln(std::span<const Value> values);

}  // namespace lpp::gotemplate
