// SPDX-License-Identifier: Apache-2.0
#include "app/metric_family.h"
#include "app/metrics.h"

namespace lpp::app {

namespace {

using Family = MetricFamily;

std::string collect(const AgentsSubject& seen) {
  double connected = 0;
  double works = 0;
  for (const auto& one : seen.agents) {
    if (one.presence == agent::Presence::kConnected) ++connected;
    works += static_cast<double>(one.works);
  }
  const auto& counts = seen.server;
  auto requests = Family::counter("local_path_provisioner_agent_requests_total",
                                  "Requests of node agents that were served, by request.");
  for (const auto& [request, count] : counts.requests) {
    requests.add({{"request", request}}, static_cast<double>(count));
  }
  auto refused =
      Family::counter("local_path_provisioner_agent_refused_total",
                      "Requests and connections at the agents' port that were refused, by reason.");
  for (const auto& [reason, count] : counts.refused) {
    refused.add({{"reason", reason}}, static_cast<double>(count));
  }
  std::string out;
  out += Family::gauge("local_path_provisioner_agents_connected",
                       "Node agents that are connected to this process.")
             .add({}, connected)
             .text();
  out += Family::gauge("local_path_provisioner_agent_operations",
                       "Operations that node agents have on record.")
             .add({}, works)
             .text();
  out += Family::gauge("local_path_provisioner_agent_connections",
                       "Open connections at the agents' port.")
             .add({}, static_cast<double>(counts.connections))
             .text();
  auto not_held = Family::gauge("local_path_provisioner_base_path_limits_not_held",
                                "Volumes in a base path of a node with an agent whose limit on "
                                "record does not hold now.");
  for (const auto& one : seen.agents) {
    if (one.presence != agent::Presence::kConnected) continue;
    for (const auto& base : one.bases) {
      if (base.limits_not_held == 0) continue;
      not_held.add({{"node", one.node}, {"path", base.path}},
                   static_cast<double>(base.limits_not_held));
    }
  }
  out += not_held.text();
  out += requests.text();
  out += refused.text();
  if (seen.certificate_ends) {
    const std::chrono::duration<double> ends = seen.certificate_ends->time_since_epoch();
    out += Family::gauge("local_path_provisioner_agents_certificate_expiry_timestamp_seconds",
                         "Until when the certificate is valid that agents are shown.")
               .add({}, ends.count())
               .text();
  }
  return out;
}

std::string orphan_family(const OrphansSubject& seen) {
  std::map<std::pair<std::string, std::string>, double> counts;  // by node and why
  for (const Orphan& one : seen.orphans) {
    ++counts[{one.node, std::string(why_of(one.listed))}];
  }
  auto family = Family::gauge("local_path_provisioner_orphaned_directories",
                              "Directories on nodes with an agent that are nobody's, by why.");
  for (const auto& [key, count] : counts) {
    family.add({{"node", key.first}, {"why", key.second}}, count);
  }
  return family.text();
}

}  // namespace

std::string agent_metrics(const Subjects& subjects) {
  std::string out = subjects.agents ? collect(subjects.agents()) : std::string();
  if (subjects.orphans) out += orphan_family(subjects.orphans());
  return out;
}

}  // namespace lpp::app
