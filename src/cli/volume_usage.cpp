// SPDX-License-Identifier: Apache-2.0
#include "cli/volume_usage.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/strings.h"
#include "cli/daemon_pages.h"
#include "k8s/json_access.h"

namespace lpp::cli {

using k8s::member, k8s::text;

namespace {

constexpr std::chrono::seconds kKubeletPatience{5};  // for each node
constexpr std::size_t kAtOnce = 8;

std::optional<std::uint64_t> count_of(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = member(object, name);
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

std::optional<VolumeUsage> usage_of(const nlohmann::json& volume) {
  const auto used = count_of(volume, "usedBytes");
  const auto capacity = count_of(volume, "capacityBytes");
  if (!used || !capacity || *capacity == 0) return std::nullopt;
  // btrfs counts no inodes, and shows the whole file system as the capacity of each directory.
  const auto inodes = count_of(volume, "inodes");
  if (inodes && *inodes == 0) return std::nullopt;
  return VolumeUsage{.used_bytes = *used,
                     .capacity_bytes = *capacity,
                     .used_inodes = count_of(volume, "inodesUsed").value_or(0),
                     .inodes = inodes.value_or(0),
                     .told_at = text(volume, "toldAt")};
}

/// A volume that was given a limit by hand does not show it.
bool may_be_measured(const VolumeRow& row) {
  return !row.node.empty() && !row.volume.empty() && row.phase == "Bound";
}

/// What a kubelet knows is newer than what a helper pod has told, which is of limits only: of a
/// directory without one the kubelet tells the whole disk.
bool wants_usage(const VolumeRow& row) {
  return may_be_measured(row) && (row.usage ? !row.usage->told_at.empty() : row.limited);
}

/// Who may not ask, or gets no answer, hears nothing of that.
void ask_daemon(Cluster& cluster, const std::string& ns, std::vector<VolumeRow>& rows) {
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return !row.node.empty(); })) {
    return;
  }
  std::set<std::string> nodes;
  (void)ask_daemon_pods(cluster, ns, "/usage", [&](const nlohmann::json& page) {
    nodes.merge(nodes_with_agent_in(page));
    const auto usages = daemon_usage_in(page);
    for (VolumeRow& row : rows) {
      const auto found = usages.find(row.volume);
      if (may_be_measured(row) && found != usages.end()) row.usage = found->second;
    }
  });
  if (nodes.empty()) return;
  for (VolumeRow& row : rows) {
    if (!row.node.empty()) row.executor = nodes.contains(row.node) ? "agent" : "helper pods";
  }
}

/// A node tells of its own volumes only.
void fill_in(const std::string& node, const std::unordered_map<k8s::ObjectKey, VolumeUsage>& usages,
             std::vector<VolumeRow>& rows) {
  for (VolumeRow& row : rows) {
    if (!wants_usage(row) || row.node != node) continue;
    const auto found = usages.find(row.claim);
    if (found != usages.end()) row.usage = found->second;
  }
}

}  // namespace

std::unordered_map<k8s::ObjectKey, VolumeUsage> usage_in(const nlohmann::json& summary) {
  std::unordered_map<k8s::ObjectKey, VolumeUsage> all;
  for (const auto& pod : member(summary, "pods")) {
    for (const auto& volume : member(pod, "volume")) {
      const auto& reference = member(volume, "pvcRef");
      const k8s::ObjectKey claim{text(reference, "namespace"), text(reference, "name")};
      if (claim.name.empty()) continue;
      if (const auto usage = usage_of(volume)) all[claim] = *usage;
    }
  }
  return all;
}

std::unordered_map<std::string, VolumeUsage> daemon_usage_in(const nlohmann::json& page) {
  std::unordered_map<std::string, VolumeUsage> all;
  for (const auto& volume : member(page, "volumes")) {
    const std::string name = text(volume, "volume");
    if (name.empty()) continue;
    if (const auto usage = usage_of(volume)) all[name] = *usage;
  }
  return all;
}

std::set<std::string> nodes_with_agent_in(const nlohmann::json& page) {
  std::set<std::string> nodes;
  for (const auto& one : member(page, "agents")) {
    if (std::string node = text(one, "node"); !node.empty()) nodes.insert(std::move(node));
  }
  return nodes;
}

void add_usage(Cluster& cluster, const Installation& installation, std::vector<VolumeRow>& rows,
               std::vector<std::string>& notes) {
  ask_daemon(cluster, installation.daemon_ns, rows);
  std::set<std::string> wanted;
  for (const VolumeRow& row : rows) {
    if (wants_usage(row)) wanted.insert(row.node);
  }
  if (wanted.empty()) return;
  const std::vector<std::string> nodes(wanted.begin(), wanted.end());
  using Answer = Result<std::unordered_map<k8s::ObjectKey, VolumeUsage>>;
  std::vector<std::optional<Answer>> answers(nodes.size());
  k8s::ApiClient client =
      cluster.api().with({.call_timeout = std::min<std::chrono::milliseconds>(
                              cluster.patience(kKubeletPatience), kKubeletPatience)});
  std::atomic<std::size_t> next = 0;
  const auto ask = [&] {
    for (std::size_t i = next++; i < nodes.size(); i = next++) {
      const auto summary = client.kubelet_summary(nodes[i]);
      answers[i] = summary.ok() ? Answer(usage_in(*summary)) : Answer(summary.error());
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(kAtOnce, nodes.size()); ++i) {
      helpers.emplace_back([&ask] {
        set_thread_name("usage");
        ask();
      });
    }
    ask();
  }
  bool is_forbidden = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Answer& answer = *answers[i];
    if (answer.ok()) {
      fill_in(nodes[i], *answer, rows);
    } else if (answer.error().is(ErrorCode::kForbidden)) {
      is_forbidden = true;
    } else {
      notes.push_back("how full volumes on node " + nodes[i] +
                      " are is not known: " + answer.error().message);
    }
  }
  if (is_forbidden) {
    notes.emplace_back(
        "how full volumes are is not shown: that needs the permission to get nodes/proxy");
  }
}

}  // namespace lpp::cli
