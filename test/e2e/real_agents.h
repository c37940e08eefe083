// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "harness/by.h"
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

struct RealAgentsOptions {
  std::vector<std::string> daemon_args{};
  std::vector<std::string> base_paths{};  // empty: those of the bed
  bool limits = false;                    // with the capability that the manifest has as a comment
  bool standby = false;                   // agents know of another replica, too
};

/// deploy/agents on the real node, for one test case: the manifest's DaemonSet with the image that
/// run.sh has made, on the base paths. The provisioner is a process of this machine, so the
/// name of the manifest's Service leads there by the pod's /etc/hosts. Everything goes with the
/// object. Problems end the test case.
class RealAgents {
 public:
  /// Grants the daemon what it needs; before it starts.
  explicit RealAgents(const std::string& story, RealAgentsOptions options = {});
  ~RealAgents();
  RealAgents(const RealAgents&) = delete;
  RealAgents& operator=(const RealAgents&) = delete;

  RealStory& story() { return story_; }
  int port() const { return port_; }
  /// What the other replica is started with.
  std::vector<std::string> standby_args() const;
  /// Starts daemon and agents, and waits until they have found each other.
  void start();
  void wait_for_metric(const std::string& line);
  /// The DaemonSet replaces its pod by one of that image.
  void change_image(const std::string& image);
  /// Until that one has found the daemon.
  void wait_for_image(const std::string& image);

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
  void wait_nothing_released();
  void remove_all();

  const int port_;
  const int standby_port_;
  const SharedMount volumes_;
  const RealAgentsOptions options_;
  RealStory story_;
  const std::vector<std::string> base_paths_;
  std::vector<nlohmann::json> applied_;
};

/// The story, by helper pods or by the agents' DaemonSet.
class StoryBy {
 public:
  StoryBy(const std::string& name, By by, const RealAgentsOptions& options = {});
  RealStory& operator*() { return agents_ ? agents_->story() : *pods_; }
  /// nullptr: by helper pods.
  RealAgents* agents() { return agents_.get(); }
  void start();

 private:
  std::unique_ptr<RealAgents> agents_;
  std::unique_ptr<RealStory> pods_;
};

}  // namespace lpp::testing
