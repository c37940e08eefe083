// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lpp::testing {

// Where things are, asked here and nowhere else: what is compiled of the other files is then the
// same wherever the repository lies, and the compiler's cache knows it again. Pure.

/// A file of the repository, as in "deploy/local-path-storage.yaml"; "" is the repository itself.
std::string repository(const std::string& path = "");
/// What a file of the repository holds; "" when it cannot be read.
std::string repository_text(const std::string& path);
/// What this build has made, as in "src/local-path-provisioner".
std::string built(const std::string& path);

}  // namespace lpp::testing
