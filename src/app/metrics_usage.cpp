// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "app/measured_volumes.h"
#include "app/metric_family.h"
#include "app/metrics.h"

// The kubelet's names with our prefix: kubelet_volume_stats_* are of volumes that a pod uses, these
// of all that agents measure, and of what helper pods have told within the hour.

namespace lpp::app {

namespace {

using Family = MetricFamily;

/// Volumes that are told; beyond it the fullest ones.
constexpr std::size_t kMaxVolumes = 2000;

}  // namespace

std::string usage_metrics(const Subjects& subjects) {
  auto used = Family::gauge("local_path_provisioner_volume_stats_used_bytes",
                            "What a volume with a limit takes up, used by a pod or not, as its "
                            "node's agent measures it or its last helper pod has told.");
  auto capacity = Family::gauge("local_path_provisioner_volume_stats_capacity_bytes", "Its limit.");
  auto available = Family::gauge("local_path_provisioner_volume_stats_available_bytes",
                                 "What is left of the limit.");
  auto inodes_used = Family::gauge("local_path_provisioner_volume_stats_inodes_used",
                                   "Its files and directories.");
  auto inodes = Family::gauge("local_path_provisioner_volume_stats_inodes",
                              "How many of them it may have, if that is limited.");
  auto told = Family::gauge("local_path_provisioner_volume_stats_told_timestamp_seconds",
                            "When its last helper pod has told it, where no agent measures it.");
  const AgentsSubject agents = subjects.agents ? subjects.agents() : AgentsSubject();
  for (const auto& one : measured_volumes(subjects, agents, kMaxVolumes)) {
    const Family::Labels labels{{"namespace", one.claim.ns},
                                {"persistentvolumeclaim", one.claim.name},
                                {"node", one.node},
                                {"class", one.storage_class}};
    const auto& usage = one.usage;
    used.add(labels, static_cast<double>(usage.bytes));
    if (usage.limit_bytes > 0) {
      capacity.add(labels, static_cast<double>(usage.limit_bytes));
      const auto left = std::max<std::int64_t>(0, usage.limit_bytes - usage.bytes);
      available.add(labels, static_cast<double>(left));
    }
    if (usage.inodes) inodes_used.add(labels, static_cast<double>(*usage.inodes));
    if (usage.limit_inodes > 0) inodes.add(labels, static_cast<double>(usage.limit_inodes));
    if (one.told_at) {
      const std::chrono::duration<double> at = one.told_at->time_since_epoch();
      told.add(labels, at.count());
    }
  }
  return used.text() + capacity.text() + available.text() + inodes_used.text() + inodes.text() +
         told.text();
}

}  // namespace lpp::app
