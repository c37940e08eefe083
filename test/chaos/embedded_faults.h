// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "chaos/cluster_faults.h"
#include "chaos/model.h"
#include "devcluster/cluster.h"

namespace lpp::testing {

/// The embedded cluster can do everything. It must outlive the object.
class EmbeddedFaults final : public ClusterFaults {
 public:
  explicit EmbeddedFaults(devcluster::Cluster& cluster) : cluster_(cluster) {}

  void remove_node(const std::string& node) override { cluster_.nodes().remove_node(node); }
  void return_node(const std::string& node) override {
    // There already: then nothing is wrong.
    static_cast<void>(cluster_.nodes().add_node(
        node, {{"kubernetes.io/hostname", machine_of(node)}}, machine_of(node)));
  }
  void rename_node(const std::string& from, const std::string& to,
                   const std::string& machine) override {
    cluster_.nodes().remove_node(from);
    static_cast<void>(
        cluster_.nodes().add_node(to, {{"kubernetes.io/hostname", machine}}, machine));
  }
  bool can_rename_nodes() const override { return true; }
  bool can_take_disks() const override { return true; }
  void trouble_node(const std::string& node, const NodeTrouble& trouble) override {
    const auto slow = std::chrono::milliseconds(trouble.slow ? 400 : 0);
    cluster_.nodes().set_faults(node, {.dead = trouble.dead,
                                       .start_delay = slow,
                                       .report_delay = slow,
                                       .silent_start = trouble.silent,
                                       .fail_pulls = trouble.fail_pulls});
  }
  void evict(const std::string& ns, const std::string& pod) override {
    cluster_.nodes().evict(ns, pod);
  }
  void cut_connections() override { cluster_.server().cut_connections(); }
  void forget_history() override { cluster_.registry().compact(); }
  bool can_remove_nodes() const override { return true; }

 private:
  devcluster::Cluster& cluster_;
};

}  // namespace lpp::testing
