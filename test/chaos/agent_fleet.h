// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "harness/agent_process.h"
#include "harness/tcp_relay.h"
#include "harness/test_bed.h"

namespace lpp::testing {

/// The node agents of some machines as processes, each with a pod object, a token that is bound to
/// it, and a line of its own to each replica of the daemon. One thread.
class AgentFleet {
 public:
  struct Options {
    std::string program{};
    std::string folder{};  // exists; gets certificate, tokens and logs
    std::vector<std::string> machines{};
    std::size_t replicas = 1;
  };
  /// Starts nothing yet. The bed must outlive the object.
  static Result<std::unique_ptr<AgentFleet>> create(TestBed& bed, const Options& options);
  /// Kills them all.
  ~AgentFleet();
  AgentFleet(const AgentFleet&) = delete;
  AgentFleet& operator=(const AgentFleet&) = delete;

  /// What the replica is to be started with.
  std::vector<std::string> daemon_args(std::size_t replica) const;
  /// Waits for the certificate that a leader makes.
  Result<void> take_ca();

  bool has(const std::string& machine) const { return agents_.contains(machine); }
  std::vector<std::string> machines() const;

  /// `node`: what the machine is called now. Nothing if it runs, or if the machine is dead.
  Result<void> start(const std::string& machine, const std::string& node);
  /// As the kernel does when memory is short; the pod stays.
  void kill(const std::string& machine);
  /// For good: the process first, then its pod.
  Result<void> uninstall(const std::string& machine);
  /// It neither works nor speaks, but its connections stay.
  void freeze(const std::string& machine);
  void thaw(const std::string& machine);
  /// A dead machine's agent is frozen, and none is started there.
  void set_dead(const std::string& machine, bool dead);
  void cut(const std::string& machine);
  /// Nothing passes any more. `told`: the connections are cut, and new ones refused.
  void partition(const std::string& machine, bool told);
  void heal(const std::string& machine);
  /// Everything runs and speaks again, but on dead machines.
  Result<void> end_faults(const std::map<std::string, std::string>& nodes_by_machine);

  /// An error if one has ended by itself or a sanitizer has said something in it.
  Result<void> check();
  /// The ends of the logs, for messages.
  std::string log_tails() const;

 private:
  struct Agent {
    std::string root{};
    std::string log_file{};
    std::vector<std::unique_ptr<TcpRelay>> lines{};  // to each replica
    std::unique_ptr<AgentProcess> process{};
    std::string node{};  // of its pod; "" = it has none
    bool frozen = false;
    bool dead = false;
  };
  AgentFleet(TestBed& bed, Options options) : bed_(bed), options_(std::move(options)) {}
  static void let_run(Agent& agent);

  TestBed& bed_;
  const Options options_;
  std::vector<int> ports_;  // of the replicas
  std::map<std::string, Agent> agents_;
};

}  // namespace lpp::testing
