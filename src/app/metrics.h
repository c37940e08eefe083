// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/subjects.h"

namespace lpp::app {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// The text of /metrics, in Prometheus' exposition format. What is told is read from the parts when
/// it is asked for; between two questions metrics cost nothing. Thread-safe.
/// Names: the provision controller's (rule A10), client-go's (workqueue_*, rest_client_*,
/// reflector_*, leader_election_*), Prometheus' own (process_*); the rest begins with
/// local_path_provisioner_.
std::string metrics_text(const Subjects& subjects);

/// The same by topic.
std::string work_metrics(const Subjects& subjects);
std::string volume_metrics(const Subjects& subjects);
std::string usage_metrics(const Subjects& subjects);
std::string client_metrics(const Subjects& subjects);
std::string daemon_metrics(const Subjects& subjects);
std::string agent_metrics(const Subjects& subjects);
/// The process_* metrics of client libraries, from `proc` (a folder like /proc/self, and
/// /proc/stat next to it).
std::string process_metrics(const std::string& proc = "/proc");

}  // namespace lpp::app
