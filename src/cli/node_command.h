// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.h"

namespace lpp::cli {

/// `node make|remove|resize|usage|list|recover`: the work on this machine's disk, without a
/// cluster. Ends with 3 where trying again does not help, with 4 where a make has to
/// go elsewhere, with 1 where trying again may help.
extern const Command kNodeCommand;

}  // namespace lpp::cli
