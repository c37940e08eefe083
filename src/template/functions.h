// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "template/value.h"

namespace lpp::gotemplate {

/// Number and types of a function's arguments. `fixed` ones come first; a variadic function takes
/// any number more.
struct Signature {
  std::string_view name;
  std::size_t fixed = 0;
  bool variadic = false;
  bool format_first = false;  // the first argument must be a string
};

/// The functions of text/template; nullptr when there is none of that name.
const Signature* find_function(std::string_view name);
inline bool is_function(std::string_view name) { return find_function(name) != nullptr; }

/// Whether the function's result holds the text of its arguments.
bool prints(std::string_view name);

/// Calls a function other than "and", "or" and "call" with arguments that fit its signature.
/// kInvalid with Go's message. Pure.
Result<Value> call_function(std::string_view name, std::span<const Value> arguments);

}  // namespace lpp::gotemplate
