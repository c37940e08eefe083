// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "node/kernel.h"

namespace lpp::node {

/// "/dev/sdb1 (xfs, mounted at /data)". Pure.
std::string described(const Mount& mount);

/// Of a call to the quota of a file system: system_error(), with what can be done. `what` names the
/// mount, too.
Error quota_error(int error, const std::string& what);

/// kUnfit: why there are no limits on the mount, and the command that changes it. `counts`: what is
/// used is counted. Pure.
Error limits_are_off(const Mount& mount, bool counts);

}  // namespace lpp::node
