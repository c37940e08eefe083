// SPDX-License-Identifier: Apache-2.0
#include "app/metric_family.h"
#include "app/metrics.h"

#include <map>

namespace lpp::app {

namespace {

using Family = MetricFamily;
using provisioner::OperationFigures;

/// Series of helper pods by phase and node; beyond it the node is "other".
constexpr std::size_t kMaxPodSeries = 500;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The provision controller's own, rule A10.
void add_controller(std::string& out, const OperationFigures::Totals& totals) {
  constexpr std::array<const char*, 2> kClaim{"class", "source"};
  constexpr std::array<const char*, 1> kVolume{"class"};
  out +=
      Family::counter("controller_persistentvolumeclaim_provision_total",
                      "Total number of persistent volumes provisioned succesfully. Broken down by "
                      "storage class name and source of the claim.")
          .add_all(kClaim, totals.provisioned)
          .text();
  out +=
      Family::counter("controller_persistentvolumeclaim_provision_failed_total",
                      "Total number of persistent volume provision failed attempts. Broken down by "
                      "storage class name and source of the claim.")
          .add_all(kClaim, totals.provision_failed)
          .text();
  out +=
      Family::histogram("controller_persistentvolumeclaim_provision_duration_seconds",
                        "Latency in seconds to provision persistent volumes. Failed provisioning "
                        "attempts are ignored. Broken down by storage class name and source of the "
                        "claim.")
          .add_all(kClaim, totals.provision_duration)
          .text();
  out += Family::counter("controller_persistentvolume_delete_total",
                         "Total number of persistent volumes deleted succesfully. Broken "
                         "down by storage class name.")
             .add_all(kVolume, totals.deleted)
             .text();
  out += Family::counter("controller_persistentvolume_delete_failed_total",
                         "Total number of persistent volume delete failed attempts. Broken "
                         "down by storage class name.")
             .add_all(kVolume, totals.delete_failed)
             .text();
  out += Family::histogram("controller_persistentvolume_delete_duration_seconds",
                           "Latency in seconds to delete persistent volumes. Failed "
                           "deletion attempts are ignored. Broken down by storage class "
                           "name.")
             .add_all(kVolume, totals.delete_duration)
             .text();
}

void add_operations(std::string& out, const OperationFigures& figures) {
  const auto& totals = figures.totals();
  out += Family::histogram("local_path_provisioner_operation_step_duration_seconds",
                           "How long the steps of operations took: waiting to be begun (queued), "
                           "until the helper pod's container ran (pod_start), the script, and the "
                           "volume's object. Steps that began before this process are left out.")
             .add_all<Histogram, 2>({"operation", "step"}, totals.steps)
             .text();
  out += Family::counter("local_path_provisioner_failures_total",
                         "Attempts that failed and requests that were refused, by cause.")
             .add_all<Counter, 2>({"operation", "reason"}, totals.failures)
             .text();
  out += Family::counter("local_path_provisioner_bindings_total",
                         "Claims that were bound to their volume by the provisioner "
                         "(bound), or left to the control plane to bind and why (conflict, "
                         "forbidden, failed).")
             .add_all<Counter, 1>({"result"}, totals.bindings)
             .text();
  out += Family::counter("local_path_provisioner_claims_released_total",
                         "Claims whose node was deleted, of classes with onNodeLost: "
                         "release: deleted (released), kept since the node came back after "
                         "all (node_back), or not deleted and why (forbidden, failed).")
             .add_all<Counter, 2>({"class", "result"}, totals.claims_released)
             .text();
  auto count = Family::gauge("local_path_provisioner_operations",
                             "Operations that are begun and not done, failed ones that wait for "
                             "their next attempt included.");
  auto waiting = Family::gauge("local_path_provisioner_operations_waiting",
                               "Operations whose last attempt failed and whose next one is not "
                               "due yet.");
  auto oldest = Family::gauge("local_path_provisioner_oldest_operation_age_seconds",
                              "Age of the oldest operation that is not done; 0 = there is none.");
  for (const auto& [kind, load] : figures.load()) {
    const Family::Labels labels{{"operation", std::string(operation::label_of(kind))}};
    count.add(labels, static_cast<double>(load.count));
    waiting.add(labels, static_cast<double>(load.waiting));
    oldest.add(labels, seconds(load.oldest));
  }
  out += count.text();
  out += waiting.text();
  out += oldest.text();
}

void add_helper_pods(std::string& out, const k8s::Store<k8s::Pod>& pods, std::size_t settled) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  for (const auto& pod : pods.list()) {
    std::pair<std::string, std::string> key{pod->phase.empty() ? "Pending" : pod->phase,
                                            pod->node_name};
    if (counts.size() >= kMaxPodSeries && !counts.contains(key)) key.second = "other";
    ++counts[std::move(key)];
  }
  auto family = Family::gauge("local_path_provisioner_helper_pods",
                              "Helper pods that exist, by phase and node.");
  for (const auto& [key, count] : counts) {
    family.add({{"phase", key.first}, {"node", key.second}}, static_cast<double>(count));
  }
  out += family.text();
  out += Family::gauge("local_path_provisioner_helper_pods_done",
                       "Helper pods whose work is done: they are removed when nothing else "
                       "is to be done.")
             .add({}, static_cast<double>(settled))
             .text();
}

struct Queue {
  const char* name;
  const k8s::WorkQueueStats& stats;
  std::optional<k8s::WorkQueueState> state;
};

/// client-go's, with the provision controller's names of the queues.
void add_queues(std::string& out, const provisioner::Controller& controller) {
  const std::array<Queue, 2> queues{
      Queue{"claims", controller.claim_stats(), controller.claim_queue()},
      Queue{"volumes", controller.volume_stats(), controller.volume_queue()}};
  auto depth = Family::gauge("workqueue_depth", "Current depth of workqueue");
  auto adds = Family::counter("workqueue_adds_total", "Total number of adds handled by workqueue");
  auto waited =
      Family::histogram("workqueue_queue_duration_seconds",
                        "How long in seconds an item stays in workqueue before being requested.");
  auto worked = Family::histogram("workqueue_work_duration_seconds",
                                  "How long in seconds processing an item from workqueue takes.");
  auto unfinished = Family::gauge(
      "workqueue_unfinished_work_seconds",
      "How many seconds of work has done that is in progress and hasn't been observed by "
      "work_duration. Large values indicate stuck threads. One can deduce the number of stuck "
      "threads by observing the rate at which this increases.");
  auto longest = Family::gauge(
      "workqueue_longest_running_processor_seconds",
      "How many seconds has the longest running processor for workqueue been running.");
  auto retries =
      Family::counter("workqueue_retries_total", "Total number of retries handled by workqueue");
  auto delayed = Family::gauge("local_path_provisioner_workqueue_delayed",
                               "Items that are to come back into the queue at a later time.");
  for (const Queue& queue : queues) {
    const Family::Labels labels{{"name", queue.name}};
    const auto state = queue.state.value_or(k8s::WorkQueueState{});
    depth.add(labels, static_cast<double>(state.ready));
    adds.add(labels, static_cast<double>(queue.stats.adds.load()));
    waited.add(labels, queue.stats.waited.snapshot());
    worked.add(labels, queue.stats.worked.snapshot());
    unfinished.add(labels, seconds(state.work_so_far));
    longest.add(labels, seconds(state.longest_work));
    retries.add(labels, static_cast<double>(queue.stats.retries.load()));
    delayed.add(labels, static_cast<double>(state.delayed));
  }
  for (Family* family :
       {&depth, &adds, &waited, &worked, &unfinished, &longest, &retries, &delayed}) {
    out += family->text();
  }
}

}  // namespace

std::string work_metrics(const Subjects& subjects) {
  std::string out;
  add_controller(out, subjects.figures.totals());
  add_operations(out, subjects.figures);
  add_helper_pods(out, subjects.helper_pods, subjects.runner.settled().size());
  add_queues(out, subjects.controller);
  return out;
}

}  // namespace lpp::app
