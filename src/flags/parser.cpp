// SPDX-License-Identifier: Apache-2.0
#include "flags/parser.h"

#include <cxxopts.hpp>
#include <set>

#include "base/log.h"
#include "flags/flag_values.h"
#include "flags/spelling.h"
#include "text/edit_distance.h"

namespace lpp::flags {

namespace {

/// The command line as cxxopts is given it.
struct Spelled {
  std::vector<std::string> arguments{};
  std::string unknown{};  // the first that looks like a flag and is none
};

Spelled spell_all(std::span<const std::string> arguments, std::span<const FlagGroup> groups) {
  Spelled out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") {
      out.arguments.insert(out.arguments.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                           arguments.end());
      break;
    }
    Spelling one = spell(arguments[i], groups);
    if (!one.known && out.unknown.empty()) out.unknown = arguments[i];
    out.arguments.insert(out.arguments.end(), one.arguments.begin(), one.arguments.end());
    if (one.value_follows && i + 1 < arguments.size()) out.arguments.push_back(arguments[++i]);
  }
  return out;
}

/// Every value is text to cxxopts: it is FlagReader that knows Go's numbers, durations and
/// booleans, the variables and the defaults.
cxxopts::Options options_of(std::span<const FlagGroup> groups) {
  cxxopts::Options options("");
  auto add = options.add_options();
  std::set<std::string_view> names;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (!names.insert(flag.name).second) continue;
      auto value = cxxopts::value<std::string>();
      if (flag.is_boolean()) value->implicit_value("true");
      add(std::string(flag.name), "", value);
    }
  }
  return options;
}

Error unknown_flag(std::string_view argument, std::span<const FlagGroup> groups) {
  std::vector<std::string_view> names;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) names.push_back(flag.name);
  }
  const std::string_view guess = text::nearest(flag_name(argument).value_or(""), names);
  return invalid(fmt::format("unknown flag {}{}", argument.substr(0, argument.find('=')),
                             guess.empty() ? "" : fmt::format("; did you mean --{}?", guess)));
}

Error needs_value(std::string_view argument, std::span<const FlagGroup> groups) {
  const Flag* const flag = find_flag(groups, flag_name(argument).value_or(""));
  if (flag == nullptr) return invalid(fmt::format("{} needs a value", argument));
  return invalid(fmt::format("--{0} needs a value: --{0} {1}", flag->name, flag->placeholder));
}

}  // namespace

bool Given::asked_for(std::string_view name) const {
  const auto it = flags.find(name);
  return it != flags.end() && parse_go_bool(it->second.back()).value_or(true);
}

Result<Given> parse_flags(std::span<const std::string> arguments,
                          std::span<const FlagGroup> groups) {
  const Spelled spelled = spell_all(arguments, groups);
  std::vector<const char*> argv{""};  // cxxopts passes the program's name over
  for (const std::string& argument : spelled.arguments) argv.push_back(argument.c_str());
  Given given;
  try {
    auto options = options_of(groups);
    const auto parsed = options.parse(static_cast<int>(argv.size()), argv.data());
    for (const auto& argument : parsed.arguments()) {
      given.flags[find_flag(groups, argument.key())->name].push_back(argument.value());
    }
    given.words = parsed.unmatched();
  } catch (const cxxopts::exceptions::missing_argument&) {
    return needs_value(spelled.arguments.back(), groups);
  } catch (const cxxopts::exceptions::exception& e) {
    if (spelled.unknown.empty()) return invalid(e.what());
    return unknown_flag(spelled.unknown, groups);
  }
  return given;
}

}  // namespace lpp::flags
