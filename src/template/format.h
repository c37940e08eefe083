// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "template/value.h"

/// What Go's fmt makes of the values of a template, as far as it can be part of a name: the verbs
/// %s %v %d %q %x %t %c and %%, with flags, width and precision, and [n] before the verb. kInvalid
/// for all else: other verbs, a verb that does not fit its value, a value without verb or a verb
/// without value, structures, and what needs to know which characters beyond ASCII are printable.
/// Pure.
namespace lpp::gotemplate {

/// No result is longer than this: the longest path has 4096 bytes.
inline constexpr std::size_t kMaxText = 64UL * 1024;

/// Whether sprintf knows all that is in the format; what it is given is not known yet.
Result<void> check_format(std::string_view format);

Result<std::string> sprintf(std::string_view format, std::span<const Value> values);
Result<std::string> sprint(std::span<const Value> values);
Result<std::string> sprintln(std::span<const Value> values);

}  // namespace lpp::gotemplate
