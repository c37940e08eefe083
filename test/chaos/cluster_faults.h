// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lpp::testing {

/// What can happen to a cluster besides its API: nodes and the API server itself. A test bed that
/// cannot do one of these does nothing. One thread.
class ClusterFaults {
 public:
  virtual ~ClusterFaults() = default;

  virtual void remove_node(const std::string& /*node*/) {}
  virtual void return_node(const std::string& /*node*/) {}
  struct NodeTrouble {
    bool dead = false;  // starts and ends nothing
    bool slow = false;
    bool silent = false;  // while it is slow, of what it begins
    bool fail_pulls = false;
  };
  virtual void trouble_node(const std::string& /*node*/, const NodeTrouble& /*trouble*/) {}
  virtual void evict(const std::string& /*ns*/, const std::string& /*pod*/) {}
  virtual void cut_connections() {}
  virtual void forget_history() {}
  virtual bool can_remove_nodes() const { return false; }
  /// The machine's Node object `from` goes, and it comes as `to` with its old label
  /// kubernetes.io/hostname, which is `machine`.
  virtual void rename_node(const std::string& /*from*/, const std::string& /*to*/,
                           const std::string& /*machine*/) {}
  virtual bool can_rename_nodes() const { return false; }
  /// Whether a base path's folder may be moved away.
  virtual bool can_take_disks() const { return false; }
};

}  // namespace lpp::testing
