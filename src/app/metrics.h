// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/collectable.h>

#include <memory>
#include <string>
#include <vector>

#include "app/subjects.h"

namespace lpp::app {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

/// The text of /metrics, in Prometheus' exposition format. What is told is read from the parts when
/// it is asked for; between two questions metrics cost nothing. Thread-safe.
/// Names: the provision controller's (behaviour rule A10), client-go's (workqueue_*, rest_client_*,
/// reflector_*, leader_election_*), Prometheus' own (process_*); the rest begins with
/// local_path_provisioner_.
class Metrics {
 public:
  /// What the subjects refer to must outlive this.
  explicit Metrics(const Subjects& subjects);

  std::string render() const;

 private:
  std::vector<std::unique_ptr<prometheus::Collectable>> collectors_{};
};

/// The collectors by topic, for Metrics and its tests.
std::unique_ptr<prometheus::Collectable> work_metrics(const Subjects& subjects);
std::unique_ptr<prometheus::Collectable> volume_metrics(const Subjects& subjects);
std::unique_ptr<prometheus::Collectable> usage_metrics(const Subjects& subjects);
std::unique_ptr<prometheus::Collectable> client_metrics(const Subjects& subjects);
std::unique_ptr<prometheus::Collectable> daemon_metrics(const Subjects& subjects);
std::unique_ptr<prometheus::Collectable> agent_metrics(const Subjects& subjects);
/// The process_* metrics of client libraries, from `proc` (a folder like /proc/self, and
/// /proc/stat next to it).
std::unique_ptr<prometheus::Collectable> process_metrics(std::string proc = "/proc");

}  // namespace lpp::app
