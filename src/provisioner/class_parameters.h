// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "k8s/objects.h"
#include "operation/operation.h"
#include "provisioner/claim_refusal.h"

namespace lpp::provisioner {

/// The parameters quota, quotaInodes, reserve and overcommit of a StorageClass. Pure.
std::variant<operation::Limits, Refusal> limits_of(const k8s::StorageClass& storage_class);

/// Whether the class asks for these: what was begun under another class of its name may have
/// others. True of no class. Pure.
bool asks_for_limits(const k8s::StorageClass* storage_class, const operation::Limits& limits);

/// What becomes of a claim whose volume's node was deleted from the cluster.
struct OnNodeLost {
  bool release = false;                      // it is let go
  Duration after = std::chrono::minutes(5);  // that the node was seen to be gone
  bool operator==(const OnNodeLost&) const = default;
};
/// The parameters onNodeLost and onNodeLostAfter. Pure.
std::variant<OnNodeLost, Refusal> on_node_lost_of(const k8s::StorageClass& storage_class);

/// Which of a node's base paths a volume gets: the parameter pathSelection.
enum class PathSelection {
  kRandom,    // by the volume's name
  kMostFree,  // the one with the most space that is neither used nor promised
};
/// Pure.
std::variant<PathSelection, Refusal> path_selection_of(const k8s::StorageClass& storage_class);

/// Bytes of a file system of that size which `reserve` ("10Gi", "10%") keeps; nothing when it is
/// neither a size nor a share. Pure.
std::optional<std::int64_t> reserved_bytes(const std::string& reserve, std::int64_t size);

}  // namespace lpp::provisioner
