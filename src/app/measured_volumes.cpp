// SPDX-License-Identifier: Apache-2.0
#include "app/measured_volumes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "provisioner/volume_node.h"
#include "provisioner/volume_rules.h"

namespace lpp::app {

namespace {

double share_of(const MeasuredVolume& one) {
  const auto& usage = one.usage;
  return usage.limit_bytes > 0
             ? static_cast<double>(usage.bytes) / static_cast<double>(usage.limit_bytes)
             : 0;
}

}  // namespace

std::vector<MeasuredVolume> measured_volumes(const Subjects& subjects, const AgentsSubject& agents,
                                             std::size_t most) {
  struct Known {
    operation::Usage usage{};
    std::optional<std::chrono::system_clock::time_point> told_at{};
  };
  std::map<std::pair<std::string, std::string>, Known> usages;  // by node and path
  for (const auto& entry : agents.usage) {
    usages.emplace(std::pair(entry.node, entry.path), Known{.usage = entry.usage});
  }
  for (const auto& entry : subjects.uses.all()) {
    usages.emplace(std::pair(entry.node, entry.path),
                   Known{.usage = entry.usage, .told_at = entry.at});
  }
  std::vector<MeasuredVolume> all;
  if (usages.empty()) return all;
  for (const auto& volume : subjects.volumes.list()) {
    // The claim of one that is not bound may be gone, and another one of its name be there.
    if (volume->phase != "Bound" ||
        !provisioner::is_ours(*volume, subjects.options.served_names())) {
      continue;
    }
    std::string node = provisioner::node_of(*volume, subjects.nodes).name;
    const auto found = usages.find({node, volume->path});
    if (found == usages.end()) continue;
    all.push_back({.claim = volume->claim,
                   .volume = volume->meta.name,
                   .node = std::move(node),
                   .storage_class = volume->storage_class_name,
                   .usage = found->second.usage,
                   .told_at = found->second.told_at});
  }
  if (all.size() > most) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(all.begin(), end, all.end(),
                     [](const auto& a, const auto& b) { return share_of(a) > share_of(b); });
    all.erase(end, all.end());
  }
  return all;
}

std::string usage_page(const Subjects& subjects) {
  constexpr std::size_t kMost = 5000;
  const AgentsSubject seen = subjects.agents ? subjects.agents() : AgentsSubject();
  nlohmann::json volumes = nlohmann::json::array();
  for (const auto& one : measured_volumes(subjects, seen, kMost)) {
    nlohmann::json& volume = volumes.emplace_back(
        nlohmann::json{{"volume", one.volume}, {"node", one.node}, {"usedBytes", one.usage.bytes}});
    if (one.usage.limit_bytes > 0) volume["capacityBytes"] = one.usage.limit_bytes;
    if (one.usage.inodes) volume["inodesUsed"] = *one.usage.inodes;
    if (one.usage.limit_inodes > 0) volume["inodes"] = one.usage.limit_inodes;
    if (one.told_at) volume["toldAt"] = format_rfc3339(*one.told_at);
  }
  nlohmann::json agents = nlohmann::json::array();
  for (const auto& one : seen.agents) {
    if (one.presence != agent::Presence::kAbsent) agents.push_back({{"node", one.node}});
  }
  return nlohmann::json{{"volumes", std::move(volumes)}, {"agents", std::move(agents)}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lpp::app
