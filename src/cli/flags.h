#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Flags of commands: their tables, the parser, and the part of the help that is made from them.
/// Pure functions; all text of the tables is static.
namespace lpp::cli {

/// One flag as the command line, its variable and the help know it.
struct Flag {
  std::string_view name;
  char short_name = 0;               // 0 = none
  std::string_view placeholder{};    // what the help calls the value; "" = a boolean flag
  std::string_view env{};            // variable that is read when the flag is absent; "" = none
  std::string_view fallback{};       // value when neither is given
  std::string_view fallback_note{};  // shown in the help instead of the fallback
  std::string_view help{};
  std::string_view choices{};  // accepted values, separated by '|'; "" = not a choice

  bool is_boolean() const { return placeholder.empty(); }
  bool is_file() const { return placeholder == "FILE"; }
};

struct FlagGroup {
  std::string_view title;
  std::span<const Flag> flags;
};

/// The flag of that name (long, or one short letter); nullptr if there is none.
const Flag* find_flag(std::span<const FlagGroup> groups, std::string_view name);

/// The candidate that `name` was probably meant to be; "" when none is near.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

/// Name of a flag argument without dashes and value; nullopt for anything else.
std::optional<std::string_view> flag_name(std::string_view argument);

/// What a command line said: values by long name, in order, and the words that are not flags.
struct Given {
  std::map<std::string_view, std::vector<std::string>> flags{};
  std::vector<std::string> words{};

  /// A boolean flag that was given and not switched off.
  bool asked_for(std::string_view name) const;
};

/// The flags of the groups and what else there is, in any order; "--" ends the flags. Accepts
/// --f v, --f=v, -f v and -f=v; a boolean flag takes a value only by '='. kInvalid names the flag.
Result<Given> parse_flags(std::span<const std::string> arguments,
                          std::span<const FlagGroup> groups);

/// Help text of a group, and a text broken into lines of at most 96 columns.
void append_group(std::string& out, const FlagGroup& group);
void append_wrapped(std::string& out, std::string_view text, std::size_t indent);

/// What the help shows as the default; "" = nothing.
std::string_view shown_default(const Flag& flag);

using GetEnv = std::function<std::optional<std::string>(const std::string&)>;

}  // namespace lpp::cli
