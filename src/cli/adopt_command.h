// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"

namespace lpp::cli {

/// `adopt`: makes a directory that is there the volume of a claim.
extern const Command kAdoptCommand;

}  // namespace lpp::cli
