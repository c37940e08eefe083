// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/cluster.h"

namespace lpp::cli {

/// Asks each running pod of the daemon in that namespace for a JSON object of its health port,
/// through the API server. Those that do not lead know little or nothing. An error when none has
/// answered: kNotFound if there is no such pod; kForbidden ends it at once.
Result<void> ask_daemon_pods(Cluster& cluster, const std::string& ns, std::string_view path,
                             const std::function<void(const nlohmann::json& page)>& take);

}  // namespace lpp::cli
