// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "config/config.h"
#include "k8s/objects.h"
#include "operation/operation.h"
#include "provisioner/claim_refusal.h"

namespace lpp::provisioner {

/// By what a volume is tied to the node: the label's value, where it has none the node's name.
std::string affinity_value_of(const k8s::Node& node, const std::string& key);

/// Ties a volume that is to be to its node by the labels that the node has now.
std::optional<Refusal> tie_to(const k8s::Node& node, operation::Shape& shape);

/// What of a claim's volume does not depend on where its directory is. Everything that can be
/// checked beforehand is checked here and in make_operation (plan.h), so that what can never work
/// is refused before any operation begins (rules B3, B5). `node` is the selected node, nullptr when
/// the claim has none. Pure, like make_operation.
std::variant<operation::Shape, Refusal> make_shape(const k8s::PersistentVolumeClaim& claim,
                                                   const k8s::StorageClass& storage_class,
                                                   const k8s::Node* node,
                                                   const config::Config& config);

}  // namespace lpp::provisioner
