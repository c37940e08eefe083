#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "devcluster/apiserver/quantities.h"

/// Decisions about claims and volumes that need nothing but the objects. Pure functions.
namespace lpp::devcluster {

/// The claim's class: beta annotation, else spec.storageClassName, else "".
std::string_view class_of(const nlohmann::json& claim);

/// The class binds a claim only once a node is chosen for its first pod.
bool waits_for_consumer(const nlohmann::json& storage_class);

/// spec.claimRef names the claim, and its uid (if it has one) is the claim's.
bool refers_to(const nlohmann::json& volume, const nlohmann::json& claim);

/// An unclaimed volume that would do for the claim: class, size, access modes, mode, selector.
bool volume_fits(const nlohmann::json& volume, const nlohmann::json& claim);

/// Names of the claims that the pod's volumes use.
std::vector<std::string> claims_of(const nlohmann::json& pod);

/// The pod is Succeeded or Failed.
bool has_ended(const nlohmann::json& pod);

}  // namespace lpp::devcluster
