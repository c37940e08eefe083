// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
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

/// What volumes take up, by their names, from what the daemon knows of its agents (/usage). Pure.
std::unordered_map<std::string, VolumeUsage> daemon_usage_in(const nlohmann::json& page);

/// The nodes with an agent, from the same. Pure.
std::set<std::string> nodes_with_agent_in(const nlohmann::json& page);

/// Asks how full the volumes with a limit are, and writes it into their rows: first the daemon's
/// pods, which know it of nodes with agents, and which nodes these are (the rows' executor),
/// through the API server; who may not ask them, or gets no answer, hears nothing of that. Then, of
/// the volumes that are left, the kubelets: of each node once, some at a time. Of a volume without
/// a limit a kubelet knows the whole disk only. What the kubelets could not be asked is said in the
/// notes.
void add_usage(Cluster& cluster, const Installation& installation, std::vector<VolumeRow>& rows,
               std::vector<std::string>& notes);

}  // namespace lpp::cli
