// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "devcluster/apiserver/quantities.h"

/// Decisions about claims and volumes that need nothing but the objects. Pure functions.
namespace lpp::devcluster {

/// The claim's class: beta annotation, else spec.storageClassName, else "".
std::string class_of(const nlohmann::json& claim);

/// The class binds a claim only once a node is chosen for its first pod.
bool waits_for_consumer(const nlohmann::json& storage_class);

/// spec.claimRef names the claim, and its uid (if it has one) is the claim's.
bool refers_to(const nlohmann::json& volume, const nlohmann::json& claim);

/// An unclaimed volume that would do for the claim: class, size, access modes, mode, selector.
bool volume_fits(const nlohmann::json& volume, const nlohmann::json& claim);

/// What the scheduler asks before it chooses a node for a claim without a volume. Only a class
/// whose provisioner has a CSIDriver (nullptr: it has none) with storageCapacity is asked: then an
/// object of `capacities` must have room on the node.
bool has_enough_room(const nlohmann::json& claim, const nlohmann::json& node,
                     const nlohmann::json* driver,
                     const std::vector<std::shared_ptr<const nlohmann::json>>& capacities);

/// Names of the claims that the pod's volumes use.
std::vector<std::string> claims_of(const nlohmann::json& pod);

/// The pod is Succeeded or Failed.
bool has_ended(const nlohmann::json& pod);

}  // namespace lpp::devcluster
