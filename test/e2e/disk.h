// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/file_text.h"

namespace lpp::testing {

/// What is on the node's disk, which is this machine's. Plain functions for tests.

void write_text(const std::string& file, const std::string& text);

/// "0750 1000:1000", or why it is not known.
std::string mode_and_owner(const std::string& path);

/// Everything at and below a folder, one line for each entry in the order of their names: kind,
/// mode, owner, time of the last change, and contents or what a link points to. Links are not
/// followed. Two equal texts mean that nothing was touched.
std::string tree_of(const std::string& root);

}  // namespace lpp::testing
