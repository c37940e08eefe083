// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.h"

namespace lpp::cli {

/// `volumes`: the table of our volumes, or all about the claims that are named.
extern const Command kVolumesCommand;

}  // namespace lpp::cli
