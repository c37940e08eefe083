// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "app/metric_family.h"
#include "app/metrics.h"
#include "k8s/quantity.h"
#include "provisioner/volume_node.h"
#include "provisioner/volume_rules.h"

// What is where: from the caches and from what helper pods have told, without a request.

namespace lpp::app {

namespace {

using Family = MetricFamily;

/// Series of each metric; beyond it the node is "other".
constexpr std::size_t kMaxSeries = 2000;
constexpr const char* kOther = "other";

struct Place {
  std::string node{};
  std::string base_path{};
  bool operator<(const Place& other) const {
    return std::tie(node, base_path) < std::tie(other.node, other.base_path);
  }
};
struct Group {
  Place place{};
  std::string storage_class{};
  bool operator<(const Group& other) const {
    return std::tie(place, storage_class) < std::tie(other.place, other.storage_class);
  }
};
struct Sum {
  std::size_t volumes = 0;
  double bytes = 0;
};

std::map<Group, Sum> groups_of(const Subjects& subjects) {
  std::map<Group, Sum> groups;
  const auto config = subjects.config.config().current();
  for (const auto& volume : subjects.volumes.list()) {
    if (!provisioner::is_ours(*volume, subjects.options.served_names())) continue;
    Group group{.place = {.node = provisioner::node_of(*volume, subjects.nodes).name},
                .storage_class = volume->storage_class_name};
    if (config != nullptr) {
      group.place.base_path = provisioner::base_path_of(group.place.node, volume->path, *config);
    }
    if (groups.size() >= kMaxSeries && !groups.contains(group)) {
      group = {.place = {.node = kOther}, .storage_class = kOther};
    }
    Sum& sum = groups[std::move(group)];
    ++sum.volumes;
    const auto size = k8s::Quantity::parse(volume->capacity);
    if (size.ok()) sum.bytes += static_cast<double>(size->value());
  }
  return groups;
}

Family::Labels labels_of(const Place& place) {
  return {{"node", place.node}, {"path", place.base_path}};
}

/// Nodes that are there, with volumes, and without an agent that this process could give work.
void add_agentless(const Subjects& subjects, const std::map<Group, Sum>& groups, std::string& out) {
  const AgentsSubject agents = subjects.agents();
  if (!agents.leads) return;
  std::set<std::string> connected;
  for (const auto& one : agents.agents) {
    if (one.presence == agent::Presence::kConnected) connected.insert(one.node);
  }
  std::map<std::string, std::size_t> volumes;
  for (const auto& [group, sum] : groups) {
    const std::string& node = group.place.node;
    if (connected.contains(node) || subjects.nodes.get({"", node}) == nullptr) continue;
    volumes[node] += sum.volumes;
  }
  auto family = Family::gauge("local_path_provisioner_volumes_without_agent",
                              "PersistentVolumes on nodes whose agent is not connected. Only the "
                              "process that serves claims tells it.");
  for (const auto& [node, count] : volumes)
    family.add({{"node", node}}, static_cast<double>(count));
  out += family.text();
}

void add_capacities(const provisioner::CapacityPublisher::Stats& stats, std::string& out) {
  out += Family::gauge("local_path_provisioner_capacity_objects",
                       "CSIStorageCapacity objects by which this process tells the "
                       "scheduler the free space of nodes; 0 while it does not lead.")
             .add({}, static_cast<double>(stats.objects.load()))
             .text();
  out += Family::counter("local_path_provisioner_capacity_writes_total",
                         "Creations, changes and removals of them.")
             .add({}, static_cast<double>(stats.writes.load()))
             .text();
  out += Family::counter("local_path_provisioner_capacity_failures_total",
                         "API calls for them that failed.")
             .add({}, static_cast<double>(stats.failures.load()))
             .text();
}

}  // namespace

std::string volume_metrics(const Subjects& subjects) {
  auto volumes = Family::gauge("local_path_provisioner_volumes",
                               "PersistentVolumes, by node, configured path and StorageClass.");
  auto requested = Family::gauge("local_path_provisioner_volumes_requested_bytes",
                                 "The sum of their sizes: what was promised, not what is used.");
  auto size = Family::gauge("local_path_provisioner_path_size_bytes",
                            "Size of the file system of a configured path, as the node's agent "
                            "tells it, or the last helper pod there did. Scripts that do not know "
                            "it tell nothing.");
  auto free = Family::gauge("local_path_provisioner_path_free_bytes", "What is free of it.");
  auto inodes =
      Family::gauge("local_path_provisioner_path_inodes", "Inodes of the same file system.");
  auto free_inodes =
      Family::gauge("local_path_provisioner_path_inodes_free", "What is free of them.");
  const auto groups = groups_of(subjects);
  for (const auto& [group, sum] : groups) {
    auto labels = labels_of(group.place);
    labels.push_back({"class", group.storage_class});
    volumes.add(labels, static_cast<double>(sum.volumes));
    requested.add(labels, sum.bytes);
  }
  std::size_t series = 0;
  for (const auto& entry : subjects.space.all()) {
    if (++series > kMaxSeries) break;
    const auto labels = labels_of({entry.node, entry.base_path});
    size.add(labels, static_cast<double>(entry.space.size));
    free.add(labels, static_cast<double>(entry.space.free));
    inodes.add(labels, static_cast<double>(entry.space.inodes));
    free_inodes.add(labels, static_cast<double>(entry.space.free_inodes));
  }
  std::string out = volumes.text() + requested.text() + size.text() + free.text() + inodes.text() +
                    free_inodes.text();
  if (subjects.agents) add_agentless(subjects, groups, out);
  if (!subjects.options.capacity_provisioner_name.empty()) add_capacities(subjects.capacities, out);
  return out;
}

}  // namespace lpp::app
