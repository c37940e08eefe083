// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flags/flag.h"

namespace lpp::flags {

/// Name of a flag argument without dashes and value; nullopt for anything else, "-" and "--" too.
std::optional<std::string_view> flag_name(std::string_view argument);

/// One argument in the one spelling that cxxopts is given: "--name" or "--name=value", several for
/// "-Ao=json". What is no flag stays as it is.
struct Spelling {
  std::vector<std::string> arguments{};
  bool value_follows = false;  // in the next argument, whatever that looks like
  bool known = true;           // false: it looks like a flag, and there is none of that name
};

/// Accepts what Go's flag packages and kubectl's accept: -name and --name with the value behind '='
/// or in the next argument; of a short name -n v, -nv, -n=v; several short ones, -Ao json. A
/// boolean flag has its value behind '=' only. Pure.
Spelling spell(std::string_view argument, std::span<const FlagGroup> groups);

}  // namespace lpp::flags
