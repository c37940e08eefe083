// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "operation/executor.h"

namespace lpp::testing {

/// Does the operation's work in `root`, a folder that stands for the disk of its node, now and in
/// this process: makes the directory, or removes it with the folders above it that are empty then,
/// up to the base path. No symbolic link is followed on the way or below. The error says why it
/// could not be done.
Result<operation::Directory> work_on_directory(const std::string& root,
                                               const operation::Operation& operation);

}  // namespace lpp::testing
