#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lpp::app {

/// One flag as the command line, its variable and the help know it. All text is static.
struct Flag {
  std::string_view name;
  char short_name = 0;               // 0 = none
  std::string_view placeholder{};    // what the help calls the value; "" = a boolean flag
  std::string_view env{};            // variable that is read when the flag is absent; "" = none
  std::string_view fallback{};       // value when neither is given
  std::string_view fallback_note{};  // shown in the help instead of the fallback
  std::string_view help{};

  bool is_boolean() const { return placeholder.empty(); }
};

struct FlagGroup {
  std::string_view title;
  std::span<const Flag> flags;
};

/// Flags accepted before the command, and after it too.
const FlagGroup& global_flags();

/// The flags of `start`, by group, without the global ones.
std::span<const FlagGroup> start_flags();

/// The flag of that name (long, or one short letter); nullptr if there is none.
const Flag* find_flag(std::span<const FlagGroup> groups, std::string_view name);

/// The candidate that `name` was probably meant to be; "" when none is near.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

/// The whole help: of the program, and of `start`.
std::string program_help();
std::string start_help();

}  // namespace lpp::app
