#pragma once

#include "cli/context.h"

namespace lpp::cli {

/// `node make|remove|resize|usage|list|recover`: the work on this machine's disk, without a
/// cluster. Ends with 3 where trying again does not help, with 1 where it may.
extern const Command kNodeCommand;

/// What the program is called where it serves as setupCommand, teardownCommand and resizeCommand,
/// which have no room for the word `node`.
inline constexpr std::string_view kNodeProgram = "local-path-node";

}  // namespace lpp::cli
