// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "operation/operation.h"

namespace lpp::testing {

/// Every member, to compare whole operations: one that is added has to be named here.
inline auto members(const operation::Operation& operation) {
  const auto& [kind, volume, claim, owner, claim_uid, attempt, storage_class, node, shared, base,
               path, size, mode, user, group, perm, limits, require_mount, disk, only_if_empty,
               shape] = operation;
  return std::make_tuple(kind, volume, claim, owner, claim_uid, attempt, storage_class, node,
                         shared, base, path, size, mode, user, group, perm, limits.hard,
                         limits.inodes, limits.reserve, limits.overcommit, require_mount, disk,
                         only_if_empty, shape);
}

inline bool same(const operation::Operation& a, const operation::Operation& b) {
  return members(a) == members(b);
}

}  // namespace lpp::testing
