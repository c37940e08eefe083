// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/context.h"

namespace lpp::cli {

/// A setting that is not a flag, for docs and checks. Static text.
struct Setting {
  std::string_view name;
  std::string_view fallback;  // "" = none
  std::string_view help;
};

/// The keys of config.json, by the object they stand in.
std::span<const Setting> config_keys();  // the whole
std::span<const Setting> class_keys();   // an entry of storageClassConfigs
std::span<const Setting> node_keys();    // an entry of nodePathMap

/// The parameters of StorageClasses.
std::span<const Setting> class_parameters();

/// `reference`, for scripts: every command, flag, key and parameter as Markdown, from the tables
/// that the program itself uses. docs/configure.md holds it.
extern const Command kReferenceCommand;

}  // namespace lpp::cli
