// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/cluster.h"
#include "cli/volume_rows.h"

namespace lpp::cli {

/// What the claims on a node take up, from the kubelet's summary of its statistics
/// (/stats/summary). Only volumes that a pod has mounted are in it; what cannot be read is left
/// out. Pure: the answer may hold anything.
std::unordered_map<k8s::ObjectKey, VolumeUsage> usage_in(const nlohmann::json& summary);

/// Asks the kubelets, through the API server, how full the volumes with a limit are, and writes it
/// into their rows: of each node once, some at a time. Of a volume without a limit a kubelet knows
/// the whole disk only. What could not be asked is said in the notes.
void add_usage(Cluster& cluster, std::vector<VolumeRow>& rows, std::vector<std::string>& notes);

}  // namespace lpp::cli
