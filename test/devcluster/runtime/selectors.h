// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

/// Matching of nodes, as the scheduler and the kubelet do it. Pure functions.
namespace lpp::devcluster {

/// A NodeSelector (nodeSelectorTerms with matchExpressions and matchFields) against a Node.
bool node_selector_matches(const nlohmann::json& selector, const nlohmann::json& node);

/// All of the object's key/value pairs are labels of the node.
bool labels_match(const nlohmann::json& wanted, const nlohmann::json& node);

/// A LabelSelector (matchLabels, matchExpressions) against an object's labels; an empty selector
/// matches everything.
bool label_selector_matches(const nlohmann::json& selector, const nlohmann::json& object);

/// The pod tolerates every taint of the node that keeps new pods away (NoSchedule, NoExecute).
bool tolerates_taints(const nlohmann::json& pod, const nlohmann::json& node);

}  // namespace lpp::devcluster
