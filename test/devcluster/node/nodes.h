// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/sync.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/node/pod_runner.h"
#include "devcluster/node/process_host.h"
#include "devcluster/runtime/event_emitter.h"
#include "devcluster/runtime/keyed_queue.h"
#include "devcluster/runtime/subscription.h"

namespace lpp::devcluster {

struct NodesOptions {
  std::string folder{};   // the disks of the nodes, state of pods and the image live below it
  std::string busybox{};  // "": the one on PATH
  std::set<std::string> known_images{};         // repositories that also stand for busybox
  std::map<std::string, std::string> images{};  // repository -> folder with its root file system
  std::string shared_path{};  // where every node has mounted one and the same folder; "" = nowhere
  Duration restart_back_off = std::chrono::seconds(10);
  std::size_t threads = 2;
};

/// The nodes of the cluster: registers Node objects and plays the kubelet for every pod that is
/// bound to one of them. Pods are real processes (see sandbox.h). Thread-safe.
///
/// Threads: a few workers, the reaper, one that follows the pods; their number does not depend on
/// how many pods run. Nothing survives stop().
class Nodes {
 public:
  /// Fails with an explanation when sandboxes cannot be made on this machine.
  static Result<std::unique_ptr<Nodes>> create(Registry& registry, Clock& clock,
                                               NodesOptions options);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  /// Registers a Ready node. `labels` come on top of the usual ones and win over them. Its disk is
  /// that of `machine`, an earlier node's, if given.
  Result<void> add_node(const std::string& name,
                        const std::map<std::string, std::string>& labels = {},
                        const std::string& machine = {});
  /// Kills the node's pods and deletes its Node object; its disk stays. The pods' objects are for
  /// the pod garbage collector.
  void remove_node(const std::string& name);
  std::vector<std::string> names() const;

  /// What runs the containers, in words (SandboxTools::description()).
  std::string sandbox() const { return processes_->tools().description(); }

  /// The folder that is "/" for hostPath volumes of the node; "" for an unknown node.
  std::string disk_root(const std::string& node) const;
  /// The folder that is at the shared path of every node.
  std::string shared_folder() const { return options_.folder + "/shared"; }

  void set_faults(const std::string& node, const NodeFaults& faults);
  /// Sets the node's Ready condition.
  void set_ready(const std::string& node, bool ready);
  /// Fails the pod as a node under pressure does (phase Failed, reason Evicted).
  void evict(const std::string& ns, const std::string& pod,
             const std::string& message = "The node was low on resource: ephemeral-storage.");

  /// What the container printed so far; empty optional if it never started or is unknown.
  std::optional<std::string> log(const std::string& ns, const std::string& pod,
                                 const std::string& container, bool previous = false) const;

  /// The kubelet's statistics (/stats/summary): those of the volumes of pods that run there, of
  /// type local, for the kubelet knows none of hostPath. Empty for an unknown node.
  std::optional<std::string> summary(const std::string& node) const;

  void start();
  /// Kills all pods' processes and ends all threads. Repeatable.
  void stop();

 private:
  struct Node {
    std::string name;
    std::unique_ptr<NodeDisk> disk;
    std::unique_ptr<EventEmitter> events;
    std::unique_ptr<NodeServices> services;
    NodeFaults faults;
    bool removed = false;
  };
  struct Entry {
    std::string node;
    std::unique_ptr<PodRunner> runner;  // used by the worker that has the pod's key
    std::vector<std::pair<ProcessHost::Id, ProcessExit>> exits;
    std::string evict;
    std::map<std::string, std::string> logs;  // container -> newest log, for readers
    std::map<std::string, std::string> previous_logs;
  };

  Nodes(Registry& registry, Clock& clock, NodesOptions options);
  Result<void> prepare();
  void on_exit(ProcessHost::Id id, const ProcessExit& exit);
  void sync(const std::string& key);
  void enqueue_all(const std::string& node);

  Registry& registry_;
  Clock& clock_;
  const NodesOptions options_;
  std::unique_ptr<ProcessHost> processes_;
  KeyedQueue queue_;
  Subscription pods_;

  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Node>> nodes_ LPP_GUARDED_BY(mutex_);
  std::map<std::string, Entry> entries_ LPP_GUARDED_BY(mutex_);  // by "namespace/name"
  std::map<ProcessHost::Id, std::string> owners_ LPP_GUARDED_BY(mutex_);
};

}  // namespace lpp::devcluster
