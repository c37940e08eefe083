// SPDX-License-Identifier: Apache-2.0
#include "app/metric_family.h"
#include "app/metrics.h"
#include "app/version.h"

namespace lpp::app {

namespace {

using Family = MetricFamily;

double unix_time(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

struct Text {
  const char* source;
  const ConfigLoader::Counts& counts;
};

void add_config(std::string& out, const ConfigLoader& loader) {
  const auto config = loader.config().current();
  out += Family::gauge("local_path_provisioner_config_generation",
                       "Counts the configurations that this process has put in force; 0 = "
                       "there is none yet.")
             .add({}, config ? static_cast<double>(config->generation) : 0)
             .text();
  auto reloads = Family::counter("local_path_provisioner_config_reloads_total",
                                 "Texts of config.json and helperPod.yaml that were accepted or "
                                 "refused, the first ones included.");
  auto last = Family::gauge("local_path_provisioner_config_last_reload_successful",
                            "1 while the newest text is in force, 0 while it is refused.");
  auto when = Family::gauge("local_path_provisioner_config_last_reload_success_timestamp_seconds",
                            "When the text in force was accepted.");
  const std::array<Text, 2> texts{Text{"config.json", loader.config_counts()},
                                  Text{"helperPod.yaml", loader.template_counts()}};
  for (const Text& text : texts) {
    const Family::Labels labels{{"source", text.source}};
    const auto refusal = text.counts.refusal.current();
    reloads.add({{"source", text.source}, {"result", "accepted"}},
                static_cast<double>(text.counts.accepted.load()));
    reloads.add({{"source", text.source}, {"result", "refused"}},
                static_cast<double>(text.counts.refused.load()));
    last.add(labels, refusal == nullptr ? 1 : 0);
    when.add(labels, unix_time(text.counts.accepted_at));
  }
  out += reloads.text();
  out += last.text();
  out += when.text();
}

void add_leader(std::string& out, const Subjects& subjects) {
  const bool active = subjects.controller.claim_queue().has_value();
  out += Family::gauge("local_path_provisioner_active",
                       "1 while this process serves claims: it leads, or there is no "
                       "election.")
             .add({}, active ? 1 : 0)
             .text();
  if (subjects.elector == nullptr) return;
  out +=
      Family::gauge("leader_election_master_status",
                    "Gauge of if the reporting system is master of the relevant lease, 0 indicates "
                    "backup, 1 indicates master. 'name' is the string used to identify the lease. "
                    "Please make sure to group by name.")
          .add({{"name", subjects.options.leader_election.resource_name}},
               subjects.elector->leading() ? 1 : 0)
          .text();
}

}  // namespace

std::string daemon_metrics(const Subjects& subjects) {
  std::string out;
  out +=
      Family::gauge("local_path_provisioner_build_info", "Always 1; the labels say what runs here.")
          .add({{"version", std::string(version())},
                {"compiler", std::string(compiler())},
                {"provisioner", subjects.options.provisioner_name}},
               1)
          .text();
  add_leader(out, subjects);
  add_config(out, subjects.config);
  return out;
}

}  // namespace lpp::app
