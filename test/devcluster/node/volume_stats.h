// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "devcluster/apiserver/registry.h"

namespace lpp::devcluster {

/// The folder of this machine that is at the path on a node; empty when there is none.
using PathOnNode = std::function<std::optional<std::string>(const std::string& path)>;

/// What a kubelet's /stats/summary says of the volumes of the pods that run on the node: of those
/// of type local, by statfs, as the kubelet measures them.
nlohmann::json stats_summary(const Registry& registry, const std::string& node,
                             const PathOnNode& resolve);

}  // namespace lpp::devcluster
