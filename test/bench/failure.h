// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "bench/load.h"
#include "k8s/api_client.h"

namespace lpp::bench {

/// Creates one claim on nodes whose pods fail, and reports in seconds after its creation: when its
/// helper pod had failed, and when the first Warning Event about the claim was there. The claim
/// stays.
Result<nlohmann::json> measure_failure(k8s::ApiClient& client, Clock& clock,
                                       const LoadOptions& options);

}  // namespace lpp::bench
