// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flags/flag.h"

namespace lpp::flags {

/// What a command line said: values by long name, in order, and the words that are not flags.
struct Given {
  std::map<std::string_view, std::vector<std::string>> flags{};
  std::vector<std::string> words{};

  /// A boolean flag that was given and not switched off.
  bool asked_for(std::string_view name) const;
};

/// The flags of the groups and what else there is, in any order and spelling (spelling.h); "--"
/// ends the flags. A flag of a name that two groups have is the first one. kInvalid names the flag.
Result<Given> parse_flags(std::span<const std::string> arguments,
                          std::span<const FlagGroup> groups);

}  // namespace lpp::flags
