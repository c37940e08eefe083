// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "app/health_server.h"
#include "app/subjects.h"

namespace lpp::app {

/// A thread that does not get on for this long will not get on any more: steps and handlers end
/// within seconds, a watch that brings nothing within ten minutes.
inline constexpr std::chrono::minutes kStuckStep{5};
inline constexpr std::chrono::minutes kStuckHandler{1};
inline constexpr std::chrono::minutes kStuckInformer{15};

/// Whether a restart would help: a worker or an informer is stuck. Trouble of the API server is not
/// a reason. All from memory. What the subjects refer to must outlive the checks.
std::vector<HealthCheck> live_checks(const Subjects& subjects);

/// Whether the daemon can do its work: configuration in force, caches complete, nothing refuses us
/// the lease, and not stopping. A standby is ready.
std::vector<HealthCheck> ready_checks(const Subjects& subjects);

}  // namespace lpp::app
