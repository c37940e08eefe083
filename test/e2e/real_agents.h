// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "real_story.h"

namespace lpp::testing {

/// A directory that tells containers of what is mounted below it, as every directory of a machine
/// does whose init is systemd: the manifest's HostToContainer asks for it.
class SharedMount {
 public:
  explicit SharedMount(std::string directory);
  ~SharedMount();
  SharedMount(const SharedMount&) = delete;
  SharedMount& operator=(const SharedMount&) = delete;

 private:
  const std::string directory_;
};

/// deploy/agents on the real node, for one test case: the manifest's DaemonSet with the image that
/// run.sh has made, on the bed's base paths. The provisioner is a process of this machine, so the
/// name of the manifest's Service leads there by the pod's /etc/hosts. Everything goes with the
/// object. Problems end the test case.
class RealAgents {
 public:
  /// Grants the daemon what it needs; before it starts.
  explicit RealAgents(const std::string& story);
  ~RealAgents();
  RealAgents(const RealAgents&) = delete;
  RealAgents& operator=(const RealAgents&) = delete;

  RealStory& story() { return story_; }
  int port() const { return port_; }
  /// Starts daemon and agents, and waits until they have found each other.
  void start();
  void wait_for_metric(const std::string& line);

  /// Name of the agent's pod.
  std::string pod();
  /// The agent's process on this machine; waits until there is one besides `before`.
  pid_t process(pid_t before = 0);
  /// How often the kubelet has started it anew.
  int restarts();
  /// Nobody can have had a helper pod's place.
  bool made_helper_pods();

 private:
  void apply_daemon_set();
  void remove_all();

  const int port_;
  const SharedMount volumes_;
  RealStory story_;
  std::vector<nlohmann::json> applied_;
};

}  // namespace lpp::testing
