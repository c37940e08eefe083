// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "chaos/cluster_faults.h"
#include "harness/test_bed.h"

namespace lpp::testing {

/// What the cluster that run.sh has started can be made to suffer besides its API: its API server
/// is killed, its kubelet or its containerd hangs, the processes of a pod are killed, its node is
/// deleted. Its images need no pulling. Failures of a step are kept: see error(). One thread.
class RealFaults final : public ClusterFaults {
 public:
  /// The bed must outlive the object.
  explicit RealFaults(TestBed& bed) : bed_(bed) {}
  /// Everything runs again.
  ~RealFaults() override;
  RealFaults(const RealFaults&) = delete;
  RealFaults& operator=(const RealFaults&) = delete;

  /// Deletes the Node object, as an administrator does; the machine goes on.
  void remove_node(const std::string& node) override;
  /// Makes it again, and waits until the kubelet has found it and pods may be scheduled there.
  void return_node(const std::string& node) override;
  bool can_remove_nodes() const override { return true; }
  /// Dead: the kubelet does nothing any more. Slow: it gets no answer from containerd.
  void trouble_node(const std::string& node, const NodeTrouble& trouble) override;
  /// Kills the pod's processes, as the kernel does when memory is short; the node tells of it.
  void evict(const std::string& ns, const std::string& pod) override;
  /// Kills the API server and starts it again; returns when it is ready.
  void cut_connections() override;

  Result<void> kill_api_server();
  Result<void> start_api_server();
  /// The first fault that could not be made or mended.
  Result<void> error() const { return error_; }

 private:
  /// Runs a line of bash with the functions of test/e2e/cluster.
  static Result<void> shell(const std::string& line);
  void note(Result<void> result);

  TestBed& bed_;
  NodeTrouble trouble_;
  nlohmann::json gone_node_;
  Result<void> error_;
};

}  // namespace lpp::testing
