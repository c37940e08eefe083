// SPDX-License-Identifier: Apache-2.0
#include "app/metrics_own_agent.h"

#include "app/metric_family.h"
#include "app/metrics.h"
#include "app/version.h"

namespace lpp::app {

namespace {

using Family = MetricFamily;

void add_sessions(std::string& out, const agent::SessionStats& stats) {
  const std::chrono::duration<double> since = stats.since.load().time_since_epoch();
  out += Family::gauge("local_path_provisioner_agent_connected",
                       "1 while this agent has a session with the controller.")
             .add({}, since.count() > 0 ? 1 : 0)
             .text();
  auto from = Family::gauge("local_path_provisioner_agent_connected_since_timestamp_seconds",
                            "When the session began that there is.");
  if (since.count() > 0) from.add({}, since.count());
  out += from.text();
  out += Family::counter("local_path_provisioner_agent_sessions_begun_total",
                         "Sessions with a controller that have begun.")
             .add({}, static_cast<double>(stats.begun.load()))
             .text();
  out += Family::counter("local_path_provisioner_agent_sessions_ended_total",
                         "Sessions with a controller that are over, by what ended them.")
             .add_all({"reason"}, stats.ended)
             .text();
  out += Family::counter("local_path_provisioner_agent_session_failures_total",
                         "Attempts to begin a session that failed, by reason.")
             .add_all({"reason"}, stats.failed)
             .text();
}

void add_work(std::string& out, const agent::WorkStats& stats, const agent::WorkView& view) {
  out += Family::histogram("local_path_provisioner_agent_operation_duration_seconds",
                           "How long the work on the disk took, by operation and result.")
             .add_all({"operation", "result"}, stats.durations)
             .text();
  out += Family::gauge("local_path_provisioner_agent_operations_running",
                       "Operations that this agent is at work on, by operation.")
             .add_all({"operation"}, stats.running)
             .text();
  out += Family::gauge("local_path_provisioner_agent_operations_queued",
                       "Operations that wait for their turn on this node.")
             .add({}, static_cast<double>(view.queued))
             .text();
  out += Family::gauge("local_path_provisioner_agent_operations_on_record",
                       "Operations that this agent has on record, ended ones included.")
             .add({}, static_cast<double>(view.on_record))
             .text();
  auto bases = Family::gauge("local_path_provisioner_agent_base_path_usable",
                             "1 while this agent can work in a base path of its node, 0 while it "
                             "is missing or cannot be used.");
  for (const auto& [path, usable] : view.bases) bases.add({{"path", path}}, usable ? 1 : 0);
  out += bases.text();
}

}  // namespace

std::string own_agent_metrics(agent::Agent& agent, const agent::AgentClient& client) {
  std::string out =
      Family::gauge("local_path_provisioner_agent_build_info",
                    "Always 1; the labels say what runs here.")
          .add({{"version", std::string(version())}, {"compiler", std::string(compiler())}}, 1)
          .text();
  add_sessions(out, client.stats());
  add_work(out, agent.stats(), agent.view());
  out += process_metrics();
  return out;
}

}  // namespace lpp::app
