// SPDX-License-Identifier: Apache-2.0
#include "operation/operation.h"

#include <fmt/format.h>

namespace lpp::operation {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kMake: return "make";
    case Kind::kTakeBack: return "take back";
    case Kind::kRemove: return "remove";
    case Kind::kResize: break;
  }
  return "resize";
}

std::string_view label_of(Kind kind) {
  switch (kind) {
    case Kind::kMake: return "provision";
    case Kind::kTakeBack: return "undo";
    case Kind::kRemove: return "delete";
    case Kind::kResize: break;
  }
  return "resize";
}

std::string_view script_action(Kind kind) {
  switch (kind) {
    case Kind::kMake: return "create";
    case Kind::kResize: return "resize";
    case Kind::kTakeBack:
    case Kind::kRemove: break;
  }
  return "delete";
}

std::string what_is_missing(const Operation& operation, const Kept& kept) {
  if (operation.require_mount && operation.kind == Kind::kMake && !kept.mount) {
    return "requireMount in config.json: what works on the node does not say that the base path is "
           "a mount point; local-path-node does, as setupCommand and teardownCommand";
  }
  const Limits& limits = operation.limits;
  const auto missing = [](std::string_view parameter, std::string_view what) {
    return fmt::format(
        "parameter {} of the StorageClass: what works on the node does not say that {}; "
        "local-path-node does, as setupCommand and resizeCommand",
        parameter, what);
  };
  if (limits.hard && kept.size != true) return missing("quota", "the directory has its limit");
  if (limits.hard && kept.bytes != 0) {
    if (kept.bytes < operation.size_bytes) {
      return fmt::format("the directory was given a limit of {} bytes, and {} were asked for",
                         kept.bytes, operation.size_bytes);
    }
    // What grows keeps more, if it was given more by hand.
    const bool may_be_more = operation.kind == Kind::kResize;
    const bool is_more = kept.inodes == 0 || (kept.inodes > limits.inodes && !may_be_more);
    if (limits.inodes != 0 && is_more) {
      return missing("quotaInodes", "the number of its files has this limit");
    }
  }
  if (!limits.reserve.empty() && !kept.reserve) return missing("reserve", "it is kept free");
  if (!limits.overcommit && !kept.overcommit) {
    return missing("overcommit", "the sizes promised fit");
  }
  return {};
}

bool same_work(const Operation& a, const Operation& b) {
  // Who does not know it says nothing against it.
  const bool one_claim = a.claim_uid.empty() || b.claim_uid.empty() || a.claim_uid == b.claim_uid;
  const bool has_size = a.kind == Kind::kMake || a.kind == Kind::kResize;
  return a.id() == b.id() && a.node == b.node && a.path == b.path && a.base_path == b.base_path &&
         one_claim && (!has_size || a.size_bytes == b.size_bytes);
}

bool same_place(const Operation& a, const Operation& b) {
  const bool any_node = a.node.empty() || b.node.empty() || (a.shared && b.shared);
  return (any_node || a.node == b.node) && a.path == b.path;
}

}  // namespace lpp::operation
