// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "node/kernel.h"

namespace lpp::node {

/// Volumes are open to every user, as pods run as any: what keeps the other users of the node out
/// is the base directory. It is closed only if it is empty when it gets its first volume. "" = it
/// is closed; else what to tell of it. `base`: a descriptor; `shown`: its path, for people. Errors
/// are those of the system calls. Thread-safe, as its neighbour.
Result<std::string> why_base_is_open(Kernel& kernel, int base, const std::string& shown);

/// Whether it has no volumes yet.
Result<bool> is_first_volume(Kernel& kernel, int base);

}  // namespace lpp::node
