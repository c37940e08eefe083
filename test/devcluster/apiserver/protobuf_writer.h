// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "devcluster/apiserver/registry.h"

/// Writing answers as Kubernetes' protobuf. The kinds that the daemon reads are written so:
/// persistent volumes and claims, storage classes, config maps and pods; besides, Status and the
/// metadata of any kind. Not in the table: field managers, volumes other than host paths and local
/// ones, and of pods probes, variables that take their value from elsewhere, projected, CSI and
/// ephemeral volumes, limits of emptyDir, affinity to pods, host aliases, DNS settings, topology
/// spread, gates, claims of resources and other rare members.
///
/// Pure functions. Objects are as a Registry stores them.
namespace lpp::devcluster {

inline constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";
inline constexpr std::string_view kProtobufWatchType =
    "application/vnd.kubernetes.protobuf;stream=watch";

/// Whether objects of this kind can be written at all.
bool is_written_as_protobuf(std::string_view kind);

/// The object in its envelope; nothing when it has a member that the table lacks, so that it has
/// to be sent as JSON.
std::optional<std::string> protobuf_object(const nlohmann::json& object);

/// A list of these items, likewise; `kind` is that of the items.
std::optional<std::string> protobuf_list(std::string_view kind, std::string_view api_version,
                                         const nlohmann::json& metadata,
                                         const std::vector<ObjectPtr>& items);

/// An event of a watch with its length before it. A watch cannot change its format in the middle:
/// members that the table lacks are left out.
std::string protobuf_frame(std::string_view type, const nlohmann::json& object);

}  // namespace lpp::devcluster
