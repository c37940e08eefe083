// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

/// What clients ask before they ask for objects: discovery, version and OpenAPI. Pure functions of
/// the resource table.
namespace lpp::devcluster {

/// /version
nlohmann::json version_info(const std::string& git_version);

/// /api, /apis, /api/v1, /apis/<group>, /apis/<group>/v1; empty for any other path.
/// `aggregated` asks for APIGroupDiscoveryList (only /api and /apis have it).
std::optional<nlohmann::json> discovery(std::string_view path, bool aggregated);

/// /openapi/v3 and the documents below it, /openapi/v2; schemas keep unknown fields.
std::optional<nlohmann::json> openapi(std::string_view path, const std::string& git_version);

}  // namespace lpp::devcluster
