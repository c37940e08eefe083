// SPDX-License-Identifier: Apache-2.0
#include "flags/spelling.h"

namespace lpp::flags {

namespace {

std::string long_form(const Flag& flag) { return "--" + std::string(flag.name); }

Spelling unknown(std::string_view argument) {
  return {.arguments = {std::string(argument)}, .known = false};
}

/// "-Ao=json": short names, the last one with its value behind it.
Spelling spell_short(std::string_view argument, std::span<const FlagGroup> groups) {
  Spelling out;
  std::string_view letters = argument.substr(1);
  while (!letters.empty()) {
    const Flag* const flag = find_flag(groups, letters.substr(0, 1));
    if (flag == nullptr) return unknown(argument);
    letters.remove_prefix(1);
    const bool equals = letters.starts_with('=');
    if (equals || (!flag->is_boolean() && !letters.empty())) {
      if (equals) letters.remove_prefix(1);
      out.arguments.push_back(long_form(*flag) + "=" + std::string(letters));
      return out;
    }
    out.arguments.push_back(long_form(*flag));
    out.value_follows = !flag->is_boolean();
  }
  return out;
}

}  // namespace

std::optional<std::string_view> flag_name(std::string_view argument) {
  if (argument.size() < 2 || argument.front() != '-' || argument == "--") return std::nullopt;
  argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
  return argument.substr(0, argument.find('='));
}

Spelling spell(std::string_view argument, std::span<const FlagGroup> groups) {
  const auto name = flag_name(argument);
  if (!name) return {.arguments = {std::string(argument)}};
  if (const Flag* const flag = find_flag(groups, *name)) {
    const auto equals = argument.find('=');
    const bool has_value = equals != std::string_view::npos;
    return {.arguments = {long_form(*flag) +
                          std::string(has_value ? argument.substr(equals) : std::string_view())},
            .value_follows = !has_value && !flag->is_boolean()};
  }
  return argument.starts_with("--") ? unknown(argument) : spell_short(argument, groups);
}

}  // namespace lpp::flags
