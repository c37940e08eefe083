// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/probe_answers.h"
#include "app/subjects.h"

namespace lpp::app {

/// Every path that the daemon's health port answers: probes, and /metrics, /usage, /orphans and
/// /statusz as the options say. What the subjects refer to, and they, must outlive it.
HealthEndpoints health_endpoints(const Subjects& subjects);

}  // namespace lpp::app
