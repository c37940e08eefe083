// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Flags: their tables, the way from a command line to values, and the part of the help that is
/// made from the tables. Nothing of Kubernetes. Pure functions; all text of the tables is static.
namespace lpp::flags {

/// What a shell can offer as a value, or as an argument, by asking the program.
enum class Values {
  kNone,
  kNamespaces,
  kClaims,
  kNodes,
  kProvisioners,
  kContexts,
  kClusters,
  kUsers
};

/// One flag as the command line, its variable and the help know it.
struct Flag {
  std::string_view name;
  char short_name = 0;               // 0 = none
  std::string_view placeholder{};    // what the help calls the value; "" = a boolean flag
  std::string_view env{};            // variable that is read when the flag is absent; "" = none
  std::string_view fallback{};       // value when neither is given
  std::string_view fallback_note{};  // shown in the help instead of the fallback
  std::string_view help{};
  std::string_view choices{};     // accepted values, separated by '|'; "" = not a choice
  Values values = Values::kNone;  // what completion offers from the cluster

  bool is_boolean() const { return placeholder.empty(); }
  bool is_file() const { return placeholder == "FILE"; }
};

struct FlagGroup {
  std::string_view title;
  std::span<const Flag> flags;
};

/// The flag of that name (long, or one short letter); nullptr if there is none.
const Flag* find_flag(std::span<const FlagGroup> groups, std::string_view name);

/// Help text of a group, and a text broken into lines of at most 96 columns.
void append_group(std::string& out, const FlagGroup& group);
void append_wrapped(std::string& out, std::string_view text, std::size_t indent);

/// What the help shows as the default; "" = nothing.
std::string_view shown_default(const Flag& flag);

using GetEnv = std::function<std::optional<std::string>(const std::string&)>;

}  // namespace lpp::flags
