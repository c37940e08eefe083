// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/fault_proxy.h"
#include "harness/kube.h"

namespace lpp::testing {

/// A cluster that stories are told on: the embedded one or a real control plane. It has the
/// objects of the manifest (namespace, roles, class, scripts) but no provisioner.
class TestBed {
 public:
  virtual ~TestBed() = default;

  virtual std::string name() const = 0;
  virtual Kube& admin() = 0;
  virtual Upstream upstream() const = 0;
  /// Token of the manifest's ServiceAccount: all that the daemon may do.
  virtual std::string daemon_token() const = 0;

  /// Nodes on which pods run and hostPath volumes are directories of this machine.
  virtual std::vector<std::string> nodes() const = 0;
  /// Where the node's path is on this machine.
  virtual std::string on_disk(const std::string& node, const std::string& path) const = 0;
  /// Folders to configure as bases of volumes; no other test bed uses them at the same time.
  virtual std::vector<std::string> base_paths() const = 0;
  /// A folder that is the same on every node.
  virtual std::string shared_path() const = 0;
  /// For one step of a story (a pod runs, a claim is bound …); generous.
  virtual Patience patience() const = 0;
};

}  // namespace lpp::testing
