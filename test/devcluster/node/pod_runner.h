// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "devcluster/apiserver/registry.h"
#include "devcluster/node/container_setup.h"
#include "devcluster/node/node_disk.h"
#include "devcluster/node/pod_status.h"
#include "devcluster/node/process_host.h"
#include "devcluster/runtime/event_emitter.h"

namespace lpp::devcluster {

/// How a node misbehaves; tests change it at any time.
struct NodeFaults {
  bool dead = false;          // starts and ends nothing, as if the kubelet was gone
  Duration start_delay{0};    // before a pod's first container starts
  Duration report_delay{0};   // between a container's start or end and its report
  bool silent_start = false;  // until then it does not tell either that it has the pod in hand
  bool fail_pulls = false;    // no image can be pulled
};

/// What runners share on a node. References must outlive the runners.
struct NodeServices {
  Registry& registry;
  Clock& clock;
  ProcessHost& processes;
  EventEmitter& events;
  const NodeDisk& disk;
  std::string name;  // of the node
  std::string image_root;
  std::string state_folder;  // one folder per pod UID is made below it
  const std::set<std::string>& known_images;
  const std::map<std::string, std::string>& images;
  Duration restart_back_off;  // first wait of CrashLoopBackOff, doubled up to 300 s
};

/// One pod on its node: mounts, init containers, containers, restarts, deadline, deletion. A state
/// machine that is asked to go on whenever something may have changed; it never waits.
/// Used by one thread at a time.
class PodRunner {
 public:
  struct Next {
    bool done = false;                // nothing runs and the pod is gone: forget the runner
    std::optional<Duration> again{};  // ask again after this time at the latest
  };

  PodRunner(NodeServices& services, const nlohmann::json& pod);

  const std::string& uid() const { return uid_; }
  /// Ids given to processes are announced here before their exits can be reported.
  using Announce = std::function<void(ProcessHost::Id)>;
  void on_announce(Announce announce) { announce_ = std::move(announce); }

  void on_exit(ProcessHost::Id id, const ProcessExit& exit);
  /// The next step for the pod as the API server has it now; null when it is gone from there.
  Next sync(const nlohmann::json* pod, const NodeFaults& faults);
  /// Fails the pod at the next sync, as a node under pressure does.
  void evict(std::string message) { evicted_ = std::move(message); }

  /// Log of a container by name; "" if it never ran. `previous`: of the run before the last.
  std::string log_path(std::string_view container, bool previous) const;

 private:
  enum class Ending { kNo, kDeleted, kForced };

  Next go_on(const nlohmann::json& pod, const NodeFaults& faults);
  Next force(const nlohmann::json& pod, std::string reason, std::string message, Duration grace);
  Next end(const nlohmann::json& pod, Ending why, Duration grace);
  bool mount(const nlohmann::json& pod, Next& next);
  /// Moves a container towards running; true if it may count as started.
  void advance(const nlohmann::json& pod, const nlohmann::json& container, ContainerRun& run,
               const NodeFaults& faults, Next& next);
  bool pull(const nlohmann::json& pod, ContainerRun& run, const NodeFaults& faults, Next& next);
  void start(const nlohmann::json& pod, const nlohmann::json& container, ContainerRun& run,
             Next& next);
  bool should_restart(const ContainerRun& run) const;
  void finish(const nlohmann::json& pod, ContainerRun& run, const ProcessExit& exit);
  void collect_exits(const nlohmann::json* pod, const NodeFaults& faults, Next& next);
  void report(const nlohmann::json& pod);
  /// The same, as late and as silent about what has started as the faults say.
  void report(const nlohmann::json& pod, const NodeFaults& faults, Next& next);
  std::vector<ContainerRun> told_of(const std::vector<ContainerRun>& runs, Duration delay,
                                    Next& next) const;
  bool any_running() const;
  void signal_all(const nlohmann::json* pod, int signal_number);
  void set_waiting(std::string_view reason, const std::string& message = {});
  const nlohmann::json* spec_of(const nlohmann::json& pod, const ContainerRun& run) const;
  std::vector<ContainerRun*> all_runs();
  std::string now_text() const { return format_rfc3339(services_.clock.wall_now()); }

  NodeServices& services_;
  const std::string uid_;
  const std::string state_folder_;
  const TimePoint accepted_;
  Announce announce_;

  std::string restart_policy_;
  std::string start_time_;
  std::vector<ContainerRun> init_;
  std::vector<ContainerRun> main_;
  std::optional<MountedVolumes> volumes_;
  Duration mount_back_off_{0};
  TimePoint mount_again_{};
  struct Pull {
    Duration back_off{0};
    TimePoint again{};
    TimePoint failed{};
  };
  std::map<std::string, Pull> pulls_;  // by container, while its image cannot be had
  struct PendingExit {
    ProcessExit exit;
    TimePoint at;
  };
  std::map<ProcessHost::Id, PendingExit> exits_;
  std::string evicted_;
  bool over_ = false;  // terminal phase reported

  Ending ending_ = Ending::kNo;
  bool terminated_ = false;  // SIGTERM was sent
  bool killed_ = false;
  TimePoint ending_since_{};
  std::string forced_reason_;
  std::string forced_message_;
  Duration forced_grace_{0};
  bool removed_ = false;  // told the API server that nothing runs any more
};

/// Sooner of two optional times.
void sooner(PodRunner::Next& next, Duration delay);

}  // namespace lpp::devcluster
