// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

/// Reading Kubernetes' protobuf: `kubectl create namespace` and other imperative commands send
/// their bodies so. Pure functions.
namespace lpp::devcluster {

/// The media type is application/vnd.kubernetes.protobuf.
bool is_protobuf(std::string_view media_type);

/// The object as JSON; empty for bytes that are malformed or of a kind that is not read so
/// (only namespaces, configmaps, secrets, service accounts and tokens, RBAC, services, deployments
/// and DeleteOptions are).
std::optional<nlohmann::json> decode_protobuf(std::string_view bytes);

}  // namespace lpp::devcluster
